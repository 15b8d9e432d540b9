#include "abi/version_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "abi/dataset_handle.h"
#include "app/application.h"
#include "base/ascii.h"
#include "base/file_name.h"
#include "base/random.h"
#include "dataset/directory_source.h"
#include "dataset/registry_writer.h"
#include "loader/option_fields.h"
#include "platform/file.h"
#include "platform/file_error.h"
#include "platform/path.h"
#include "platform/process.h"

namespace millrace {
namespace {

Status check_key(std::string_view key) {
  for (std::string_view rest = key;;) {
    const std::size_t slash = rest.find('/');
    if (const auto fault = file_name_fault(rest.substr(0, slash))) {
      return {StatusCode::kInvalidArgument,
              fmt::format("'{}' cannot be the key of a sample: {}", key, *fault)};
    }
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

// A field is what follows the first dot of a file's name, in lower case: a dot in the key would
// make it part of the field, and of two samples one.
Status check_fields(std::string_view key, std::span<const VersionWriter::Field> fields) {
  const std::string_view last = key.substr(key.rfind('/') + 1);
  std::set<std::string> names;
  for (const VersionWriter::Field& field : fields) {
    if (!field.name.empty() && last.contains('.')) {
      return {StatusCode::kInvalidArgument,
              fmt::format("'{}' cannot be the key of a sample with fields: what follows the dot in "
                          "'{}' would be taken for the name of one; use another character",
                          key, last)};
    }
    if (!names.insert(lower_case(field.name)).second) {
      return {StatusCode::kInvalidArgument,
              fmt::format("sample '{}' has the field '{}' twice: upper and lower case are the same",
                          key, field.name)};
    }
  }
  return {};
}

Status make_all(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? file_error(error.value(), "make directory", path) : Status();
}

}  // namespace

Result<VersionWriter::Options> VersionWriter::parse(std::string_view json) {
  MR_ASSIGN_OR_RETURN(const OptionFields::Document document, parse_options(json));
  OptionFields fields(document, "");
  const std::string name = fields.text("name");
  const std::string staging = fields.text("staging");
  const std::string notes = fields.text("notes");
  const OptionFields::Document* const settings = fields.object("settings");
  MR_RETURN_IF_ERROR(fields.finish());
  MR_ASSIGN_OR_RETURN(VersionRef ref, VersionRef::parse(name));
  MR_ASSIGN_OR_RETURN(LoadedSettings loaded, load_option_settings(settings));
  Options options{.ref = std::move(ref),
                  .settings = std::move(loaded),
                  .staging = staging,
                  .is_default = staging.empty(),
                  .notes = notes};
  if (options.is_default) {
    options.staging = join_path(
        join_path(user_directories(process_environment()).data, "writers"),
        fmt::format("{}@{}", options.ref.dataset.key_component(), options.ref.version.text()));
  }
  return options;
}

VersionWriter::VersionWriter(Options options)
    : options_(std::move(options)),
      samples_(join_path(options_.staging, "samples")),
      partial_(join_path(options_.staging, "partial")),
      token_(system_random().token()) {}

Result<std::unique_ptr<VersionWriter>> VersionWriter::open(Options options) {
  std::unique_ptr<VersionWriter> writer(new VersionWriter(std::move(options)));
  if (writer->options_.is_default) MR_RETURN_IF_ERROR(writer->take_default_staging());
  MR_RETURN_IF_ERROR(make_all(writer->samples_));
  MR_RETURN_IF_ERROR(make_all(writer->partial_));
  return writer;
}

Status VersionWriter::take_default_staging() {
  MR_RETURN_IF_ERROR(make_all(std::string(parent_path(options_.staging))));
  // Beside the directory, because that goes and the lock must not.
  auto lock = disk_.lock(options_.staging + ".lock", describe_this_process("a writer"));
  if (!lock && lock.error().code() == StatusCode::kConflict) {
    return {StatusCode::kConflict,
            fmt::format("'{}' is being written already, since {}: wait until that one ends, or "
                        "give this one a directory of its own as 'staging'",
                        options_.ref.text(), lock.error().message())};
  }
  if (!lock) return lock.error();
  lock_ = *std::move(lock);
  return abort();
}

Status VersionWriter::write(std::string_view key, std::span<const Field> fields) {
  MR_RETURN_IF_ERROR(check_fields(key, fields));
  std::vector<std::string> paths;
  for (const Field& field : fields) {
    paths.push_back(field.name.empty() ? std::string(key) : fmt::format("{}.{}", key, field.name));
    MR_RETURN_IF_ERROR(check_key(paths.back()));
  }
  for (std::size_t n = 0; n < paths.size(); ++n) {
    const Status status = write_file(paths[n], fields[n].data);
    if (status.ok()) continue;
    // A sample that lacks fields would be published as if it were whole.
    while (n-- > 0)
      (void)::unlink(join_path(samples_, paths[n]).c_str());
    return status;
  }
  return {};
}

Status VersionWriter::write_file(const std::string& path, ByteView data) {
  const std::string partial = join_path(partial_, token_);
  const std::string whole = join_path(samples_, path);
  {
    MR_ASSIGN_OR_RETURN(const File file, File::open(partial, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    MR_RETURN_IF_ERROR(file.write_at(0, data));
  }
  int error = ::link(partial.c_str(), whole.c_str()) == 0 ? 0 : errno;
  if (error == ENOENT) {
    MR_RETURN_IF_ERROR(make_all(std::string(parent_path(whole))));
    error = ::link(partial.c_str(), whole.c_str()) == 0 ? 0 : errno;
  }
  (void)::unlink(partial.c_str());
  if (error == EEXIST) {
    return {StatusCode::kConflict, fmt::format("'{}' was written already", path)};
  }
  return error == 0 ? Status() : file_error(error, "write", whole);
}

Result<PublishReport> VersionWriter::publish_samples(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Application> application,
                      Application::start(options_.settings.settings, process_environment()));
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store,
                      application->store(options_.settings.settings.store, MissingRoot::kCreate));
  const Registry registry({.store = *store,
                           .clock = system_clock(),
                           .random = system_random(),
                           .writer = this_process_writer()});
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<DirectorySource> source,
                      DirectorySource::open_root(samples_));
  PublishOptions options;
  options.annotation.notes = options_.notes;
  return publish(context,
                 {.store = *store,
                  .registry = registry,
                  .buffers = application->buffers(),
                  .clock = system_clock(),
                  .random = system_random(),
                  .state_directory = options_.settings.settings.cache,
                  .stores = [&](const std::string& url) { return application->other_store(url); }},
                 *source, options_.ref, options);
}

std::string VersionWriter::publish_command() const {
  std::string flags;
  for (const SettingOrigin& origin : options_.settings.origins) {
    if (origin.source == SettingSource::kFlag) {
      flags += fmt::format(" {} {}", origin.spec->flag, origin.text);
    }
  }
  return fmt::format("millrace publish {} {}{}", samples_, options_.ref.text(), flags);
}

Result<PublishReport> VersionWriter::commit(const RequestContext& context) {
  std::error_code unknown;
  if (std::filesystem::is_empty(samples_, unknown)) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("nothing was written for '{}': a version needs at least one sample",
                               options_.ref.text()));
  }
  auto report = publish_samples(context);
  if (!report) {
    return failure(report.error().code(),
                   fmt::format("{}; what was written is kept: '{}' publishes it",
                               report.error().message(), publish_command()));
  }
  MR_RETURN_IF_ERROR(abort());
  return report;
}

Status VersionWriter::abort() {
  std::error_code error;
  std::filesystem::remove_all(options_.staging, error);
  return error ? file_error(error.value(), "remove", options_.staging) : Status();
}

}  // namespace millrace
