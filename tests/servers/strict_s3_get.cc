// GetObject and HeadObject, and the ways in which a GET can go wrong.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "tests/servers/strict_s3_digest.h"
#include "tests/servers/strict_s3_operations.h"

namespace millrace::testing {
namespace {

struct Slice {
  uint64_t begin = 0;
  uint64_t end = 0;  // One past the last byte.
  bool ranged = false;
};

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// "bytes=first-last", "bytes=first-" and "bytes=-count". Where AWS ignores a header that it cannot
// read and sends everything, we refuse: a client that meant something should hear about it.
S3Result<Slice> parse_range(const std::string& header, uint64_t size) {
  if (header.empty()) return Slice{0, size, false};
  const auto invalid = [&] {
    return s3_error(400, "InvalidArgument", "The Range header is not understood: " + header);
  };
  if (!header.starts_with("bytes=")) return invalid();
  const std::string_view spec = std::string_view(header).substr(6);
  const size_t dash = spec.find('-');
  if (dash == std::string_view::npos) return invalid();
  const auto first = parse_number(spec.substr(0, dash));
  const auto last = parse_number(spec.substr(dash + 1));
  if ((dash > 0 && !first) || (dash + 1 < spec.size() && !last) || (!first && !last)) {
    return invalid();
  }
  if (first && last && *first > *last) return invalid();
  Slice slice{0, size, true};
  if (!first) {
    slice.begin = size - std::min(size, *last);
  } else {
    slice.begin = *first;
    if (last) slice.end = std::min(size, *last + 1);
  }
  if (slice.begin < size && slice.begin < slice.end) return slice;
  auto error = s3_error(416, "InvalidRange", "The requested range is not satisfiable");
  error.error().elements = {{"RangeRequested", header}, {"ActualObjectSize", std::to_string(size)}};
  error.error().headers.add("Content-Range", fmt::format("bytes */{}", size));
  return error;
}

// An object of equal size with every byte different, as if somebody had replaced it.
S3ObjectPtr replacement_for(const S3Object& old, S3Time now) {
  auto object = std::make_shared<S3Object>(old);
  for (char& c : object->body) {
    c = static_cast<char>(~c);
  }
  object->etag = '"' + to_hex(md5(object->body + "replaced")) + '"';
  if (object->checksum) object->checksum = full_checksum("CRC64NVME", object->body);
  object->modified = now;
  return object;
}

// The quirks that apply to one GET, taken under the lock and applied after it.
struct GetFaults {
  bool wrong_content_range = false;
  bool ignore_range = false;
  bool short_body = false;
  bool long_body = false;
  bool exceed_range = false;
  bool flip_bit = false;
  bool missing_etag = false;
  bool ignore_if_match = false;
};

GetFaults take_faults(StrictS3Quirks& quirks, const S3Call& call) {
  GetFaults faults;
  faults.ignore_if_match = quirks.ignore_if_match_on_get;
  if (call.http.method != "GET") return faults;
  const bool ranged = call.has_header("Range");
  faults.wrong_content_range = ranged && take_one(quirks.wrong_content_range);
  faults.ignore_range = ranged && take_one(quirks.ranged_get_answers_200_whole);
  faults.exceed_range = ranged && take_one(quirks.body_exceeds_range);
  faults.short_body = take_one(quirks.short_body);
  faults.long_body = take_one(quirks.long_body);
  faults.flip_bit = take_one(quirks.flip_bit_in_get_body);
  faults.missing_etag = take_one(quirks.missing_etag);
  return faults;
}

S3Result<void> check_read_conditions(const S3Call& call, const S3Object& object,
                                     bool ignore_if_match) {
  if (call.has_header("If-Match") && !ignore_if_match &&
      !etag_listed(call.header("If-Match"), object.etag)) {
    return s3_error(412, "PreconditionFailed",
                    "At least one of the pre-conditions you specified did not hold");
  }
  if (call.has_header("If-None-Match") && etag_listed(call.header("If-None-Match"), object.etag)) {
    auto error = s3_error(304, "NotModified", "Not Modified");
    error.error().headers.add("ETag", object.etag);
    return error;
  }
  return {};
}

void add_object_headers(const S3Call& call, const S3Object& object, bool whole,
                        HttpResponse& response) {
  response.headers.add("ETag", object.etag);
  response.headers.add("Last-Modified", http_date(object.modified));
  response.headers.add("Accept-Ranges", "bytes");
  response.headers.add("Content-Type", object.properties.content_type);
  for (const auto& [name, value] : object.properties.metadata) {
    response.headers.add("x-amz-meta-" + name, value);
  }
  if (whole && object.checksum && call.checksums &&
      call.header("x-amz-checksum-mode") == "ENABLED") {
    response.headers.add(checksum_header(object.checksum->algorithm), object.checksum->value);
    response.headers.add("x-amz-checksum-type", object.checksum->type);
  }
}

void apply_body_faults(const GetFaults& faults, HttpResponse& response) {
  if (faults.flip_bit && !response.body.empty()) response.body[response.body.size() / 2] ^= 0x10;
  if (faults.missing_etag) response.headers.remove("ETag");
  if (faults.short_body) response.close_after_bytes = response.body.size() / 2;
  if (faults.long_body) {
    response.declared_length = response.body.size();
    response.body += "sixteen too many";
  }
}

}  // namespace

S3Result<HttpResponse> get_object(S3World& world, const S3Call& call) {
  S3ObjectPtr object;
  GetFaults faults;
  {
    std::lock_guard lock(world.mutex);
    S3Bucket& bucket = world.buckets.at(call.bucket);
    object = bucket.find(call.key);
    if (!object) return no_such_key();
    auto& countdown = world.quirks.etag_changes_after_gets;
    if (call.http.method == "GET" && countdown && (*countdown)-- == 0) {
      countdown.reset();
      object = bucket.objects[call.key] = replacement_for(*object, call.now);
    }
    faults = take_faults(world.quirks, call);
  }
  if (auto wanted = check_read_conditions(call, *object, faults.ignore_if_match); !wanted) {
    return std::unexpected(wanted.error());
  }
  const uint64_t size = object->body.size();
  const auto slice = parse_range(faults.ignore_range ? "" : call.header("Range"), size);
  if (!slice) return std::unexpected(slice.error());

  HttpResponse response;
  add_object_headers(call, *object, !slice->ranged, response);
  uint64_t end = slice->end;
  if (slice->ranged) {
    const uint64_t shift = faults.wrong_content_range ? 1 : 0;
    response.status = 206;
    response.headers.add("Content-Range", fmt::format("bytes {}-{}/{}", slice->begin + shift,
                                                      slice->end - 1 + shift, size));
    if (faults.exceed_range) end += 1;
  }
  if (call.http.method == "HEAD") {
    response.declared_length = end - slice->begin;
    return response;
  }
  response.body = object->body.substr(slice->begin, end - slice->begin);
  if (end > size) response.body += '!';
  apply_body_faults(faults, response);
  return response;
}

}  // namespace millrace::testing
