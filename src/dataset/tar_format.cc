#include "dataset/tar_format.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"
#include "dataset/tar_header.h"

namespace millrace {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
// 11 octal digits, for sizes and times.
constexpr std::uint64_t kOctalMax = (std::uint64_t{1} << 33) - 1;

Status check_writable(const TarMember& member) {
  const auto refuse = [&](std::string_view why) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("'{}' cannot be written to a tar: {}", member.path, why));
  };
  const bool is_link = member.kind == TarKind::kSymlink;
  if (member.kind == TarKind::kHardLink || member.kind == TarKind::kOther) {
    return refuse("it is neither a file, a directory nor a symbolic link");
  }
  if (member.path.empty() || member.path.starts_with('/') || member.path.ends_with('/')) {
    return refuse("its name is empty, absolute or ends in '/'");
  }
  if (member.path.size() >= kTarPathBytesMax || member.link_target.size() >= kTarPathBytesMax) {
    return refuse("its name or target is too long");
  }
  if (member.path.find('\0') != std::string::npos ||
      member.link_target.find('\0') != std::string::npos) {
    return refuse("its name or target has a NUL");
  }
  if (is_link == member.link_target.empty()) return refuse("links have targets, others have none");
  if (member.kind != TarKind::kFile && member.size > 0) return refuse("only files have bytes");
  if (member.size > kTarMemberBytesMax) return refuse("it is too large");
  return {};
}

// "27 path=...\n": the length counts itself.
void append_pax_record(std::string& records, std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (fmt::formatted_size("{}", length) + rest != length)
    length = fmt::formatted_size("{}", length) + rest;
  records += fmt::format("{} {}=", length, key);
  records += value;
  records += '\n';
}

// The name as the header has it: whole, or cut at a '/' into prefix and name.
struct HeaderName {
  std::string_view prefix;
  std::string_view name;
};
std::optional<HeaderName> fit_name(std::string_view path) {
  if (path.size() <= kTarNameField.length) return HeaderName{.prefix = {}, .name = path};
  // The longest prefix that fits: what remains is shortest. Neither part may be empty.
  for (std::size_t at = std::min(path.size() - 1, kTarPrefixField.length); at > 0; --at) {
    if (path[at] != '/' || at + 1 == path.size()) continue;
    if (path.size() - at - 1 > kTarNameField.length) return std::nullopt;
    return HeaderName{.prefix = path.substr(0, at), .name = path.substr(at + 1)};
  }
  return std::nullopt;
}

std::int64_t whole_seconds(std::int64_t nanoseconds) {
  // Rounded down, before 1970 too.
  return nanoseconds / kNanosecondsPerSecond - (nanoseconds % kNanosecondsPerSecond < 0 ? 1 : 0);
}

// As far as a header can say it.
std::int64_t octal_time(std::int64_t mtime_ns) {
  return std::clamp<std::int64_t>(whole_seconds(mtime_ns), 0, kOctalMax);
}

std::string pax_time(std::int64_t mtime_ns, TarTimes times) {
  const std::int64_t fraction = mtime_ns % kNanosecondsPerSecond;
  if (times == TarTimes::kSeconds || fraction == 0) {
    return fmt::format("{}", whole_seconds(mtime_ns));
  }
  // A decimal number: -1.5 is a second and a half before 1970.
  return fmt::format("{}{}.{:09}", mtime_ns < 0 ? "-" : "",
                     std::abs(mtime_ns / kNanosecondsPerSecond), std::abs(fraction));
}

std::string header_path(const TarMember& member) {
  return member.kind == TarKind::kDirectory ? member.path + '/' : member.path;
}

std::string pax_records(const TarMember& member, TarTimes times) {
  std::string records;
  const std::string path = header_path(member);
  const bool name_fits = fit_name(path).has_value();
  const bool link_fits = member.link_target.size() <= kTarLinkField.length;
  const bool is_text = (name_fits || is_utf8(path)) && (link_fits || is_utf8(member.link_target));
  if (!is_text) append_pax_record(records, "hdrcharset", "BINARY");
  if (!name_fits) append_pax_record(records, "path", path);
  if (!link_fits) append_pax_record(records, "linkpath", member.link_target);
  if (member.size > kOctalMax) append_pax_record(records, "size", fmt::format("{}", member.size));
  const bool has_fraction = member.mtime_ns % kNanosecondsPerSecond != 0;
  if (octal_time(member.mtime_ns) != whole_seconds(member.mtime_ns) ||
      (has_fraction && times == TarTimes::kNanoseconds)) {
    append_pax_record(records, "mtime", pax_time(member.mtime_ns, times));
  }
  return records;
}

class HeaderBlock {
 public:
  void text(TarField field, std::string_view value) {
    value.copy(block_.data() + field.offset, field.length);
  }
  // Zero-filled octal digits and a NUL.
  void octal(TarField field, std::uint64_t value) {
    text(field, fmt::format("{:0{}o}", value, field.length - 1));
  }
  std::string_view finish() {
    octal(kTarUserField, 0);
    octal(kTarGroupField, 0);
    text(kTarMagicField, std::string_view("ustar\0"
                                          "00",
                                          8));
    text(kTarUserNameField, "root");
    text(kTarGroupNameField, "root");
    octal(kTarDeviceMajorField, 0);
    octal(kTarDeviceMinorField, 0);
    text(kTarChecksumField, "        ");
    std::uint64_t sum = 0;
    for (const char c : block_)
      sum += static_cast<unsigned char>(c);
    text(kTarChecksumField, fmt::format("{:06o}", sum));
    block_[kTarChecksumField.offset + 6] = '\0';
    return {block_.data(), block_.size()};
  }

 private:
  std::array<char, kTarBlockBytes> block_{};
};

void append_pax_header(std::string& header, std::string_view records) {
  HeaderBlock block;
  block.text(kTarNameField, "PaxHeaders/member");
  block.octal(kTarModeField, 0644);
  block.octal(kTarSizeField, records.size());
  block.octal(kTarTimeField, 0);
  block.text(kTarTypeField, "x");
  header += block.finish();
  header += records;
  header.resize(tar_padded(header.size()), '\0');
}

std::string_view type_of(TarKind kind) {
  switch (kind) {
    case TarKind::kDirectory:
      return "5";
    case TarKind::kSymlink:
      return "2";
    default:
      return "0";
  }
}

}  // namespace

Result<std::string> encode_tar_header(const TarMember& member, TarTimes times) {
  MR_RETURN_IF_ERROR(check_writable(member));
  std::string header;
  const std::string records = pax_records(member, times);
  if (!records.empty()) append_pax_header(header, records);

  const std::string path = header_path(member);
  // What pax says otherwise is cut here: a reader without pax then has at least this much.
  const HeaderName name = fit_name(path).value_or(
      HeaderName{.prefix = {}, .name = std::string_view(path).substr(0, kTarNameField.length)});
  HeaderBlock block;
  block.text(kTarNameField, name.name);
  block.text(kTarPrefixField, name.prefix);
  block.text(kTarLinkField, member.link_target);
  block.octal(kTarModeField, member.mode & 07777U);
  block.octal(kTarSizeField, member.size > kOctalMax ? 0 : member.size);
  block.octal(kTarTimeField, static_cast<std::uint64_t>(octal_time(member.mtime_ns)));
  block.text(kTarTypeField, type_of(member.kind));
  header += block.finish();
  return header;
}

Result<std::uint64_t> tar_header_bytes(const TarMember& member, TarTimes times) {
  MR_RETURN_IF_ERROR(check_writable(member));
  const std::string records = pax_records(member, times);
  return kTarBlockBytes + (records.empty() ? 0 : kTarBlockBytes + tar_padded(records.size()));
}

}  // namespace millrace
