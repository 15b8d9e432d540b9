#include "frontends/nfs4/nfs_client_files.h"

#include <memory>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr NfsShare kReads{.access = kShareAccessRead, .deny = kShareDenyNone};
constexpr NfsShare kWrites{.access = kShareAccessWrite, .deny = kShareDenyNone};
constexpr NfsShare kBoth{.access = kShareAccessBoth, .deny = kShareDenyNone};
const NodeNumber kNode(0x0000000700000009);
const NodeNumber kOtherNode(8);

NfsStateOptions small_options() {
  NfsStateOptions options;
  options.owners_per_client_max = 3;
  options.opens_per_client_max = 4;
  options.opens_max = 6;
  return options;
}

struct FilesWorld {
  NfsFileTables tables;
  NfsClientFiles one{NfsClientId(0x500000001), true, tables};
  NfsClientFiles two{NfsClientId(0x500000002), true, tables};
  NfsClientFiles old{NfsClientId(0x500000003), false, tables};  // 4.0.

  explicit FilesWorld(const NfsStateOptions& options = {})
      : tables{.options = options, .life = 5, .delegations = NfsDelegations({1, 2})} {}

  static NfsStateid with_seqid(NfsStateid stateid, std::uint32_t seqid) {
    stateid.seqid = seqid;
    return stateid;
  }
};

NfsStatus status_of_files(const auto& result) { return result ? NfsStatus::kOk : result.error(); }

TEST(NfsClientFiles, OpensReadAndClose) {
  FilesWorld world;
  const auto stateid = world.one.open({.owner = "o", .node = kNode, .share = kReads});
  ASSERT_TRUE(stateid);
  EXPECT_EQ(stateid->seqid, 1U);
  EXPECT_EQ(world.one.check(*stateid, kNode, kShareAccessRead), NfsStatus::kOk);
  EXPECT_EQ(world.one.check(*stateid, kNode, kShareAccessWrite), NfsStatus::kOpenMode);
  EXPECT_EQ(world.one.check(*stateid, kOtherNode, kShareAccessRead), NfsStatus::kBadStateid);
  EXPECT_EQ(world.two.check(*stateid, kNode, kShareAccessRead), NfsStatus::kBadStateid);
  EXPECT_EQ(world.one.close(*stateid, kNode), kInvalidStateid);
  EXPECT_EQ(world.one.check(*stateid, kNode, kShareAccessRead), NfsStatus::kBadStateid);
  EXPECT_EQ(status_of_files(world.one.close(*stateid, kNode)), NfsStatus::kBadStateid);
  EXPECT_TRUE(world.one.empty());
  EXPECT_EQ(world.tables.shares.opens(), 0U);
}

TEST(NfsClientFiles, OpeningAgainWidensAndRaisesTheSeqid) {
  FilesWorld world;
  const auto first = world.one.open({.owner = "o", .node = kNode, .share = kReads});
  const auto second = world.one.open({.owner = "o", .node = kNode, .share = kWrites});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->other, first->other);
  EXPECT_EQ(second->seqid, 2U);
  EXPECT_EQ(world.one.check(*first, kNode, kShareAccessRead), NfsStatus::kOldStateid);
  EXPECT_EQ(world.one.check(*second, kNode, kShareAccessBoth), NfsStatus::kOk);
  EXPECT_EQ(world.one.check(FilesWorld::with_seqid(*second, 3), kNode, kShareAccessRead),
            NfsStatus::kBadStateid);
  EXPECT_EQ(world.one.check(FilesWorld::with_seqid(*second, 0), kNode, kShareAccessRead),
            NfsStatus::kOk);
  const auto other = world.one.open({.owner = "another", .node = kNode, .share = kReads});
  EXPECT_NE(other->other, first->other);
  EXPECT_EQ(world.tables.shares.opens(), 2U);
}

TEST(NfsClientFiles, DowngradesToWhatWasOpened) {
  FilesWorld world;
  ASSERT_TRUE(world.one.open({.owner = "o", .node = kNode, .share = kBoth}));
  auto stateid = world.one.open({.owner = "o", .node = kNode, .share = kReads});
  EXPECT_EQ(status_of_files(world.one.downgrade(*stateid, kNode, kWrites)), NfsStatus::kInval);
  EXPECT_EQ(status_of_files(world.one.downgrade(*stateid, kNode, {})), NfsStatus::kInval);
  EXPECT_EQ(status_of_files(world.one.downgrade(*stateid, kNode, {.access = 9, .deny = 0})),
            NfsStatus::kInval);
  EXPECT_EQ(status_of_files(world.one.downgrade(*stateid, kNode, {.access = 1, .deny = 2})),
            NfsStatus::kInval);
  stateid = world.one.downgrade(*stateid, kNode, kReads);
  ASSERT_TRUE(stateid);
  EXPECT_EQ(stateid->seqid, 3U);
  EXPECT_EQ(world.one.check(*stateid, kNode, kShareAccessWrite), NfsStatus::kOpenMode);
  EXPECT_EQ(status_of_files(world.one.downgrade(*stateid, kNode, kBoth)), NfsStatus::kInval);
}

TEST(NfsClientFiles, ShareReservationsHoldBetweenOwnersAndClients) {
  FilesWorld world;
  const NfsShare alone{.access = kShareAccessRead, .deny = kShareDenyWrite};
  const auto stateid = world.one.open({.owner = "o", .node = kNode, .share = alone});
  ASSERT_TRUE(stateid);
  EXPECT_EQ(status_of_files(world.one.open({.owner = "p", .node = kNode, .share = kBoth})),
            NfsStatus::kShareDenied);
  EXPECT_EQ(status_of_files(world.two.open({.owner = "o", .node = kNode, .share = kWrites})),
            NfsStatus::kShareDenied);
  EXPECT_TRUE(world.two.open({.owner = "o", .node = kNode, .share = alone}));
  // Its own open is in nobody's own way, that of another is.
  EXPECT_EQ(status_of_files(world.one.open({.owner = "o", .node = kNode, .share = kWrites})),
            NfsStatus::kShareDenied);
  EXPECT_EQ(world.one.check(*stateid, kNode, kShareAccessRead), NfsStatus::kOk);
  world.two.clear();
  EXPECT_TRUE(world.one.open({.owner = "o", .node = kNode, .share = kWrites}));
  world.one.clear();
  EXPECT_TRUE(world.two.open({.owner = "o", .node = kNode, .share = kWrites}));
  EXPECT_EQ(world.tables.shares.opens(), 1U);
}

TEST(NfsClientFiles, SpecialStateidsReadWhatNobodyDenies) {
  FilesWorld world;
  EXPECT_EQ(world.one.check(kAnonymousStateid, kNode, kShareAccessRead), NfsStatus::kOk);
  const NfsShare denies{.access = kShareAccessRead, .deny = kShareDenyRead};
  ASSERT_TRUE(world.two.open({.owner = "o", .node = kNode, .share = denies}));
  EXPECT_EQ(world.one.check(kAnonymousStateid, kNode, kShareAccessRead), NfsStatus::kLocked);
  EXPECT_EQ(world.one.check(bypass_stateid(), kNode, kShareAccessRead), NfsStatus::kOk);
  EXPECT_EQ(world.one.check(kInvalidStateid, kNode, kShareAccessRead), NfsStatus::kBadStateid);
  NfsStateid odd = kAnonymousStateid;
  odd.seqid = 7;
  EXPECT_EQ(world.one.check(odd, kNode, kShareAccessRead), NfsStatus::kBadStateid);
  for (const NfsStateid& special : {kAnonymousStateid, bypass_stateid(), kInvalidStateid}) {
    EXPECT_EQ(world.one.test(special), NfsStatus::kBadStateid);
    EXPECT_EQ(world.one.free(special), NfsStatus::kBadStateid);
    EXPECT_EQ(status_of_files(world.one.close(special, kNode)), NfsStatus::kBadStateid);
  }
}

TEST(NfsClientFiles, AStateidOfAnEarlierLifeIsStaleWithoutSessionsAndBadWith) {
  FilesWorld world;
  NfsStateid stateid = *world.old.open({.owner = "o", .node = kNode, .share = kReads});
  EXPECT_EQ(world.old.check(FilesWorld::with_seqid(stateid, 0), kNode, kShareAccessRead),
            NfsStatus::kOldStateid);
  stateid.other[3] ^= std::byte{1};
  EXPECT_EQ(world.old.check(stateid, kNode, kShareAccessRead), NfsStatus::kStaleStateid);
  EXPECT_EQ(world.one.check(stateid, kNode, kShareAccessRead), NfsStatus::kBadStateid);
  EXPECT_EQ(world.one.test(stateid), NfsStatus::kBadStateid);
}

TEST(NfsClientFiles, CloseWithoutSessionsAnswersTheNextSeqid) {
  FilesWorld world;
  const NfsStateid stateid = *world.old.open({.owner = "o", .node = kNode, .share = kReads});
  const auto closed = world.old.close(stateid, kNode);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->other, stateid.other);
  EXPECT_EQ(closed->seqid, 2U);
}

TEST(NfsClientFiles, DelegationsAreKnownAgainAndNothingElseIs) {
  FilesWorld world;
  const NfsStateid delegation = world.one.delegation(kNode);
  EXPECT_EQ(delegation, world.one.delegation(kNode));
  EXPECT_EQ(world.one.check(delegation, kNode, kShareAccessRead), NfsStatus::kOk);
  EXPECT_EQ(world.one.check(delegation, kNode, kShareAccessWrite), NfsStatus::kOpenMode);
  EXPECT_EQ(world.one.check(delegation, kOtherNode, kShareAccessRead), NfsStatus::kBadStateid);
  EXPECT_EQ(world.two.check(delegation, kNode, kShareAccessRead), NfsStatus::kBadStateid);
  EXPECT_EQ(world.one.test(delegation), NfsStatus::kOk);
  EXPECT_EQ(world.one.free(delegation), NfsStatus::kLocksHeld);
  EXPECT_EQ(status_of_files(world.one.close(delegation, kNode)), NfsStatus::kBadStateid);
  EXPECT_EQ(world.one.return_delegation(delegation, kOtherNode), NfsStatus::kBadStateid);
  EXPECT_EQ(world.one.return_delegation(delegation, kNode), NfsStatus::kOk);
  for (std::size_t bit = 0; bit < 96; ++bit) {
    NfsStateid forged = delegation;
    forged.other[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(world.one.test(forged), NfsStatus::kBadStateid) << bit;
  }
  EXPECT_EQ(world.one.test(FilesWorld::with_seqid(delegation, 2)), NfsStatus::kBadStateid);
  EXPECT_EQ(NfsDelegations({1, 3}).check(NfsClientId(0x500000001), delegation),
            NfsStatus::kBadStateid);
}

TEST(NfsClientFiles, LimitsRefuseAndLeaveNothingBehind) {
  FilesWorld world(small_options());
  for (const char* owner : {"a", "b", "c"})
    ASSERT_TRUE(world.one.open({.owner = owner, .node = kNode, .share = kReads}));
  EXPECT_EQ(status_of_files(world.one.open({.owner = "d", .node = kNode, .share = kReads})),
            NfsStatus::kDelay);
  ASSERT_TRUE(world.one.open({.owner = "a", .node = NodeNumber(100), .share = kReads}));
  EXPECT_EQ(
      status_of_files(world.one.open({.owner = "a", .node = NodeNumber(101), .share = kReads})),
      NfsStatus::kDelay);
  // What is open already can be opened again.
  EXPECT_TRUE(world.one.open({.owner = "a", .node = NodeNumber(100), .share = kReads}));
  for (std::uint64_t node = 1; node <= 2; ++node)
    ASSERT_TRUE(world.two.open({.owner = "a", .node = NodeNumber(node), .share = kReads}));
  EXPECT_EQ(status_of_files(world.two.open({.owner = "a", .node = NodeNumber(3), .share = kReads})),
            NfsStatus::kDelay);
  EXPECT_EQ(world.tables.shares.opens(), 6U);
  world.one.clear();
  EXPECT_TRUE(world.two.open({.owner = "a", .node = NodeNumber(3), .share = kReads}));
}

TEST(NfsStateid, SeqidsWrapAroundOverZero) {
  EXPECT_EQ(next_seqid(UINT32_MAX), 1U);
  EXPECT_EQ(compare_seqid(UINT32_MAX, 1, true), NfsStatus::kOldStateid);
  EXPECT_EQ(compare_seqid(1, UINT32_MAX, true), NfsStatus::kBadStateid);
  EXPECT_EQ(compare_seqid(0, 5, true), NfsStatus::kOk);
  EXPECT_EQ(compare_seqid(0, 5, false), NfsStatus::kOldStateid);
}

class NfsLocksTest : public ::testing::Test {
 protected:
  FilesWorld world;
  NfsStateid one_open = *world.one.open({.owner = "o", .node = kNode, .share = kBoth});
  NfsStateid two_open = *world.two.open({.owner = "o", .node = kNode, .share = kBoth});

  static NfsLockRequest first_lock(const NfsStateid& open, NfsRange range, bool exclusive) {
    return {.node = kNode,
            .range = range,
            .exclusive = exclusive,
            .stateid = open,
            .new_owner = "locker"};
  }
};

TEST_F(NfsLocksTest, LocksAndUnlocks) {
  const auto taken = world.one.lock(first_lock(one_open, {0, 9}, true));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->seqid, 1U);
  const auto denied = world.two.lock(first_lock(two_open, {9, 20}, false));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().status, NfsStatus::kDenied);
  EXPECT_EQ(denied.error().denied->range, (NfsRange{0, 9}));
  EXPECT_TRUE(denied.error().denied->exclusive);
  EXPECT_EQ(denied.error().denied->owner->owner, "locker");
  EXPECT_EQ(denied.error().denied->owner->client, NfsClientId(0x500000001));
  EXPECT_TRUE(world.two.test_lock("locker", kNode, {5, 5}, false));
  EXPECT_FALSE(world.one.test_lock("locker", kNode, {5, 5}, true));
  EXPECT_TRUE(world.one.test_lock("someone else", kNode, {5, 5}, true));

  const auto more = world.one.lock(
      {.node = kNode, .range = {10, 19}, .exclusive = true, .stateid = *taken, .new_owner = {}});
  ASSERT_TRUE(more);
  EXPECT_EQ(more->seqid, 2U);
  EXPECT_EQ(world.tables.locks.size(), 1U);
  EXPECT_EQ(status_of_files(world.one.unlock(*taken, kNode, {0, 9})), NfsStatus::kOldStateid);
  const auto middle = world.one.unlock(*more, kNode, {5, 14});
  ASSERT_TRUE(middle);
  EXPECT_EQ(world.tables.locks.size(), 2U);
  EXPECT_FALSE(world.two.test_lock("locker", kNode, {5, 14}, true));
  EXPECT_EQ(world.one.free(*middle), NfsStatus::kLocksHeld);
  const auto rest = world.one.unlock(*middle, kNode, {0, UINT64_MAX});
  EXPECT_EQ(world.one.free(*rest), NfsStatus::kOk);
  EXPECT_EQ(world.one.free(*rest), NfsStatus::kBadStateid);
  EXPECT_EQ(world.one.free(one_open), NfsStatus::kLocksHeld);
}

TEST_F(NfsLocksTest, ALockStateidReadsAsItsOpenDoes) {
  const auto taken = world.one.lock(first_lock(one_open, {0, 9}, false));
  EXPECT_EQ(world.one.check(*taken, kNode, kShareAccessRead), NfsStatus::kOk);
  EXPECT_EQ(world.one.test(*taken), NfsStatus::kOk);
  EXPECT_EQ(status_of_files(world.one.close(*taken, kNode)), NfsStatus::kBadStateid);
}

TEST_F(NfsLocksTest, CloseAndClearGiveLocksUp) {
  const auto one = world.one.lock(first_lock(one_open, {0, 9}, false));
  ASSERT_TRUE(world.two.lock(first_lock(two_open, {0, 9}, false)));
  EXPECT_TRUE(world.one.close(one_open, kNode));
  EXPECT_EQ(world.one.test(*one), NfsStatus::kBadStateid);
  EXPECT_EQ(world.tables.locks.size(), 1U);
  world.two.clear();
  EXPECT_EQ(world.tables.locks.size(), 0U);
}

TEST_F(NfsLocksTest, TheOpenMustAllowTheLock) {
  const NfsStateid reads = *world.one.open({.owner = "r", .node = kOtherNode, .share = kReads});
  NfsLockRequest request = first_lock(reads, {0, 9}, true);
  request.node = kOtherNode;
  EXPECT_EQ(world.one.lock(request).error().status, NfsStatus::kOpenMode);
  request.exclusive = false;
  EXPECT_TRUE(world.one.lock(request));
  request.node = kNode;
  EXPECT_EQ(world.one.lock(request).error().status, NfsStatus::kBadStateid);
}

TEST(NfsRange, TellsWhatCannotBe) {
  EXPECT_FALSE(NfsRange::of(0, 0));
  EXPECT_FALSE(NfsRange::of(2, UINT64_MAX - 1));
  EXPECT_EQ(NfsRange::of(1, UINT64_MAX - 1), (NfsRange{1, UINT64_MAX - 1}));
  EXPECT_EQ(NfsRange::of(7, UINT64_MAX), (NfsRange{7, UINT64_MAX}));
  EXPECT_EQ((NfsRange{7, UINT64_MAX}).length(), UINT64_MAX);
  EXPECT_EQ(NfsRange::of(7, 1), (NfsRange{7, 7}));
}

}  // namespace
}  // namespace millrace
