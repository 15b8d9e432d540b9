#include "dataset/tar_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "dataset/tar_header.h"

namespace millrace {
namespace {

// More than any tool writes before one member, and what one of them may take in memory.
constexpr int kExtensionsMax = 16;
constexpr std::uint64_t kExtensionBytesMax = kMiB;

std::string_view field_bytes(ByteView block, TarField field) {
  return as_text(block.subspan(field.offset, field.length));
}

// Text ends at a NUL or with its field.
std::string_view field_text(ByteView block, TarField field) {
  const std::string_view bytes = field_bytes(block, field);
  return bytes.substr(0, bytes.find('\0'));
}

// Octal digits between spaces and NULs.
std::optional<std::int64_t> octal_number(std::string_view bytes) {
  bytes.remove_prefix(std::min(bytes.find_first_not_of(' '), bytes.size()));
  std::uint64_t value = 0;
  while (!bytes.empty() && bytes.front() >= '0' && bytes.front() <= '7') {
    value = value * 8 + static_cast<std::uint64_t>(bytes.front() - '0');
    bytes.remove_prefix(1);
  }
  // A field has 12 bytes at most, so that no more than 36 bits come together.
  if (bytes.find_first_not_of(std::string_view(" \0", 2)) != std::string_view::npos) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

// GNU: the highest bit of the field says that the rest is a binary number, highest byte first.
std::optional<std::int64_t> binary_number(std::string_view bytes) {
  const bool negative = bytes.front() == '\xff';
  const std::uint64_t fill = negative ? 0xff : 0;
  std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
  for (std::size_t n = 1; n < bytes.size(); ++n) {
    // What leaves at the top must be sign only.
    if ((value >> 56) != fill) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(bytes[n]);
  }
  if ((value >> 63 != 0) != negative) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> field_number(ByteView block, TarField field) {
  const std::string_view bytes = field_bytes(block, field);
  if (bytes.front() == '\x80' || bytes.front() == '\xff') return binary_number(bytes);
  return octal_number(bytes);
}

bool checksum_holds(ByteView block) {
  const auto stored = octal_number(field_bytes(block, kTarChecksumField));
  std::int64_t unsigned_sum = 0;
  std::int64_t signed_sum = 0;  // Some tools of old added signed bytes.
  for (std::size_t n = 0; n < block.size(); ++n) {
    const bool own = n - kTarChecksumField.offset < kTarChecksumField.length;
    const auto byte = own ? std::byte{' '} : block[n];
    unsigned_sum += static_cast<unsigned char>(byte);
    signed_sum += static_cast<signed char>(byte);
  }
  return stored && (*stored == unsigned_sum || *stored == signed_sum);
}

std::string header_name(ByteView block) {
  const std::string_view name = field_text(block, kTarNameField);
  const std::string_view prefix = field_text(block, kTarPrefixField);
  // GNU's format has "ustar " here, and other things in place of the prefix.
  const bool posix = field_bytes(block, kTarMagicField).starts_with(std::string_view("ustar\0", 6));
  return posix && !prefix.empty() ? fmt::format("{}/{}", prefix, name) : std::string(name);
}

TarKind kind_of(char type, std::string_view name) {
  switch (type) {
    // Before ustar, directories were files whose name ends in '/'.
    case '\0':
      return name.ends_with('/') ? TarKind::kDirectory : TarKind::kFile;
    case '0':
    case '7':
      return TarKind::kFile;
    case '1':
      return TarKind::kHardLink;
    case '2':
      return TarKind::kSymlink;
    case '5':
      return TarKind::kDirectory;
    default:
      return TarKind::kOther;
  }
}

// Directories, links, devices and FIFOs have none, whatever their size says.
bool has_content(char type, TarKind kind) {
  return kind == TarKind::kFile ||
         (kind == TarKind::kOther && type != '3' && type != '4' && type != '6');
}

bool is_extension(char type) {
  return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K';
}

std::int64_t nanoseconds_of_seconds(std::int64_t seconds) {
  constexpr std::int64_t kSecondsMax = std::int64_t{1} << 33;
  return std::clamp(seconds, -kSecondsMax, kSecondsMax) * 1'000'000'000;
}

}  // namespace

TarReader::TarReader(ReadAt read_at, std::uint64_t archive_bytes)
    : read_at_(std::move(read_at)), archive_bytes_(std::min(archive_bytes, kTarUnknownBytes)) {}

Status TarReader::at_offset(const Status& status) const {
  return status.with_context(fmt::format("tar header at byte {}", offset_));
}

Status TarReader::damaged(std::string_view why) const {
  return at_offset(Status(StatusCode::kCorruption, std::string(why)));
}

Result<std::optional<TarReadMember>> TarReader::next() {
  MR_RETURN_IF_ERROR(failed_);
  if (ended_) return std::nullopt;
  auto result = read_next();
  if (!result) failed_ = result.error();
  if (result && !result->has_value()) ended_ = true;
  return result;
}

Result<std::optional<TarReadMember>> TarReader::read_next() {
  const std::uint64_t header_offset = offset_;
  TarAttributes local;
  bool member_must_follow = false;
  for (int extensions = 0;; ++extensions) {
    MR_ASSIGN_OR_RETURN(const std::optional<Block> block, read_header());
    if (!block && member_must_follow) {
      return failure(damaged("the archive ends after an extended header"));
    }
    if (!block) return std::nullopt;
    const char type = field_bytes(*block, kTarTypeField).front();
    if (!is_extension(type)) {
      MR_ASSIGN_OR_RETURN(TarReadMember member, read_member(type, *block, local, header_offset));
      return member;
    }
    if (extensions == kExtensionsMax) {
      return failure(
          damaged(fmt::format("more than {} extended headers in a row", kExtensionsMax)));
    }
    // A global header alone is what git makes of an empty tree.
    member_must_follow = member_must_follow || type != 'g';
    MR_RETURN_IF_ERROR(read_attributes(type, *block, local));
  }
}

Result<std::optional<TarReader::Block>> TarReader::read_header() {
  // Also when the last member is not filled up to a block: its content is all there.
  if (offset_ >= archive_bytes_) return std::nullopt;
  Block block;
  MR_ASSIGN_OR_RETURN(const std::size_t filled, read_at_(offset_, block));
  if (filled == 0 && archive_bytes_ == kTarUnknownBytes) return std::nullopt;
  if (filled < block.size()) return failure(damaged("the archive ends inside it"));
  if (std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; })) {
    has_end_marker_ = true;
    return std::nullopt;
  }
  if (!checksum_holds(block)) return failure(damaged("its checksum does not hold"));
  return block;
}

Result<std::string> TarReader::read_extension(std::uint64_t size) {
  if (size > kExtensionBytesMax) {
    return failure(at_offset(Status(
        StatusCode::kUnsupported,
        fmt::format("an extended header of {} bytes, the most is {}", size, kExtensionBytesMax))));
  }
  // Before memory is taken for it.
  if (archive_bytes_ - offset_ < kTarBlockBytes + size) {
    return failure(damaged("the archive ends inside an extended header"));
  }
  std::string bytes(size, '\0');
  MR_ASSIGN_OR_RETURN(const std::size_t filled,
                      read_at_(offset_ + kTarBlockBytes,
                               std::as_writable_bytes(std::span(bytes.data(), bytes.size()))));
  if (filled < size) return failure(damaged("the archive ends inside an extended header"));
  offset_ += kTarBlockBytes + tar_padded(size);
  return bytes;
}

Status TarReader::read_attributes(char type, const Block& block, TarAttributes& local) {
  const auto size = field_number(block, kTarSizeField);
  if (!size || *size < 0) return damaged("the size of an extended header is no number");
  const std::uint64_t at = offset_;
  MR_ASSIGN_OR_RETURN(const std::string bytes, read_extension(static_cast<std::uint64_t>(*size)));
  if (type == 'L' || type == 'K') {
    std::string text = bytes.c_str();  // Up to the first zero.
    if (text.empty() || text.size() >= kTarPathBytesMax) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("tar header at byte {}: a long name of {} bytes", at, text.size()));
    }
    (type == 'L' ? local.path : local.link_target) = std::move(text);
    return {};
  }
  return parse_pax_records(bytes, type == 'g' ? global_ : local)
      .with_context(fmt::format("tar header at byte {}", at));
}

Result<TarReadMember> TarReader::read_member(char type, const Block& block,
                                             const TarAttributes& local,
                                             std::uint64_t header_offset) {
  if (type == 'S' || type == 'M') {
    return failure(at_offset(Status(StatusCode::kUnsupported,
                                    type == 'S' ? "sparse members cannot be read"
                                                : "archives over several volumes cannot be read")));
  }
  const auto size = field_number(block, kTarSizeField);
  const auto mode = field_number(block, kTarModeField);
  const auto seconds = field_number(block, kTarTimeField);
  TarAttributes attributes = global_;
  attributes.override_by(local);
  if ((!size || *size < 0 || static_cast<std::uint64_t>(*size) > kTarMemberBytesMax) &&
      !attributes.size) {
    return failure(damaged("its size is no number"));
  }
  if (!mode || !seconds) return failure(damaged("its mode or time is no number"));

  TarReadMember found{.header_offset = header_offset, .content_offset = offset_ + kTarBlockBytes};
  TarMember& member = found.member;
  member.path = attributes.path ? *attributes.path : header_name(block);
  member.kind = kind_of(type, member.path);
  while (member.kind == TarKind::kDirectory && member.path.size() > 1 && member.path.ends_with('/'))
    member.path.pop_back();
  if (member.path.empty()) return failure(damaged("it has no name"));
  member.mode = static_cast<std::uint16_t>(*mode & 07777);
  member.mtime_ns = attributes.mtime_ns.value_or(nanoseconds_of_seconds(*seconds));
  if (member.kind == TarKind::kSymlink || member.kind == TarKind::kHardLink) {
    member.link_target =
        attributes.link_target.value_or(std::string(field_text(block, kTarLinkField)));
  }
  if (has_content(type, member.kind)) {
    member.size = attributes.size.value_or(static_cast<std::uint64_t>(size.value_or(0)));
  }
  if (found.content_offset > archive_bytes_ ||
      member.size > archive_bytes_ - found.content_offset) {
    return failure(damaged(fmt::format("'{}' has {} bytes, and the archive ends before that",
                                       member.path, member.size)));
  }
  offset_ = found.content_offset + tar_padded(member.size);
  return found;
}

}  // namespace millrace
