#include "tests/cache/cache_damage.h"

#include <random>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "cache/segment_format.h"

namespace millrace {
namespace {

// Weighted by length within the kind.
std::pair<std::string, std::uint64_t> random_bit(const std::vector<CoveredBytes>& parts,
                                                 std::mt19937_64& random) {
  std::uint64_t total = 0;
  for (const CoveredBytes& part : parts)
    total += part.end - part.begin;
  std::uint64_t at = random() % total;
  for (const CoveredBytes& part : parts) {
    const std::uint64_t length = part.end - part.begin;
    if (at < length) return {part.path, (part.begin + at) * 8 + random() % 8};
    at -= length;
  }
  return {};
}

}  // namespace

DamagedWorld::DamagedWorld(std::shared_ptr<SectorCipher> cipher)
    : SimulationWorld({.segment_bytes_max = 800 * kKiB, .cipher = std::move(cipher)}) {
  objects = {add("one", 1, false),
             add("tiny", 3000, true),
             add("small", 100'000, false),
             add("units", 5 * kUnitBytes + 9, true),
             add("full", kMiB, false),
             add("large", kMiB + 70'000, false),
             add("blocks", 4 * kMiB + 5, true)};
}

void DamagedWorld::read_all() {
  for (const SimulatedObject& object : objects)
    EXPECT_TRUE(reads_right(object)) << object.version.key().value();
}

std::vector<CoveredBytes> DamagedWorld::covered(std::string_view extension) {
  std::vector<CoveredBytes> parts;
  for (const std::string& path : files(extension)) {
    if (extension == ".seg") {
      add_records(path, parts);
    } else {
      parts.push_back({path, 0, memory_disk.stat(path).value().size});
    }
  }
  return parts;
}

void DamagedWorld::add_records(const std::string& path, std::vector<CoveredBytes>& parts) {
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

void DamagedWorld::flip(const std::string& path, std::uint64_t bit) {
  const auto file = memory_disk.open(path, OpenMode::kReadWrite).value();
  std::byte byte{};
  ASSERT_EQ(file->read_at(bit / 8, {&byte, 1}).value(), 1U);
  byte ^= static_cast<std::byte>(1U << (bit % 8));
  ASSERT_TRUE(file->write_at(bit / 8, {&byte, 1}).ok());
}

void flip_cache_bits(std::uint64_t seed, std::uint64_t count,
                     std::shared_ptr<SectorCipher> cipher) {
  LogCapture quiet(LogLevel::kOff);
  std::mt19937_64 random(seed);
  DamagedWorld world(std::move(cipher));
  ASSERT_TRUE(world.start().ok());
  world.read_all();
  world.stop();
  for (std::uint64_t flip = 0; flip < count; ++flip) {
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
    // The disk remembers all that was not synced.
    if (flip % 64 == 0) world.sync_disk();
  }
}

}  // namespace millrace
