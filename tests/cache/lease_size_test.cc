// What leases take of the cache's room, and what is left beside them.

#include "cache/lease_size.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/cache/cache_world.h"

namespace millrace {
namespace {

using std::chrono::hours;

class LeaseSizeTest : public ::testing::Test {
 protected:
  void start(CacheWorldOptions options) {
    world_ = std::make_unique<CacheWorld>(std::move(options));
    ASSERT_TRUE(world_->start().ok());
    world_->cache().wait_for_scan();
  }
  CacheLeases& leases() { return world_->cache().leases(); }
  Status grant(const std::string& id, std::vector<LeasedRange> ranges,
               LeaseKind kind = LeaseKind::kPromise) {
    return leases().grant(context_, {LeaseId(id), "test", hours(1), std::move(ranges), kind});
  }
  std::uint64_t leased(const std::string& id) {
    for (const LeaseInfo& info : leases().list()) {
      if (info.id == LeaseId(id)) return info.bytes;
    }
    return 0;
  }
  Status warm(const ObjectVersion& object) {
    return world_->cache().warm(context_, object, {0, object.size()}, Urgency::kDemanded);
  }
  static LeasedRange all_of(const ObjectVersion& object) { return {object, {0, object.size()}}; }

  const RequestContext context_ = RequestContext::background();
  std::unique_ptr<CacheWorld> world_;
};

TEST_F(LeaseSizeTest, ABlockCountsOnceHoweverManyRangesTouchIt) {
  start({.quota_bytes = 16 * kMiB});
  const ObjectVersion object = world_->add("packed", 10 * kMiB);
  std::vector<LeasedRange> ranges;
  LeaseSize size = leases().size(LeaseId("job"), LeaseKind::kPromise);
  LeaseSize held = leases().size(LeaseId("job"), LeaseKind::kHold);
  for (std::uint64_t unit = 1; unit < 160; unit += 2) {
    ranges.emplace_back(object, ByteRange{unit * kUnitBytes, kUnitBytes});
    size.add(ranges.back());
    held.add(ranges.back());
  }
  EXPECT_EQ(size.bytes(), 10 * kMiB);
  EXPECT_EQ(held.bytes(), 5 * kMiB) << "of what is only held, what is fetched counts";
  // In any order.
  std::swap(ranges.front(), ranges.back());
  const Status granted = grant("job", ranges);
  ASSERT_TRUE(granted.ok()) << granted.to_string();
  EXPECT_EQ(leased("job"), 10 * kMiB);
}

TEST_F(LeaseSizeTest, SmallObjectsCountAsTheyLieOnTheDisk) {
  start({});
  std::vector<LeasedRange> ranges;
  for (int n = 0; n < 20; ++n) {
    const ObjectVersion object = world_->add(std::to_string(n), 10 * kKiB + n);
    ranges.push_back(all_of(object));
    ASSERT_TRUE(warm(object).ok());
  }
  ASSERT_TRUE(grant("job", ranges).ok());
  EXPECT_EQ(leased("job"), world_->cache().usage().used_bytes);
}

TEST_F(LeaseSizeTest, WhatTwoLeasesShareCountsOnce) {
  start({.quota_bytes = 16 * kMiB});
  const ObjectVersion shared = world_->add("shared", 11 * kMiB);
  const ObjectVersion more = world_->add("more", 3 * kMiB);
  const ObjectVersion other = world_->add("other", 4 * kMiB);
  ASSERT_TRUE(grant("v1", {all_of(shared)}).ok());
  const Status second = grant("v2", {all_of(shared), all_of(more)});
  ASSERT_TRUE(second.ok()) << second.to_string();
  ASSERT_TRUE(grant("v2", {all_of(shared), all_of(more)}).ok()) << "asked for again";
  EXPECT_EQ(leased("v2"), 14 * kMiB);
  EXPECT_EQ(grant("v3", {all_of(other)}).code(), StatusCode::kResourceExhausted);
  // What both have stays as long as one has it; so it is after a restart.
  ASSERT_TRUE(leases().release(context_, LeaseId("v1")).ok());
  EXPECT_EQ(grant("v3", {all_of(other)}).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(world_->start().ok());
  EXPECT_EQ(grant("v3", {all_of(other)}).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(leases().release(context_, LeaseId("v2")).ok());
  EXPECT_TRUE(grant("v3", {all_of(other), all_of(shared)}).ok());
}

TEST_F(LeaseSizeTest, WhatFitsIsCutAtBlocks) {
  start({.quota_bytes = 10 * kMiB});
  const ObjectVersion object = world_->add("large", 64 * kMiB);
  const ObjectVersion small = world_->add("small", 100);
  LeaseSize size = leases().size(LeaseId("job"), LeaseKind::kPromise);
  EXPECT_EQ(size.add_what_fits({object, {kMiB, 63 * kMiB}}), 7 * kMiB);
  EXPECT_EQ(size.bytes(), 8 * kMiB);
  EXPECT_EQ(size.add_what_fits({object, {20 * kMiB, kMiB}}), 0u);
  EXPECT_GE(size.add_what_fits(all_of(small)), 100u);
  EXPECT_EQ(size.short_bytes(), 0u);
}

TEST_F(LeaseSizeTest, TheDiskIsLookedAtWhenALeaseIsAskedFor) {
  start({.quota_bytes = 64 * kMiB, .disk_bytes = 100 * kMiB});
  const ObjectVersion object = world_->add("wanted", 32 * kMiB);
  // Somebody else fills the disk, and nothing was written to the cache since.
  auto file = world_->memory_disk.open("/foreign", OpenMode::kCreate);
  ASSERT_TRUE((*file)->write_at(0, as_bytes(std::string(74 * kMiB, 'x'))).ok());
  EXPECT_LE(leases().size(LeaseId("job"), LeaseKind::kPromise).limit_bytes(), 21 * kMiB);
  EXPECT_EQ(grant("job", {all_of(object)}).code(), StatusCode::kResourceExhausted);
}

TEST_F(LeaseSizeTest, NoQuotaIsLargerThanTheDisk) {
  world_ = std::make_unique<CacheWorld>(
      CacheWorldOptions{.quota_bytes = kGiB, .disk_bytes = 100 * kMiB});
  ASSERT_TRUE(world_->start().ok());
  // Also as long as what is there is not counted.
  EXPECT_LE(world_->cache().usage().limit_bytes, 95 * kMiB);
}

TEST_F(LeaseSizeTest, AHoldPromisesNothing) {
  start({.quota_bytes = 16 * kMiB, .readahead = {.window_bytes_max = 0}});
  const ObjectVersion held = world_->add("held", 12 * kMiB);
  const ObjectVersion other = world_->add("other", 12 * kMiB);
  ASSERT_TRUE(grant("fill", {all_of(held)}, LeaseKind::kHold).ok());
  ASSERT_TRUE(warm(held).ok());
  EXPECT_TRUE(leases().list().empty());
  EXPECT_EQ(warm(other).code(), StatusCode::kResourceExhausted) << "it cannot be evicted";
  EXPECT_TRUE(grant("job", {all_of(other)}).ok()) << "and yet its room can be promised";
  EXPECT_TRUE(leases().renew(context_, LeaseId("fill"), hours(1)).ok());
  ASSERT_TRUE(leases().release(context_, LeaseId("fill")).ok());
  EXPECT_EQ(leases().renew(context_, LeaseId("fill"), hours(1)).code(), StatusCode::kNotFound);
  EXPECT_TRUE(warm(other).ok());
  ASSERT_TRUE(grant("fill", {all_of(held)}, LeaseKind::kHold).ok());
  ASSERT_TRUE(world_->start().ok());
  EXPECT_EQ(leases().renew(context_, LeaseId("fill"), hours(1)).code(), StatusCode::kNotFound)
      << "it ends with the process";
}

TEST_F(LeaseSizeTest, ADiskThatFailsIsNoLackOfRoom) {
  LogCapture log;
  for (const int error : {EIO, ENOSPC}) {
    start({});
    const ObjectVersion object = world_->add("wanted", 8 * kMiB);
    world_->disk.set_fault([error](const DiskCall& call) {
      return call.operation == DiskOperation::kWrite ? error : 0;
    });
    EXPECT_EQ(warm(object).code(), StatusCode::kUnavailable) << error;
    world_->disk.set_fault({});
    // The disk is left alone for a while.
    EXPECT_EQ(warm(object).code(), StatusCode::kUnavailable) << error;
  }
}

}  // namespace
}  // namespace millrace
