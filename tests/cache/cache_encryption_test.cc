// A cache whose content is ciphertext on the disk.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/cache/cache_damage.h"
#include "tests/cache/cache_simulation_world.h"

namespace millrace {
namespace {

constexpr std::uint64_t kEncryptedSizes[] = {
    1, 15, 16, 4096, 4111, kUnitBytes + 3, kMiB, kMiB + 1, kMiB + kUnitBytes + 15, 5 * kMiB + 4097};

class EncryptedWorld : public SimulationWorld {
 public:
  explicit EncryptedWorld(char key = 'a') : SimulationWorld({.cipher = simulated_cipher(key)}) {
    for (const std::uint64_t size : kEncryptedSizes)
      objects.push_back(add(fmt::format("object-{}", size), size, size % 2 == 0));
  }

  std::string all_bytes_on_disk() {
    std::string all;
    for (const std::string_view extension : {".data", ".seg"}) {
      for (const std::string& path : files(extension)) {
        const auto file = memory_disk.open(path, OpenMode::kRead).value();
        std::string bytes(file->size().value(), '\0');
        EXPECT_TRUE(file->read_at(0, std::as_writable_bytes(std::span(bytes))));
        all += bytes;
      }
    }
    return all;
  }

  std::vector<SimulatedObject> objects;
};

TEST(CacheEncryption, ReadsAreRightAtAnyOffsetBeforeAndAfterARestart) {
  EncryptedWorld world;
  std::mt19937_64 random(7);
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(world.start().ok());
    for (const SimulatedObject& object : world.objects) {
      ASSERT_TRUE(world.reads_right(object)) << object.version.key().value();
      world.drain();
      for (int i = 0; i < 50; ++i) {
        const ByteRange range{random() % object.version.size(),
                              1 + random() % (std::uint64_t{1} << (random() % 18))};
        const Result<Slice> got = world.read(object, range);
        ASSERT_TRUE(got) << got.error().to_string();
        ASSERT_TRUE(got->text() == object.data.part(range.offset, range.length).text())
            << object.version.key().value() << " at " << range.offset;
      }
    }
    world.stop();
  }
  EXPECT_EQ(world.bad_units(), 0u);
  // The last of 20 units may come in one request with others; but each only once.
  EXPECT_EQ(world.metrics.counter(MetricId::kCacheFetchedBytes, {0}).value() +
                world.metrics.counter(MetricId::kCacheFetchedBytes, {1}).value(),
            [&] {
              std::uint64_t total = 0;
              for (const SimulatedObject& object : world.objects)
                total += object.version.size();
              return total;
            }());
}

TEST(CacheEncryption, NothingOfTheContentIsOnTheDisk) {
  EncryptedWorld world;
  ASSERT_TRUE(world.start().ok());
  for (const SimulatedObject& object : world.objects)
    ASSERT_TRUE(world.reads_right(object));
  world.stop();
  const std::string stored = world.all_bytes_on_disk();
  ASSERT_GT(stored.size(), 8 * kMiB);
  std::uint64_t looked = 0;
  for (const SimulatedObject& object : world.objects) {
    for (std::uint64_t at = 0; at + 16 <= object.version.size(); at += 128 * kKiB, ++looked)
      EXPECT_EQ(stored.find(object.data.part(at, 16).text()), std::string::npos);
  }
  EXPECT_GT(looked, 60u);
}

TEST(CacheEncryption, ACacheOpensOnlyWithItsKey) {
  LogCapture quiet(LogLevel::kOff);
  MemoryDisk disk;
  ManualClock clock;
  Metrics metrics;
  const auto open = [&](std::shared_ptr<SectorCipher> cipher, const std::string& path) {
    CacheDirectoryOptions options;
    options.path = path;
    options.cipher = std::move(cipher);
    const auto directory = CacheDirectory::open(disk, std::move(options), clock, metrics);
    return directory ? Status() : directory.error();
  };
  const auto expect_refused = [&](const Status& status, std::string_view why) {
    EXPECT_EQ(status.code(), StatusCode::kUnauthenticated);
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
  };
  ASSERT_TRUE(open(simulated_cipher('a'), "/secret").ok());
  EXPECT_TRUE(open(simulated_cipher('a'), "/secret").ok());
  expect_refused(open(simulated_cipher('b'), "/secret"), "with another key");
  expect_refused(open(nullptr, "/secret"), "is encrypted; give its key");
  ASSERT_TRUE(open(nullptr, "/plain").ok());
  expect_refused(open(simulated_cipher('a'), "/plain"), "is not encrypted");
}

TEST(CacheEncryption, NoDescriptorIsHandedOut) {
  EncryptedWorld world;
  ASSERT_TRUE(world.start().ok());
  for (const SimulatedObject& object : world.objects) {
    ASSERT_TRUE(world.reads_right(object));
    const auto whole = world.cache().open_complete(RequestContext::background(), object.version);
    ASSERT_FALSE(whole);
    EXPECT_EQ(whole.error().code(), StatusCode::kUnsupported);
  }
  world.stop();
}

TEST(CacheEncryption, DamageIsNoticedWithoutDecrypting) {
  LogCapture quiet(LogLevel::kOff);
  flip_cache_bits(11, 40, simulated_cipher('c'));
}

}  // namespace
}  // namespace millrace
