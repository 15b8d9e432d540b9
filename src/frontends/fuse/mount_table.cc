#include "frontends/fuse/mount_table.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ranges>

namespace millrace {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// A word as the kernel lists it, with "\040" for a space.
std::string unescaped(std::string_view listed) {
  std::string word;
  while (!listed.empty()) {
    const bool is_escape = listed.size() >= 4 && listed[0] == '\\' && is_octal(listed[1]) &&
                           is_octal(listed[2]) && is_octal(listed[3]);
    word += is_escape ? static_cast<char>(((listed[1] - '0') << 6) | ((listed[2] - '0') << 3) |
                                          (listed[3] - '0'))
                      : listed.front();
    listed.remove_prefix(is_escape ? 4 : 1);
  }
  return word;
}

// "36 35 0:57 / /mnt rw,noatime shared:1 - fuse.millrace millrace:/ rw": after the sixth word
// stands any number of others, up to "-".
std::optional<ListedMount> parse_line(std::string_view line) {
  std::vector<std::string_view> words;
  for (const auto& word : line | std::views::split(' '))
    words.emplace_back(word);
  constexpr std::size_t kFixedWords = 6;
  if (words.size() < kFixedWords) return std::nullopt;
  const auto dash = std::ranges::find(words.begin() + kFixedWords, words.end(), "-");
  if (words.end() - dash < 3) return std::nullopt;
  return ListedMount{.number = std::string(words[2]),
                     .directory = unescaped(words[4]),
                     .options = std::string(words[5]),
                     .kind = unescaped(dash[1]),
                     .source = unescaped(dash[2])};
}

}  // namespace

std::vector<ListedMount> parse_mountinfo(std::string_view text) {
  std::vector<ListedMount> mounts;
  for (const auto& line : text | std::views::split('\n')) {
    if (auto mount = parse_line(std::string_view(line))) mounts.push_back(*std::move(mount));
  }
  return mounts;
}

std::vector<ListedMount> listed_mounts() {
  std::ifstream list("/proc/self/mountinfo");
  return parse_mountinfo(std::string(std::istreambuf_iterator<char>(list), {}));
}

std::optional<ListedMount> uppermost_mount(std::string_view directory) {
  for (ListedMount& mount : std::views::reverse(listed_mounts())) {
    if (mount.directory == directory) return std::move(mount);
  }
  return std::nullopt;
}

std::vector<ListedMount> places_of(std::string_view number) {
  std::vector<ListedMount> places = listed_mounts();
  std::erase_if(places, [&](const ListedMount& mount) {
    return mount.number != number || mount.kind != kMountKind;
  });
  return places;
}

}  // namespace millrace
