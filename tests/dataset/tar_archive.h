#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "dataset/tar_format.h"
#include "dataset/tar_reader.h"

namespace millrace {

// Archives in memory for the tests of tar.

struct ArchiveMember {
  TarMember member;
  std::string content;
};

inline std::string archive_of(const std::vector<ArchiveMember>& members,
                              TarTimes times = TarTimes::kNanoseconds) {
  std::string archive;
  for (const ArchiveMember& member : members) {
    archive += encode_tar_header(member.member, times).value();
    archive += member.content;
    archive.resize(tar_padded(archive.size()), '\0');
  }
  archive.resize(archive.size() + kTarEndBytes, '\0');
  return archive;
}

// The archive must outlive the reader.
inline TarReader::ReadAt reading(std::string_view archive) {
  return [archive](std::uint64_t offset, MutableByteView into) -> Result<std::size_t> {
    if (offset >= archive.size()) return 0;
    const std::size_t length = std::min<std::size_t>(into.size(), archive.size() - offset);
    std::memcpy(into.data(), archive.data() + offset, length);
    return length;
  };
}

inline Result<std::vector<TarReadMember>> try_list_archive(std::string_view archive) {
  TarReader reader(reading(archive), archive.size());
  std::vector<TarReadMember> members;
  for (;;) {
    MR_ASSIGN_OR_RETURN(std::optional<TarReadMember> member, reader.next());
    if (!member) return members;
    members.push_back(std::move(*member));
  }
}

inline std::vector<TarReadMember> list_archive(std::string_view archive) {
  auto members = try_list_archive(archive);
  EXPECT_TRUE(members) << members.error().to_string();
  return members.value_or(std::vector<TarReadMember>());
}

// Any member that a tar can hold: all lengths of names, bytes of all kinds, times before 1970.
inline ArchiveMember random_archive_member(std::mt19937_64& random) {
  const auto name = [&](std::size_t length) {
    const bool is_text = random() % 2 == 0;
    std::string text;
    while (text.size() < length) {
      const char c =
          is_text ? static_cast<char>('a' + random() % 26) : static_cast<char>(1 + random() % 255);
      const bool slash = random() % 40 == 0 && !text.empty() && text.back() != '/';
      text += slash ? '/' : (c == '/' ? 'x' : c);
    }
    if (text.ends_with('/')) text.back() = 'e';
    return text;
  };
  const std::size_t lengths[] = {1, 10, 99, 100, 101, 155, 156, 255, 256, 257, 700, 4095};
  const auto length = [&] { return 1 + random() % lengths[random() % std::size(lengths)]; };
  ArchiveMember made;
  made.member.path = name(length());
  made.member.kind = static_cast<TarKind>(random() % 3);
  made.member.mode = static_cast<std::uint16_t>(random() % 010000);
  made.member.mtime_ns = static_cast<std::int64_t>(random()) / (random() % 2 == 0 ? 2 : 1'000'000);
  if (random() % 2 == 0) made.member.mtime_ns -= made.member.mtime_ns % 1'000'000'000;
  if (made.member.kind == TarKind::kSymlink) made.member.link_target = name(length());
  if (made.member.kind == TarKind::kFile) {
    made.content.resize(random() % 3 == 0 ? random() % 3 * 512 : random() % 3000);
    for (char& c : made.content)
      c = static_cast<char>(random());
    made.member.size = made.content.size();
  }
  return made;
}

}  // namespace millrace
