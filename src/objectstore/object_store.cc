#include "objectstore/object_store.h"

#include <fmt/format.h>

namespace millrace {

namespace {

// Length of the UTF-8 sequence at the start of `text`, 0 when there is none. Refuses overlong
// forms, surrogates and what lies beyond U+10FFFF: stores answer those with errors of their own
// making.
std::size_t utf8_sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

bool is_metadata_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

Status invalid(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

}  // namespace

Result<GetResult> ObjectStore::get(const RequestContext& context, GetRequest request) {
  Waiter<GetResult> waiter;
  get_range(context, std::move(request), waiter.completion());
  return waiter.wait();
}

Status validate_key(const ObjectKey& key) {
  const std::string& text = key.value();
  if (text.empty()) return invalid("an object key must not be empty");
  if (text.size() > kKeyBytesMax) {
    return invalid(fmt::format("an object key has at most {} bytes, this one has {}: '{}...'",
                               kKeyBytesMax, text.size(), text.substr(0, 64)));
  }
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\0') return invalid(fmt::format("an object key has a NUL at byte {}", i));
    const std::size_t length = utf8_sequence_length(std::string_view(text).substr(i));
    if (length == 0) return invalid(fmt::format("an object key is not UTF-8 at byte {}", i));
    i += length;
  }
  return {};
}

Status validate_metadata(const ObjectMetadata& metadata) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : metadata) {
    bytes += name.size() + value.size();
    if (name.empty()) return invalid("a metadata name must not be empty");
    for (const char c : name) {
      if (is_metadata_name_character(c)) continue;
      return invalid(
          fmt::format("metadata name '{}' may hold only lower-case letters, digits and '-'", name));
    }
    for (const char c : value) {
      if (c >= ' ' && c <= '~') continue;
      return invalid(fmt::format("the value of metadata '{}' must be printable ASCII", name));
    }
    // HTTP trims white space around header values, so it would not come back as it went.
    if (!value.empty() && (value.front() == ' ' || value.back() == ' ')) {
      return invalid(
          fmt::format("the value of metadata '{}' must not begin or end with a space", name));
    }
  }
  if (bytes > kMetadataBytesMax) {
    return invalid(
        fmt::format("metadata takes {} bytes, the limit is {}", bytes, kMetadataBytesMax));
  }
  return {};
}

}  // namespace millrace
