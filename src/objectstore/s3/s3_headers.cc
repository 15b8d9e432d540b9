#include "objectstore/s3/s3_headers.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/base64.h"
#include "base/checksum.h"
#include "base/hex.h"
#include "base/time_format.h"

namespace millrace::s3 {
namespace {

constexpr std::string_view kMetadataPrefix = "x-amz-meta-";

std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

template <class Integer>
std::string big_endian_base64(Integer value) {
  std::array<std::byte, sizeof(Integer)> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * (bytes.size() - 1 - i)));
  }
  return base64_encode(bytes);
}

std::unexpected<Status> refuse(StatusCode code, const GetRequest& request, std::string_view why) {
  return failure(code,
                 fmt::format("the answer for '{}' was refused: {}", request.key.value(), why));
}

// Compares the body with whatever checksum of the whole object the answer brings. A composite one
// ("...-3", of parts) covers the parts' checksums and not the bytes, so it cannot be used here.
Status check_whole(const GetRequest& request, const HttpHeaders& headers, ByteView body) {
  const bool composite = headers.get("x-amz-checksum-type") == "COMPOSITE";
  const std::string_view crc32 = headers.get("x-amz-checksum-crc32c");
  const std::string_view crc64 = headers.get("x-amz-checksum-crc64nvme");
  const std::string_view ours = own_metadata(headers, kChecksumMetadata);
  std::string expected;
  std::string actual;
  if (!crc32.empty() && !composite && !crc32.contains('-')) {
    expected = crc32;
    actual = encode_crc32c(crc32c(body));
  } else if (!ours.empty()) {
    expected = ours;
    actual = fmt::format("{:08x}", crc32c(body));
  } else if (!crc64.empty() && !composite && !crc64.contains('-')) {
    expected = crc64;
    actual = big_endian_base64(crc64nvme(body));
  }
  if (expected == actual) return {};
  return {StatusCode::kCorruption,
          fmt::format("the bytes of '{}' have checksum {}, the store says {}", request.key.value(),
                      actual, expected)};
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!take(text, "bytes ")) return std::nullopt;
  const auto first = take_number(text);
  if (!first || !take(text, "-")) return std::nullopt;
  const auto last = take_number(text);
  if (!last || !take(text, "/")) return std::nullopt;
  const auto total = take_number(text);
  if (!total || !text.empty() || *last < *first || *last >= *total) return std::nullopt;
  return ContentRange{{*first, *last - *first + 1}, *total};
}

Result<ObjectInfo> parse_object_headers(const ObjectKey& key, const HttpHeaders& headers) {
  ObjectInfo info;
  info.key = key;
  info.identity = ObjectIdentity(std::string(headers.get("etag")));
  if (info.identity.value().empty()) {
    return failure(StatusCode::kInternal,
                   fmt::format("the store gave no ETag for '{}'", key.value()));
  }
  std::string_view length = headers.get("content-length");
  const auto size = take_number(length);
  if (!size || !length.empty()) {
    return failure(StatusCode::kInternal,
                   fmt::format("the store gave no length for '{}'", key.value()));
  }
  info.size = *size;
  if (auto modified = parse_http_date(headers.get("last-modified"))) info.modified = *modified;
  for (const HttpHeader& header : headers.all()) {
    std::string name = lower_case(header.name);
    if (!name.starts_with(kMetadataPrefix)) continue;
    name.erase(0, kMetadataPrefix.size());
    if (name == kChecksumMetadata || name == kUploadTokenMetadata) continue;
    info.metadata.emplace(std::move(name), header.value);
  }
  return info;
}

std::string_view own_metadata(const HttpHeaders& headers, std::string_view name) {
  return headers.get(fmt::format("{}{}", kMetadataPrefix, name));
}

void add_metadata_headers(const ObjectMetadata& metadata, std::vector<HttpHeader>& headers) {
  for (const auto& [name, value] : metadata)
    add_own_metadata(name, value, headers);
}

void add_own_metadata(std::string_view name, std::string value, std::vector<HttpHeader>& headers) {
  headers.push_back({fmt::format("{}{}", kMetadataPrefix, name), std::move(value)});
}

void add_condition_headers(const WriteCondition& condition, std::vector<HttpHeader>& headers) {
  switch (condition.kind) {
    case WriteCondition::Kind::kNone:
      return;
    case WriteCondition::Kind::kIfAbsent:
      headers.push_back({"if-none-match", "*"});
      return;
    case WriteCondition::Kind::kIfIdentity:
      headers.push_back({"if-match", condition.identity.value()});
      return;
  }
}

std::string encode_crc32c(std::uint32_t crc) { return big_endian_base64(crc); }

Result<GetResult> parse_get(const GetRequest& request, HttpResponse response) {
  GetResult result;
  result.data = std::move(response.body);
  result.info.key = request.key;
  result.info.identity = ObjectIdentity(std::string(response.headers.get("etag")));
  if (auto modified = parse_http_date(response.headers.get("last-modified"))) {
    result.info.modified = *modified;
  }
  if (result.info.identity.value().empty()) {
    return refuse(StatusCode::kInternal, request, "it has no ETag");
  }
  // If-Match was sent, but not every store honours it.
  if (request.identity && result.info.identity != *request.identity) {
    return refuse(StatusCode::kPreconditionFailed, request,
                  fmt::format("the object is now {}, not {}", result.info.identity.value(),
                              request.identity->value()));
  }
  result.info.size = result.data.size();
  if (response.status == 206) {
    const auto got = parse_content_range(response.headers.get("content-range"));
    if (!got) return refuse(StatusCode::kCorruption, request, "its Content-Range is malformed");
    result.info.size = got->total;
    const ByteRange asked = request.range.value_or(ByteRange{0, got->total});
    const std::uint64_t length =
        asked.offset < got->total ? std::min(asked.length, got->total - asked.offset) : 0;
    if (got->range != ByteRange{asked.offset, length} || result.data.size() != length) {
      return refuse(
          StatusCode::kCorruption, request,
          fmt::format("it has bytes {}+{} ({} received), asked for {}+{}", got->range.offset,
                      got->range.length, result.data.size(), asked.offset, length));
    }
  } else if (request.range &&
             (request.range->offset != 0 || request.range->length < result.data.size())) {
    return refuse(StatusCode::kInternal, request, "the store ignores ranges");
  }
  if (!request.range)
    MR_RETURN_IF_ERROR(check_whole(request, response.headers, result.data.bytes()));
  return result;
}

}  // namespace millrace::s3
