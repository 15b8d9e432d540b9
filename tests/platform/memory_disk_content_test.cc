#include "platform/memory_disk_content.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// What MemoryContent is to be, byte by byte.
struct PlainContent {
  struct Byte {
    char value = '\0';
    bool allocated = false;
  };
  std::vector<Byte> bytes;

  std::uint64_t allocated(std::uint64_t begin, std::uint64_t end) const {
    std::uint64_t count = 0;
    for (std::uint64_t i = begin; i < std::min<std::uint64_t>(end, bytes.size()); ++i) {
      count += bytes[i].allocated;
    }
    return count;
  }
  std::string text() const {
    std::string result;
    for (const Byte& byte : bytes)
      result += byte.value;
    return result;
  }
};

std::string text_of(const MemoryContent& content) {
  std::string text(content.size() + 10, '?');
  text.resize(content.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

TEST(MemoryContent, BehavesAsAPlainArray) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    MemoryContent content;
    PlainContent plain;
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t offset = random() % 100;
      const std::uint64_t length = random() % 20;
      switch (random() % 8) {
        case 0:
          content.resize(offset);
          plain.bytes.resize(offset);
          break;
        case 1:
        case 2:
        case 3:
          content.punch(offset, length);
          for (std::uint64_t i = offset; i < std::min(offset + length, content.size()); ++i) {
            plain.bytes[i] = {};
          }
          break;
        default: {
          const char value = static_cast<char>('a' + step % 26);
          content.write(offset, std::string(length, value));
          if (length > 0 && plain.bytes.size() < offset + length) {
            plain.bytes.resize(offset + length);
          }
          std::fill_n(plain.bytes.begin() + static_cast<std::ptrdiff_t>(length > 0 ? offset : 0),
                      length, PlainContent::Byte{value, true});
        }
      }
      ASSERT_EQ(text_of(content), plain.text()) << "step " << step;
      ASSERT_EQ(content.allocated_bytes(), plain.allocated(0, UINT64_MAX)) << "step " << step;
      const std::uint64_t begin = random() % 120;
      const std::uint64_t end = begin + random() % 50;
      ASSERT_EQ(content.unallocated_bytes(begin, end - begin),
                end - begin - plain.allocated(begin, end))
          << "step " << step;
    }
  }
}

}  // namespace
}  // namespace millrace
