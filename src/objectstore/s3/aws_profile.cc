#include "objectstore/s3/aws_profile.h"

#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/log.h"
#include "objectstore/s3/aws_profile_parser.h"
#include "objectstore/s3/credentials_file.h"

namespace millrace::s3 {
namespace {

constexpr std::uint64_t kFileBytesMax = kMiB;

struct FileChoice {
  std::string path;        // Empty: there is no home to look in.
  bool asked_for = false;  // Named by a variable, so a failure to read it must not pass unseen.
};

FileChoice choose_file(const Environment& environment, std::string_view variable,
                       std::string_view default_name) {
  const std::string home = environment.get_or("HOME", "");
  if (auto path = environment.get(variable)) {
    if (path->starts_with("~/") && !home.empty()) path = home + path->substr(1);
    return {.path = *path, .asked_for = true};
  }
  if (home.empty()) return {};
  return {.path = fmt::format("{}/.aws/{}", home, default_name), .asked_for = false};
}

bool holds_secret(const AwsProfiles& profiles, const std::string& file) {
  for (const auto& [name, section] : profiles.profiles) {
    const AwsSetting* secret = section.find("aws_secret_access_key");
    if (secret != nullptr && secret->file == file) return true;
  }
  return false;
}

Result<AwsProfiles> load_file(const FileChoice& choice, AwsFileKind kind) {
  AwsProfiles loaded;
  if (choice.path.empty()) return loaded;
  loaded.files.push_back(choice.path);
  auto file = read_credential_file(choice.path, kFileBytesMax);
  if (!file) {
    if (file.error() == StatusCode::kNotFound) return loaded;
    if (file.error() == StatusCode::kPermissionDenied && !choice.asked_for) {
      // HOME often points to root's in containers that run as somebody else.
      log_warn("an AWS profile file is skipped", {{"error", file.error().message()}});
      return loaded;
    }
    return failure(file.error());
  }
  MR_RETURN_IF_ERROR(parse_aws_file(file->text, kind, choice.path, loaded));
  if (file->readable_by_others && holds_secret(loaded, choice.path)) {
    log_warn("a file with AWS secret keys can be read by other users: run chmod 600 on it",
             {{"file", choice.path}});
  }
  return loaded;
}

void merge(AwsProfiles from, AwsProfiles& into) {
  for (auto& [name, section] : from.profiles) {
    AwsSection& target = into.profiles[name];
    if (section.find("aws_access_key_id") != nullptr) {
      // Keys are a set: a session token of the other file does not belong to these.
      target.remove("aws_access_key_id");
      target.remove("aws_secret_access_key");
      target.remove("aws_session_token");
    }
    for (const auto& [key, setting] : section.all())
      target.set(key, setting);
  }
  for (auto& file : from.files)
    into.files.push_back(std::move(file));
}

}  // namespace

std::string AwsSetting::place() const { return fmt::format("{}:{}", file, line); }

const AwsSetting* AwsSection::find(std::string_view name) const {
  const auto found = settings_.find(name);
  return found == settings_.end() ? nullptr : &found->second;
}

std::optional<std::string> AwsSection::get(std::string_view name) const {
  const AwsSetting* setting = find(name);
  if (setting == nullptr || setting->value.empty()) return std::nullopt;
  return setting->value;
}

void AwsSection::set(std::string name, AwsSetting setting) {
  settings_.insert_or_assign(std::move(name), std::move(setting));
}

void AwsSection::remove(std::string_view name) {
  if (const auto found = settings_.find(name); found != settings_.end()) settings_.erase(found);
}

const AwsSection* AwsProfiles::find(std::string_view profile) const {
  const auto found = profiles.find(profile);
  return found == profiles.end() ? nullptr : &found->second;
}

std::optional<std::string> AwsProfiles::endpoint_url(std::string_view profile,
                                                     std::string_view service) const {
  const AwsSection* section = find(profile);
  if (section == nullptr) return std::nullopt;
  if (const auto name = section->get("services")) {
    const auto found = services.find(*name);
    const AwsSetting* own = found == services.end() ? nullptr : found->second.find(service);
    if (own != nullptr) {
      const auto url = own->nested.find("endpoint_url");
      if (url != own->nested.end() && !url->second.empty()) return url->second;
    }
  }
  return section->get("endpoint_url");
}

Result<AwsProfiles> load_aws_profiles(const Environment& environment) {
  MR_ASSIGN_OR_RETURN(
      AwsProfiles profiles,
      load_file(choose_file(environment, "AWS_CONFIG_FILE", "config"), AwsFileKind::kConfig));
  MR_ASSIGN_OR_RETURN(
      AwsProfiles keys,
      load_file(choose_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                AwsFileKind::kCredentials));
  merge(std::move(keys), profiles);
  return profiles;
}

std::string selected_profile(const Environment& environment, std::string_view given) {
  return given.empty() ? environment.get_or("AWS_PROFILE", "default") : std::string(given);
}

}  // namespace millrace::s3
