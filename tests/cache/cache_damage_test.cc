// One bit at a time flips in the files of a cache that is down. None reaches a reader, and each is
// counted. MILLRACE_SCALE=full makes 10,000 flips, MILLRACE_SEED replays a run.

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "cache/object_file.h"
#include "cache/segment_format.h"
#include "tests/cache/cache_simulation_world.h"

namespace millrace {
namespace {

std::uint64_t flips_wanted() {
  const char* text = std::getenv("MILLRACE_SCALE");
  if (text != nullptr && std::string_view(text) == "full") return 10'000;
#if defined(MILLRACE_SANITIZED)
  return 60;
#else
  return 300;
#endif
}

std::uint64_t damage_seed() {
  const char* text = std::getenv("MILLRACE_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

// A part of a file that some checksum covers.
struct Covered {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class DamagedWorld : public SimulationWorld {
 public:
  DamagedWorld() : SimulationWorld({.segment_bytes_max = 800 * kKiB}) {
    objects = {add("one", 1, false),
               add("tiny", 3000, true),
               add("small", 100'000, false),
               add("units", 5 * kUnitBytes + 9, true),
               add("full", kMiB, false),
               add("large", kMiB + 70'000, false),
               add("blocks", 4 * kMiB + 5, true)};
  }

  void read_all() {
    for (const SimulatedObject& object : objects)
      EXPECT_TRUE(reads_right(object)) << object.version.key().value();
  }

  std::vector<std::string> files(std::string_view extension) {
    std::vector<std::string> found;
    std::vector<std::string> directories = {"/cache"};
    while (!directories.empty()) {
      const std::string directory = std::move(directories.back());
      directories.pop_back();
      const std::vector<DirectoryEntry> entries = memory_disk.list(directory).value();
      for (const DirectoryEntry& entry : entries) {
        const std::string path = directory + "/" + entry.name;
        if (entry.kind == FileKind::kDirectory) directories.push_back(path);
        if (path.ends_with(extension)) found.push_back(path);
      }
    }
    std::ranges::sort(found);
    return found;
  }

  // What of the files with this extension is covered.
  std::vector<Covered> covered(std::string_view extension) {
    std::vector<Covered> parts;
    for (const std::string& path : files(extension)) {
      if (extension == ".seg") {
        add_records(path, parts);
      } else {
        parts.push_back({path, 0, memory_disk.stat(path).value().size});
      }
    }
    return parts;
  }

  void flip(const std::string& path, std::uint64_t bit) {
    const auto file = memory_disk.open(path, OpenMode::kReadWrite).value();
    std::byte byte{};
    ASSERT_EQ(file->read_at(bit / 8, {&byte, 1}).value(), 1U);
    byte ^= static_cast<std::byte>(1U << (bit % 8));
    ASSERT_TRUE(file->write_at(bit / 8, {&byte, 1}).ok());
  }

  std::vector<SimulatedObject> objects;

 private:
  // The live records without the rest of their last page.
  void add_records(const std::string& path, std::vector<Covered>& parts) {
    const std::string stem = path.substr(0, path.size() - 4);
    const auto index = memory_disk.open(stem + ".idx", OpenMode::kRead).value();
    const auto segment =
        static_cast<std::uint32_t>(std::stoul(stem.substr(stem.size() - 8), nullptr, 16));
    const std::uint64_t size = index->size().value();
    for (std::uint64_t at = kSegmentIndexHeaderBytes; at + kSegmentEntryBytes <= size;
         at += kSegmentEntryBytes) {
      SegmentBlock block;
      ASSERT_EQ(index->read_at(at, block).value(), block.size());
      const auto entry = decode_segment_entry(block, segment);
      if (entry && *entry) parts.push_back({path, (*entry)->offset(), (*entry)->end()});
    }
  }
};

// Weighted by length within the kind.
std::pair<std::string, std::uint64_t> random_bit(const std::vector<Covered>& parts,
                                                 std::mt19937_64& random) {
  std::uint64_t total = 0;
  for (const Covered& part : parts)
    total += part.end - part.begin;
  std::uint64_t at = random() % total;
  for (const Covered& part : parts) {
    const std::uint64_t length = part.end - part.begin;
    if (at < length) return {part.path, (part.begin + at) * 8 + random() % 8};
    at -= length;
  }
  return {};
}

TEST(CacheDamage, NoFlippedBitIsServedAndEachIsCounted) {
  LogCapture quiet(LogLevel::kOff);
  const std::uint64_t seed = damage_seed();
  std::mt19937_64 random(seed);
  DamagedWorld world;
  ASSERT_TRUE(world.start().ok());
  world.read_all();
  world.stop();
  const std::uint64_t wanted = flips_wanted();
  for (std::uint64_t flip = 0; flip < wanted; ++flip) {
    constexpr std::string_view kKinds[] = {".data", ".map", ".seg", ".idx"};
    const std::string_view kind = kKinds[random() % 4];
    const auto [path, bit] = random_bit(world.covered(kind), random);
    SCOPED_TRACE(fmt::format("MILLRACE_SEED={}, flip {}: bit {} of {}", seed, flip, bit, path));
    world.flip(path, bit);
    const std::uint64_t known = world.bad_units();
    ASSERT_TRUE(world.start().ok());
    world.read_all();
    EXPECT_GE(world.bad_units(), known + 1);
    // A small object goes whole, so that only the next reader's fetch is kept.
    world.drain();
    world.read_all();
    world.stop();
    if (flip % 8 == 0) {
      SCOPED_TRACE("mended");
      const std::uint64_t found = world.bad_units();
      const std::uint64_t gets = world.gets();
      ASSERT_TRUE(world.start().ok());
      world.read_all();
      EXPECT_EQ(world.bad_units(), found);
      EXPECT_EQ(world.gets(), gets);
      world.stop();
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// The disk fails to read a small object's record once, so the object counts as absent and is
// fetched; the record that is there all the same was never checked, and is damaged.
TEST(CacheDamage, ARecordThatCouldNotBeLoadedIsNotTrustedLater) {
  LogCapture quiet(LogLevel::kOff);
  DamagedWorld world;
  ASSERT_TRUE(world.start().ok());
  world.read_all();
  world.stop();
  for (const Covered& record : world.covered(".seg"))
    world.flip(record.path, record.end * 8 - 3);
  ASSERT_TRUE(world.start().ok());
  world.drain();
  for (const SimulatedObject& object : world.objects) {
    world.disk.set_fault(fail_nth_call(0, EIO));
    EXPECT_TRUE(world.reads_right(object)) << object.version.key().value();
    world.drain();
    world.disk.set_fault({});
    EXPECT_TRUE(world.reads_right(object)) << object.version.key().value();
  }
}

// Another process may hold the file longer than ours lives: then it goes whole, by its name.
TEST(CacheDamage, AFileThatWasHandedOutIsNeverPunchedAlsoAfterARestart) {
  LogCapture quiet(LogLevel::kOff);
  SimulationWorld world({.quota_bytes = 16 * kMiB});
  const SimulatedObject held = world.add("held", 9 * kMiB, false);
  ASSERT_TRUE(world.start().ok());
  EXPECT_TRUE(world.reads_right(held));
  world.stop();
  const std::string digest = held.version.digest().to_text();
  const std::string stem = "/cache/objects/" + digest.substr(0, 2) + "/" + digest;
  {
    const auto file = ObjectFile::open(world.memory_disk, stem, held.version);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->mark_handed_out().ok());
  }
  const auto theirs = world.memory_disk.open(stem + ".data", OpenMode::kRead).value();
  ASSERT_TRUE(world.start().ok());
  for (int i = 0; i < 8; ++i)
    EXPECT_TRUE(world.reads_right(world.add(fmt::format("other-{}", i), 4 * kMiB, false)));
  world.drain();
  std::string bytes(held.version.size(), '\0');
  const auto size = theirs->read_at(0, std::as_writable_bytes(std::span(bytes)));
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, bytes.size());
  EXPECT_TRUE(bytes == held.data.text()) << "somebody who holds the file sees a hole";
  EXPECT_LE(world.cache().usage().used_bytes, 16 * kMiB);
  EXPECT_LE(world.data_bytes_on_disk(), 16 * kMiB);
  EXPECT_TRUE(world.reads_right(held));
  world.stop();
}

}  // namespace
}  // namespace millrace
