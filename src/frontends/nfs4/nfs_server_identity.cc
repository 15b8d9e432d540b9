#include "frontends/nfs4/nfs_server_identity.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/checked_line.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

constexpr std::string_view kIdentityHeader = "millrace-nfs-server 1\n";
constexpr std::uint64_t kIdentityBytesMax = 256;
constexpr std::size_t kTokenDigits = 32;

struct StoredIdentity {
  std::string token;
  std::uint32_t life = 0;
};

std::string identity_text(const StoredIdentity& identity) {
  return std::string(kIdentityHeader) +
         checked_line(fmt::format("{} {}", identity.token, identity.life));
}

// Nothing when the text is not as it was written.
std::optional<StoredIdentity> parse_identity(std::string_view text) {
  if (!text.starts_with(kIdentityHeader) || !text.ends_with('\n')) return std::nullopt;
  text.remove_prefix(kIdentityHeader.size());
  if (text.empty()) return std::nullopt;
  text.remove_suffix(1);
  const std::optional<std::string_view> line = checked_text(text);
  if (!line || line->size() <= kTokenDigits + 1 || (*line)[kTokenDigits] != ' ')
    return std::nullopt;
  const std::string_view token = line->substr(0, kTokenDigits);
  const bool is_hex = std::ranges::all_of(
      token, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  std::uint32_t life = 0;
  const char* const end = line->data() + line->size();
  const auto parsed = std::from_chars(line->data() + kTokenDigits + 1, end, life);
  if (!is_hex || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return StoredIdentity{std::string(token), life};
}

}  // namespace

NfsServerIdentity::NfsServerIdentity(const std::string& token, std::uint32_t life)
    : owner_{.minor_id = 0, .major_id = "millrace-" + token, .scope = "millrace-" + token},
      life_(life) {}

Result<NfsServerIdentity> NfsServerIdentity::open(Disk& disk, const std::string& path,
                                                  Random& random) {
  // Should the file be lost, a random start keeps lives apart all the same.
  StoredIdentity identity{random.token(), static_cast<std::uint32_t>(random.next())};
  const Result<std::string> text = read_small_file(disk, path, kIdentityBytesMax);
  if (text) {
    const std::optional<StoredIdentity> stored = parse_identity(*text);
    if (!stored) {
      return failure(StatusCode::kCorruption,
                     fmt::format("{} is damaged, or is no identity of an NFS server; move it away, "
                                 "and clients will take this for another server",
                                 path));
    }
    identity = *stored;
  } else if (text.error() != StatusCode::kNotFound) {
    return failure(text.error());
  }
  ++identity.life;
  MR_RETURN_IF_ERROR(replace_small_file(disk, path, identity_text(identity)));
  return NfsServerIdentity(identity.token, identity.life);
}

}  // namespace millrace
