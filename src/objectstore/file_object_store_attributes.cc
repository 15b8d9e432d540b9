#include "objectstore/file_object_store_attributes.h"

#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "platform/file_error.h"

namespace millrace::file_object_store {
namespace {

constexpr const char* kAttributeName = "user.millrace";
constexpr std::string_view kHeader = "millrace-object 1 ";
constexpr std::size_t kRecordBytesMax = 64 * kKiB;  // The kernel's own limit for a value.

Status damaged(std::string_view why) {
  return {StatusCode::kCorruption, fmt::format("the attribute {} {}", kAttributeName, why)};
}

template <class T>
bool parse(std::string_view text, T& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

// Cuts `text` at the first `separator`, and returns what came before it.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

bool decode_line(std::string_view line, Attributes& into) {
  const std::string_view field = cut(line, ' ');
  if (field == "token") {
    into.token = line;
    return !line.empty();
  }
  if (field == "size") return parse(line, into.size);
  if (field == "modified") return parse(line, into.modified_ns);
  if (field == "crc32c") return parse(line, into.crc32c.emplace(), 16);
  if (field != "meta") return false;
  const std::string_view name = cut(line, ' ');
  into.metadata[std::string(name)] = line;
  return !name.empty();
}

}  // namespace

std::string encode_attributes(const Attributes& attributes) {
  std::string body = fmt::format("token {}\nsize {}\nmodified {}\n", attributes.token,
                                 attributes.size, attributes.modified_ns);
  if (attributes.crc32c) body += fmt::format("crc32c {:08x}\n", *attributes.crc32c);
  for (const auto& [name, value] : attributes.metadata) {
    body += fmt::format("meta {} {}\n", name, value);
  }
  return fmt::format("{}{:08x}\n{}", kHeader, crc32c(as_bytes(body)), body);
}

Result<Attributes> decode_attributes(std::string_view text) {
  if (!text.starts_with("millrace-object ")) return failure(damaged("is not ours"));
  if (!text.starts_with(kHeader)) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the attribute {} has a version that this build does not know",
                               kAttributeName));
  }
  text.remove_prefix(kHeader.size());
  std::uint32_t checksum = 0;
  if (!parse(cut(text, '\n'), checksum, 16) || checksum != crc32c(as_bytes(text))) {
    return failure(damaged("fails its checksum"));
  }
  Attributes attributes;
  while (!text.empty()) {
    const std::string_view line = cut(text, '\n');
    if (!decode_line(line, attributes)) {
      return failure(damaged(fmt::format("has a line '{}' that nobody understands", line)));
    }
  }
  return attributes;
}

Status write_attributes(const File& file, const Attributes& attributes) {
  const std::string record = encode_attributes(attributes);
  if (::fsetxattr(file.descriptor(), kAttributeName, record.data(), record.size(), 0) == 0) {
    return {};
  }
  if (errno == ENOTSUP) {
    return {StatusCode::kUnsupported,
            fmt::format("the file system of '{}' keeps no user attributes", file.path())};
  }
  return file_error(errno, "write attributes of", file.path());
}

Result<std::optional<Attributes>> read_attributes(const File& file, const struct stat& facts) {
  // Ours fit into the small one; the large one is for what others may have written there.
  std::array<char, 4096> small;
  std::string large;
  std::string_view record;
  ssize_t length = ::fgetxattr(file.descriptor(), kAttributeName, small.data(), small.size());
  if (length >= 0) {
    record = {small.data(), static_cast<std::size_t>(length)};
  } else if (errno == ERANGE) {
    large.resize(kRecordBytesMax);
    length = ::fgetxattr(file.descriptor(), kAttributeName, large.data(), large.size());
    if (length >= 0) record = std::string_view(large).substr(0, static_cast<std::size_t>(length));
  }
  if (length < 0) {
    if (errno == ENODATA || errno == ENOTSUP) return std::nullopt;
    return failure(file_error(errno, "read attributes of", file.path()));
  }
  Result<Attributes> attributes = decode_attributes(record);
  if (!attributes) {
    log_warn("ignoring the attributes of a file",
             {{"path", file.path()}, {"reason", attributes.error().message()}});
    return std::nullopt;
  }
  const bool same_content = attributes->size == static_cast<std::uint64_t>(facts.st_size) &&
                            attributes->modified_ns == modified_ns(facts);
  if (!same_content) return std::nullopt;
  return std::move(*attributes);
}

ObjectIdentity identity_of(const struct stat& facts, const std::optional<Attributes>& attributes) {
  return ObjectIdentity(fmt::format("{}-{:x}-{:x}-{:x}", attributes ? attributes->token : "f",
                                    facts.st_ino, static_cast<std::uint64_t>(modified_ns(facts)),
                                    facts.st_size));
}

std::int64_t modified_ns(const struct stat& facts) {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  // A file may claim any time; wrapping is as good as any other number, undefined behaviour is not.
  const auto seconds = static_cast<std::uint64_t>(facts.st_mtim.tv_sec);
  return static_cast<std::int64_t>(seconds * kNanosecondsPerSecond +
                                   static_cast<std::uint64_t>(facts.st_mtim.tv_nsec));
}

WallTime modified_time(const struct stat& facts) {
  return WallTime(std::chrono::nanoseconds(modified_ns(facts)));
}

}  // namespace millrace::file_object_store
