#include "frontends/nfs4/nfs_range_locks.h"

#include <array>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace {
namespace {

const NodeNumber kLockedNode(3);
constexpr std::uint64_t kBytes = 24;
constexpr std::size_t kOwners = 3;

enum class Held : std::uint8_t { kNot, kShared, kExclusive };

// Byte by byte, what each owner holds.
class NfsRangeLockModel {
 public:
  explicit NfsRangeLockModel(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < kOwners; ++i)
      owners_[i] = std::make_shared<const NfsStateOwner>(NfsClientId(i), "owner");
  }

  void step() {
    const std::size_t who = random_.next() % kOwners;
    const std::uint64_t first = random_.next() % kBytes;
    // Some reach to the end of all files: the model's last byte stands for what follows.
    const bool to_end = random_.next() % 8 == 0;
    const std::uint64_t last = to_end ? kBytes - 1 : first + random_.next() % (kBytes - first);
    const NfsRange range{first, last == kBytes - 1 ? UINT64_MAX : last};
    if (random_.next() % 3 == 0) {
      EXPECT_EQ(locks_.unlock(kLockedNode, range, owners_[who]), NfsStatus::kOk);
      fill(who, first, last, Held::kNot);
    } else {
      lock(who, range, first, last, random_.next() % 2 == 0);
    }
    compare();
  }

  int taken() const { return taken_; }
  int denied() const { return denied_; }

 private:
  void lock(std::size_t who, NfsRange range, std::uint64_t first, std::uint64_t last,
            bool exclusive) {
    bool free = true;
    for (std::uint64_t at = first; at <= last; ++at) {
      for (std::size_t other = 0; other < kOwners; ++other) {
        const Held held = bytes_[other][at];
        if (other != who && (held == Held::kExclusive || (held != Held::kNot && exclusive)))
          free = false;
      }
    }
    const NfsRangeLock wanted{.range = range, .exclusive = exclusive, .owner = owners_[who]};
    EXPECT_EQ(locks_.conflict(kLockedNode, wanted).has_value(), !free);
    const auto result = locks_.lock(kLockedNode, wanted);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->has_value(), !free);
    if (!free) {
      ++denied_;
      EXPECT_TRUE((*result)->range.overlaps(range));
      EXPECT_NE((*result)->owner, owners_[who]);
      return;
    }
    ++taken_;
    fill(who, first, last, exclusive ? Held::kExclusive : Held::kShared);
  }

  void fill(std::size_t who, std::uint64_t first, std::uint64_t last, Held held) {
    for (std::uint64_t at = first; at <= last; ++at)
      bytes_[who][at] = held;
  }

  // A stranger sees each byte as the model has it, and no range is there twice.
  void compare() {
    std::size_t runs = 0;
    for (std::size_t who = 0; who < kOwners; ++who) {
      for (std::uint64_t at = 0; at < kBytes; ++at) {
        const bool begins = at == 0 || bytes_[who][at - 1] != bytes_[who][at];
        if (bytes_[who][at] != Held::kNot && begins) ++runs;
      }
      const bool any = std::ranges::any_of(bytes_[who], [](Held h) { return h != Held::kNot; });
      EXPECT_EQ(locks_.holds_any(kLockedNode, owners_[who]), any);
    }
    EXPECT_EQ(locks_.size(), runs);
    for (std::uint64_t at = 0; at < kBytes; ++at) {
      bool any = false;
      bool exclusive = false;
      for (std::size_t who = 0; who < kOwners; ++who) {
        any |= bytes_[who][at] != Held::kNot;
        exclusive |= bytes_[who][at] == Held::kExclusive;
      }
      const auto seen = [&](bool wants_exclusive) {
        return locks_
            .conflict(kLockedNode,
                      {.range = {at, at}, .exclusive = wants_exclusive, .owner = nullptr})
            .has_value();
      };
      EXPECT_EQ(seen(true), any) << at;
      EXPECT_EQ(seen(false), exclusive) << at;
    }
  }

  SeededRandom random_;
  NfsRangeLocks locks_{1000};
  std::array<NfsLockOwner, kOwners> owners_;
  std::array<std::array<Held, kBytes>, kOwners> bytes_ = {};
  int taken_ = 0;
  int denied_ = 0;
};

TEST(NfsRangeLocks, DoWhatAModelOfBytesDoes) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    NfsRangeLockModel model(seed);
    for (int i = 0; i < 300; ++i)
      model.step();
    EXPECT_GT(model.taken(), 20);
    EXPECT_GT(model.denied(), 20);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(NfsRangeLocks, AreBounded) {
  NfsRangeLocks locks(2);
  const auto owner = std::make_shared<const NfsStateOwner>(NfsClientId(1), "owner");
  const auto lock = [&](NodeNumber node, std::uint64_t first, std::uint64_t last) {
    return locks.lock(node, {.range = {first, last}, .exclusive = true, .owner = owner});
  };
  EXPECT_TRUE(lock(NodeNumber(1), 0, 9));
  EXPECT_TRUE(lock(NodeNumber(2), 0, 9));
  EXPECT_EQ(lock(NodeNumber(2), 20, 29).error(), NfsStatus::kDelay);
  // A hole in the middle would be one more.
  EXPECT_EQ(locks.unlock(NodeNumber(1), {4, 5}, owner), NfsStatus::kDelay);
  EXPECT_TRUE(lock(NodeNumber(2), 10, 19));
  EXPECT_EQ(locks.unlock(NodeNumber(1), {0, 9}, owner), NfsStatus::kOk);
  EXPECT_EQ(locks.unlock(NodeNumber(2), {4, 5}, owner), NfsStatus::kOk);
  EXPECT_EQ(locks.size(), 2U);
}

}  // namespace
}  // namespace millrace
