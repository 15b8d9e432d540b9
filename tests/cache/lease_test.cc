#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "base/log.h"
#include "base/manual_clock.h"
#include "cache/lease_format.h"
#include "cache/lease_table.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "tests/cache/cache_world.h"

namespace millrace {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

ObjectDigest digest_number(unsigned number) {
  ObjectDigest digest;
  digest.bytes[0] = static_cast<std::byte>(number);
  return digest;
}

StoredLease some_lease(WallTime expires) {
  return {{LeaseId("job-1"), "the trainer", expires, 8 * kMiB},
          {{digest_number(1), 0, 2, 3 * kMiB}, {digest_number(2), 7, 1, 2 * kMiB}}};
}

TEST(LeaseFormat, EveryFlippedBitAndEveryCutIsNoticed) {
  const StoredLease lease = some_lease(WallTime(hours(1)));
  const std::string bytes = encode_lease(lease);
  const Result<StoredLease> decoded = decode_lease(as_bytes(bytes));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->info.id, lease.info.id);
  EXPECT_EQ(decoded->info.holder, lease.info.holder);
  EXPECT_EQ(decoded->info.expires, lease.info.expires);
  EXPECT_EQ(decoded->info.bytes, lease.info.bytes);
  EXPECT_EQ(decoded->blocks, lease.blocks);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_lease(as_bytes(flipped))) << bit;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_lease(as_bytes(bytes).first(size))) << size;
}

TEST(LeaseFormat, OneOfOldIsUnderstood) {
  const StoredLease lease = some_lease(WallTime(hours(1)));
  std::string bytes = encode_lease(lease);
  // Its entries have no bytes of a block, and are not merged.
  bytes.resize(bytes.size() - 4);
  bytes.erase(bytes.size() - 28, 4);
  auto* const head = reinterpret_cast<std::byte*>(bytes.data());
  store_little_endian(head + 8, std::uint32_t{1});
  store_little_endian(head + 12, crc32c(as_bytes(bytes).subspan(16)));
  const Result<StoredLease> decoded = decode_lease(as_bytes(bytes));
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(decoded->info.bytes, lease.info.bytes);
  ASSERT_EQ(decoded->blocks.size(), 2u);
  EXPECT_EQ(decoded->blocks[0].count, 2u);
  EXPECT_EQ(decoded->blocks[1].first, 7u);
  EXPECT_EQ(decoded->blocks[0].block_bytes, lease.info.bytes / 3);
}

TEST(LeaseFormat, NamesAreChecked) {
  const std::vector<std::string> names = {"a", "job-1", "A_b.c", std::string(64, 'x')};
  for (const std::string& good : names)
    EXPECT_TRUE(validate_lease_id(LeaseId(good)).ok()) << good;
  const std::vector<std::string> no_names = {
      "", ".", "..", ".hidden", "a/b", "a b", std::string(65, 'x')};
  for (const std::string& bad : no_names)
    EXPECT_EQ(validate_lease_id(LeaseId(bad)).code(), StatusCode::kInvalidArgument) << bad;
}

class LeaseTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(memory_disk.make_directories("/c").ok());
    ASSERT_TRUE(table.load().ok());
    for (const unsigned number : {1u, 2u, 3u}) {
      ASSERT_TRUE(space.try_reserve(100));
      space.fill(digest_number(number), number == 2 ? 7 : 0, 100);
    }
  }
  // How many blocks can be evicted.
  std::size_t victims() {
    std::vector<CacheSpace::Block> popped;
    while (auto block = space.pop_victim())
      popped.push_back(*block);
    for (const CacheSpace::Block& block : popped)
      space.keep(block);
    return popped.size();
  }

  ManualClock clock;
  MemoryDisk memory_disk;
  FaultyDisk disk{memory_disk};
  CacheSpace space{kGiB};
  LeaseTable table{disk, "/c", space, clock};
};

TEST_F(LeaseTableTest, HoldsUntilReleased) {
  ASSERT_EQ(victims(), 3u);
  ASSERT_TRUE(table.grant(some_lease(clock.wall_now() + hours(1))).ok());
  EXPECT_EQ(victims(), 1u);
  EXPECT_EQ(table.list().size(), 1u);
  // Asked for again, it is still one lease.
  ASSERT_TRUE(table.grant(some_lease(clock.wall_now() + hours(2))).ok());
  EXPECT_TRUE(*table.release(LeaseId("job-1")));
  EXPECT_FALSE(*table.release(LeaseId("job-1")));
  EXPECT_EQ(victims(), 3u);
}

TEST_F(LeaseTableTest, ExpiresUnlessRenewed) {
  ASSERT_TRUE(table.grant(some_lease(clock.wall_now() + hours(1))).ok());
  clock.advance(std::chrono::minutes(59));
  ASSERT_TRUE(table.renew(LeaseId("job-1"), clock.wall_now() + hours(1)).ok());
  clock.advance(std::chrono::minutes(59));
  table.expire();
  EXPECT_EQ(victims(), 1u);
  clock.advance(std::chrono::minutes(2));
  table.expire();
  EXPECT_EQ(victims(), 3u);
  EXPECT_EQ(table.renew(LeaseId("job-1"), clock.wall_now()).code(), StatusCode::kNotFound);
}

TEST_F(LeaseTableTest, OutlivesTheProcessAndAPowerLoss) {
  ASSERT_TRUE(table.grant(some_lease(clock.wall_now() + hours(1))).ok());
  memory_disk.simulate_power_loss(1);
  CacheSpace later(kGiB);
  LeaseTable again(disk, "/c", later, clock);
  ASSERT_TRUE(again.load().ok());
  ASSERT_EQ(again.list().size(), 1u);
  EXPECT_EQ(again.list().front().holder, "the trainer");
  ASSERT_TRUE(later.try_reserve(100));
  later.fill(digest_number(1), 1, 100);
  EXPECT_FALSE(later.pop_victim()) << "a leased block is held when it comes";
}

TEST_F(LeaseTableTest, ADamagedLeaseIsReportedAndGone) {
  LogCapture log;
  ASSERT_TRUE(table.grant(some_lease(clock.wall_now() + hours(1))).ok());
  auto file = memory_disk.open("/c/leases/job-1", OpenMode::kReadWrite);
  ASSERT_TRUE((*file)->write_at(20, as_bytes("x")).ok());
  CacheSpace later(kGiB);
  LeaseTable again(disk, "/c", later, clock);
  ASSERT_TRUE(again.load().ok());
  EXPECT_TRUE(again.list().empty());
  EXPECT_THAT(log.text(), HasSubstr("a lease of the cache is damaged"));
}

TEST_F(LeaseTableTest, AFailedGrantLeavesTheOldLease) {
  ASSERT_TRUE(table.grant(some_lease(clock.wall_now() + hours(1))).ok());
  StoredLease larger = some_lease(clock.wall_now() + hours(9));
  larger.blocks.push_back({digest_number(3), 0, 1, kMiB});
  bool failed = true;
  for (std::uint64_t n = 0; failed; ++n) {
    disk.set_fault(fail_nth_call(n, ENOSPC));
    failed = !table.grant(larger).ok();
    disk.set_fault({});
    EXPECT_EQ(victims(), failed ? 1u : 0u) << n;
  }
}

TEST(CacheLeasesTest, KeepWhatIsLeasedAndRefuseWhatDoesNotFit) {
  CacheWorld world({.quota_bytes = 32 * kMiB, .readahead = {.window_bytes_max = 0}});
  ASSERT_TRUE(world.start().ok());
  const RequestContext context = RequestContext::background();
  const ObjectVersion leased = world.add("leased", 12 * kMiB);
  const ObjectVersion other = world.add("other", 64 * kMiB);
  CacheLeases& leases = world.cache().leases();
  const LeaseRequest request{LeaseId("job"), "test", hours(1), {{leased, {0, leased.size()}}}};
  ASSERT_TRUE(leases.grant(context, request).ok());
  ASSERT_TRUE(world.cache().warm(context, leased, {0, leased.size()}, Urgency::kDemanded).ok());
  ASSERT_TRUE(world.reads_right(other));
  world.settle();
  const std::uint64_t gets = world.gets();
  EXPECT_TRUE(world.reads_right(leased));
  EXPECT_EQ(world.gets(), gets) << "a scan of twice the cache has not pushed it out";

  const Status refused =
      leases.grant(context, {LeaseId("big"), "test", hours(1), {{other, {0, other.size()}}}});
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("needs 64 MiB"));
  ASSERT_TRUE(world.start().ok());
  ASSERT_EQ(world.cache().leases().list().size(), 1u) << "it outlives a restart";
  EXPECT_TRUE(world.cache().leases().release(context, LeaseId("job")).ok());
  EXPECT_TRUE(world.cache().leases().list().empty());
}

TEST(CacheLeasesTest, AFullDiskBreaksLeasesLoudly) {
  LogCapture log;
  CacheWorld world({.quota_bytes = 32 * kMiB, .disk_bytes = 100 * kMiB});
  ASSERT_TRUE(world.start().ok());
  const RequestContext context = RequestContext::background();
  const ObjectVersion leased = world.add("leased", 24 * kMiB);
  const LeaseRequest request{LeaseId("job"), "test", hours(1), {{leased, {0, leased.size()}}}};
  ASSERT_TRUE(world.cache().leases().grant(context, request).ok());
  ASSERT_TRUE(world.cache().warm(context, leased, {0, leased.size()}, Urgency::kDemanded).ok());
  // Somebody else fills the disk.
  auto file = world.memory_disk.open("/foreign", OpenMode::kCreate);
  const std::string filler(74 * kMiB, 'x');
  ASSERT_TRUE((*file)->write_at(0, as_bytes(filler)).ok());
  const ObjectVersion scan = world.add("scan", 80 * kMiB);
  EXPECT_TRUE(world.reads_right(scan)) << "reads go on";
  world.settle();
  EXPECT_TRUE(world.cache().leases().list().empty());
  EXPECT_THAT(log.text(), HasSubstr("a lease of the cache is broken"));
  EXPECT_TRUE(world.reads_right(leased));
}

}  // namespace
}  // namespace millrace
