#include "objectstore/store_url.h"

#include <algorithm>

#include <fmt/format.h>

#include "objectstore/store_url_parameters.h"

namespace millrace {
namespace {

constexpr std::string_view kExamples =
    "s3://bucket/prefix, file:///directory, ./directory or memory://name";

std::unexpected<Status> refuse(std::string_view url, std::string_view sentence) {
  return failure(StatusCode::kInvalidArgument, fmt::format("'{}' {}", url, sentence));
}

// What a message may quote: foreign bytes must not move the cursor or fill the screen.
std::string quotable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 200)) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    shown += control ? '?' : c;
  }
  if (text.size() > 200) shown += "...";
  return shown;
}

bool is_bare_path(std::string_view text) {
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") ||
         text == "." || text == "..";
}

std::string without_trailing_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.remove_suffix(1);
  return std::string(path);
}

Status check_control_characters(std::string_view text, std::string_view shown) {
  const bool clean = std::ranges::none_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (clean) return {};
  return refuse(shown, "has a control character in it: remove it").error();
}

Status check_characters(std::string_view text, std::string_view shown) {
  if (text.contains(' ')) return refuse(shown, "has a blank in it: write it as %20").error();
  if (text.contains('#')) {
    return refuse(shown, "has a '#' in it, which would begin a fragment: write it as %23").error();
  }
  return {};
}

// The rules that AWS, MinIO, Ceph and GCS agree on, without AWS's ban on capitals and '_', which
// older buckets and other stores have.
Status check_bucket(std::string_view bucket, std::string_view url) {
  if (bucket.empty()) {
    return refuse(url, "names no bucket: expected s3://bucket or s3://bucket/prefix").error();
  }
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  const bool good = bucket.size() >= 3 && bucket.size() <= 63 &&
                    std::ranges::all_of(bucket, allowed) && !bucket.contains("..") &&
                    bucket.front() != '.' && bucket.front() != '-' && bucket.back() != '.' &&
                    bucket.back() != '-';
  if (good) return {};
  if (bucket.contains(':') || bucket.contains('@')) {
    return refuse(url,
                  "has a ':' or '@' where the bucket stands: give the server's address as a "
                  "parameter, s3://bucket?endpoint=http://host:9000, and keys in the environment")
        .error();
  }
  return refuse(url,
                fmt::format("names the bucket '{}': expected 3 to 63 letters, digits, '.', '-' "
                            "or '_', such as s3://my-bucket",
                            bucket))
      .error();
}

Status check_memory_name(std::string_view name, std::string_view url) {
  if (!name.empty()) return {};
  return refuse(url, "names no memory store: expected memory://name").error();
}

Result<StoreUrl::Scheme> parse_scheme(std::string_view scheme, std::string_view url) {
  if (scheme == "s3") return StoreUrl::Scheme::kS3;
  if (scheme == "file") return StoreUrl::Scheme::kFile;
  if (scheme == "memory") return StoreUrl::Scheme::kMemory;
  if (scheme == "gs" || scheme == "gcs") {
    return failure(
        StatusCode::kUnsupported,
        fmt::format("'{}': gs:// is not supported yet; GCS works through its S3 XML API: "
                    "s3://bucket?endpoint=https://storage.googleapis.com",
                    url));
  }
  if (scheme == "az" || scheme == "abfs" || scheme == "wasb") {
    return failure(
        StatusCode::kUnsupported,
        fmt::format("'{}': Azure Blob storage is not supported yet; use s3:// or file://", url));
  }
  if (scheme == "http" || scheme == "https") {
    return refuse(url,
                  "is a server's address: name a bucket and give the address as a parameter, "
                  "s3://bucket?endpoint=https://host");
  }
  return refuse(url, fmt::format("has the unknown scheme '{}': expected {}", scheme, kExamples));
}

Result<ObjectUrl> parse_file_url(std::string_view rest, std::string_view query,
                                 std::string_view url) {
  if (!rest.starts_with('/')) {
    return refuse(url,
                  fmt::format("has no absolute path: expected file:///directory, or ./{} for a "
                              "path from here",
                              quotable(rest)));
  }
  MR_ASSIGN_OR_RETURN(auto parameters, parse_store_parameters(StoreUrl::Scheme::kFile, query, url));
  MR_ASSIGN_OR_RETURN(const std::string path, percent_decode(rest, url));
  return ObjectUrl{{StoreUrl::Scheme::kFile, without_trailing_slashes(path), "", parameters}, ""};
}

Result<ObjectUrl> parse_bucket_url(StoreUrl::Scheme scheme, std::string_view rest,
                                   std::string_view query, std::string_view url) {
  const auto slash = std::min(rest.find('/'), rest.size());
  const std::string_view root = rest.substr(0, slash);
  MR_RETURN_IF_ERROR(scheme == StoreUrl::Scheme::kS3 ? check_bucket(root, url)
                                                     : check_memory_name(root, url));
  MR_ASSIGN_OR_RETURN(const std::string decoded_root, percent_decode(root, url));
  if (decoded_root.contains('/') || decoded_root.contains('?')) {
    return refuse(url, "has an encoded '/' or '?' in its name: use letters, digits, '-' and '_'");
  }
  MR_ASSIGN_OR_RETURN(auto parameters, parse_store_parameters(scheme, query, url));
  std::string_view path = rest.substr(slash);
  if (!path.empty()) path.remove_prefix(1);
  MR_ASSIGN_OR_RETURN(std::string key, percent_decode(path, url));
  return ObjectUrl{{scheme, decoded_root, "", std::move(parameters)}, std::move(key)};
}

}  // namespace

std::string StoreUrl::parameter(const std::string& name, std::string otherwise) const {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return otherwise;
  return found->second;
}

StoreUrl StoreUrl::without_prefix() const {
  StoreUrl bare = *this;
  bare.prefix.clear();
  return bare;
}

std::string StoreUrl::to_string() const {
  std::string text;
  switch (scheme) {
    case Scheme::kFile:
      if (!root.starts_with('/')) return root;  // A relative path has no form as a URL.
      text = "file://" + percent_encode(root);
      break;
    case Scheme::kMemory:
      text = "memory://" + percent_encode(root);
      break;
    case Scheme::kS3:
      text = "s3://" + root;
      break;
  }
  if (!prefix.empty()) text += "/" + percent_encode(prefix);
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    text += separator + name + "=" + percent_encode(value);
    separator = '&';
  }
  return text;
}

bool looks_like_store_url(std::string_view text) {
  return text.contains("://") || text.starts_with("file:") || is_bare_path(text);
}

Result<ObjectUrl> parse_object_url(std::string_view text) {
  const std::string shown = quotable(text);
  if (text.empty()) {
    return refuse("", fmt::format("is no store: expected {}", kExamples));
  }
  if (text.size() > kStoreUrlBytesMax) {
    return refuse(shown, fmt::format("is {} bytes long: expected at most {}", text.size(),
                                     kStoreUrlBytesMax));
  }
  MR_RETURN_IF_ERROR(check_control_characters(text, shown));
  if (is_bare_path(text)) {
    return ObjectUrl{{StoreUrl::Scheme::kFile, without_trailing_slashes(text), "", {}}, ""};
  }
  MR_RETURN_IF_ERROR(check_characters(text, shown));
  auto separator = text.find("://");
  if (separator == std::string_view::npos && text.starts_with("file:")) {
    return parse_file_url(text.substr(5), "", shown);
  }
  if (separator == std::string_view::npos) {
    return refuse(shown, fmt::format("is neither a URL nor a path: expected {}", kExamples));
  }
  MR_ASSIGN_OR_RETURN(const StoreUrl::Scheme scheme,
                      parse_scheme(text.substr(0, separator), shown));
  std::string_view rest = text.substr(separator + 3);
  const auto question = std::min(rest.find('?'), rest.size());
  std::string_view query = rest.substr(question);
  rest = rest.substr(0, question);
  if (!query.empty()) query.remove_prefix(1);
  if (scheme == StoreUrl::Scheme::kFile) return parse_file_url(rest, query, shown);
  return parse_bucket_url(scheme, rest, query, shown);
}

Result<StoreUrl> parse_store_url(std::string_view text) {
  MR_ASSIGN_OR_RETURN(ObjectUrl object, parse_object_url(text));
  std::string_view prefix = object.key;
  while (prefix.starts_with('/'))
    prefix.remove_prefix(1);
  while (prefix.ends_with('/'))
    prefix.remove_suffix(1);
  object.store.prefix = std::string(prefix);
  return std::move(object.store);
}

}  // namespace millrace
