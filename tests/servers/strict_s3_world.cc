#include "tests/servers/strict_s3_world.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/ascii.h"
#include "tests/servers/strict_s3_digest.h"

namespace millrace::testing {
namespace {

constexpr size_t kMetadataBytesMax = 2048;

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string_view without_quotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    return etag.substr(1, etag.size() - 2);
  }
  return etag;
}

S3Result<void> verify_content_md5(const S3Call& call, const std::string& md5_raw) {
  if (!call.has_header("Content-MD5")) return {};
  const auto claimed = from_base64(call.header("Content-MD5"));
  if (!claimed || claimed->size() != 16) {
    return s3_error(400, "InvalidDigest", "The Content-MD5 you specified is not valid.");
  }
  if (*claimed == md5_raw) return {};
  return s3_error(400, "BadDigest",
                  "The Content-MD5 you specified did not match what we received.");
}

}  // namespace

S3ObjectPtr S3Bucket::find(const std::string& key) const {
  const auto it = objects.find(key);
  return it == objects.end() ? nullptr : it->second;
}

S3Upload* S3Bucket::find_upload(const std::string& id, const std::string& key) {
  const auto it = uploads.find(id);
  return it == uploads.end() || it->second.key != key ? nullptr : &it->second;
}

S3Time S3World::now() const { return std::chrono::system_clock::now() + quirks.clock_offset; }

bool take_one(int& times) {
  if (times <= 0) return false;
  if (times != kAlways) --times;
  return true;
}

std::string checksum_header(std::string_view algorithm) {
  return "x-amz-checksum-" + lower_case(algorithm);
}

S3Checksum full_checksum(std::string_view algorithm, std::string_view body) {
  return {std::string(algorithm), "FULL_OBJECT", to_base64(s3_checksum(algorithm, body).value())};
}

S3Result<S3Payload> verify_payload(const S3Call& call) {
  constexpr std::string_view kPrefix = "x-amz-checksum-";
  S3Payload payload;
  payload.md5 = md5(call.http.body);
  if (auto same = verify_content_md5(call, payload.md5); !same) {
    return std::unexpected(same.error());
  }
  if (!call.checksums) return payload;
  for (const auto& [field, value] : call.http.headers) {
    const std::string name = lower_case(field);
    if (!name.starts_with(kPrefix) || name == "x-amz-checksum-algorithm" ||
        name == "x-amz-checksum-type" || name == "x-amz-checksum-mode") {
      continue;
    }
    const std::string algorithm = upper(name.substr(kPrefix.size()));
    const auto computed = s3_checksum(algorithm, call.http.body);
    if (!computed || payload.checksum) {
      return s3_error(400, "InvalidRequest",
                      "Expecting a single x-amz-checksum- header of a known algorithm.");
    }
    const auto claimed = from_base64(value);
    if (!claimed || claimed->size() != computed->size()) {
      return s3_error(400, "InvalidRequest", "Value for " + name + " header is invalid.");
    }
    if (*claimed != *computed) {
      return s3_error(400, "BadDigest",
                      "The " + algorithm + " you specified did not match the calculated checksum.");
    }
    payload.checksum = S3Checksum{algorithm, "FULL_OBJECT", value};
  }
  const std::string announced = call.header("x-amz-sdk-checksum-algorithm");
  if (!announced.empty() && (!payload.checksum || payload.checksum->algorithm != announced)) {
    return s3_error(400, "InvalidRequest",
                    "x-amz-sdk-checksum-algorithm specified, but no corresponding checksum.");
  }
  return payload;
}

S3Result<S3Properties> read_properties(const S3Call& call) {
  constexpr std::string_view kPrefix = "x-amz-meta-";
  S3Properties properties;
  if (call.has_header("Content-Type")) properties.content_type = call.header("Content-Type");
  size_t bytes = 0;
  for (const auto& [field, value] : call.http.headers) {
    const std::string name = lower_case(field);
    if (!name.starts_with(kPrefix)) continue;
    bytes += name.size() - kPrefix.size() + value.size();
    properties.metadata[name.substr(kPrefix.size())] = value;
  }
  if (bytes > kMetadataBytesMax) {
    return s3_error(400, "MetadataTooLarge",
                    "Your metadata headers exceed the maximum allowed metadata size.");
  }
  return properties;
}

bool etag_listed(const std::string& header, const std::string& etag) {
  std::string_view rest = header;
  while (!rest.empty()) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    while (item.starts_with(' ')) {
      item.remove_prefix(1);
    }
    if (item == "*" || without_quotes(item) == without_quotes(etag)) return true;
  }
  return false;
}

S3Result<void> check_write_conditions(const S3Call& call, S3World& world, const S3Object* existing,
                                      S3ConditionRules rules) {
  const std::string* none_match = call.http.headers.find("If-None-Match");
  const std::string* match = call.http.headers.find("If-Match");
  if ((none_match || match) && take_one(world.quirks.conditional_conflicts)) {
    return s3_error(409, "ConditionalRequestConflict",
                    "A conflicting conditional operation is in progress against this resource.");
  }
  const auto failed = [](const char* condition) {
    auto error = s3_error(412, "PreconditionFailed",
                          "At least one of the pre-conditions you specified did not hold");
    error.error().elements = {{"Condition", condition}};
    return error;
  };
  if ((none_match && *none_match != "*") || (match && *match == "*") || (none_match && match)) {
    return s3_error(501, "NotImplemented",
                    "A header you provided implies functionality that is not implemented.");
  }
  if (none_match && !rules.ignore_none_match && existing) return failed("If-None-Match");
  if (match && !rules.ignore_match) {
    if (rules.refuse_quoted_match && match->starts_with('"')) return failed("If-Match");
    if (!existing) return s3_error(404, "NoSuchKey", "The specified key does not exist.");
    if (!etag_listed(*match, existing->etag)) return failed("If-Match");
  }
  return {};
}

}  // namespace millrace::testing
