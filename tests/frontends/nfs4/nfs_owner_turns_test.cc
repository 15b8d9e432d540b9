#include "frontends/nfs4/nfs_owner_turns.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

const NodeNumber kTurnNode(7);

// One client of 4.0, and the way a server walks through its operations.
class NfsOwnerTurnsTest : public ::testing::Test {
 protected:
  NfsFileTables tables{.options = {}, .life = 5, .delegations = NfsDelegations({1, 2})};
  NfsClientFiles files{NfsClientId(0x500000001), false, tables};
  NfsOwnerTurns turns{files, 4};
  NfsStateid stateid;  // That the last operation has answered.

  // What an operation answers: "ok", a kept answer, or nothing and its status in `status`.
  NfsStatus status = NfsStatus::kOk;

  std::string end(NfsResult<NfsOwnerTurns::Begun> begun, auto operation) {
    status = begun ? NfsStatus::kOk : begun.error();
    if (!begun) return "";
    if (const std::string* const kept = std::get_if<std::string>(&*begun)) return "kept " + *kept;
    NfsOwnerTurn& turn = std::get<NfsOwnerTurn>(*begun);
    status = operation(turn);
    std::string reply = std::to_string(static_cast<std::uint32_t>(status));
    turn.finish(status, reply);
    return reply;
  }
  NfsStatus take(const NfsResult<NfsStateid>& result) {
    if (result) stateid = *result;
    return result ? NfsStatus::kOk : result.error();
  }

  std::string open(const std::string& owner, std::uint32_t sequence, NodeNumber node = kTurnNode) {
    return end(turns.begin_open(owner, sequence), [&](NfsOwnerTurn& turn) {
      confirmed_ = !turn.needs_confirmation();
      return take(files.open(
          {.owner = owner, .node = node, .share = {.access = kShareAccessRead, .deny = 0}}));
    });
  }
  std::string open_confirm(const NfsStateid& id, std::uint32_t sequence) {
    return end(turns.begin_confirm(id, sequence), [&](NfsOwnerTurn& turn) {
      const NfsStatus done = take(files.confirm(id, kTurnNode));
      if (done == NfsStatus::kOk) turn.confirm();
      return done;
    });
  }
  std::string close(const NfsStateid& id, std::uint32_t sequence) {
    return end(turns.begin(id, sequence), [&](NfsOwnerTurn& turn) {
      const NfsStatus done = take(files.close(id, kTurnNode));
      if (done == NfsStatus::kOk) turn.note_closed(id);
      return done;
    });
  }
  bool confirmed_ = false;
};

TEST_F(NfsOwnerTurnsTest, AnOwnerOpensConfirmsAndCloses) {
  EXPECT_EQ(open("o", 10), "0");
  EXPECT_FALSE(confirmed_);
  const NfsStateid opened = stateid;
  EXPECT_EQ(close(opened, 11), "");
  EXPECT_EQ(status, NfsStatus::kBadStateid);
  EXPECT_EQ(open_confirm(opened, 12), "");
  EXPECT_EQ(status, NfsStatus::kBadSeqid);
  EXPECT_EQ(open_confirm(opened, 11), "0");
  EXPECT_EQ(stateid.seqid, opened.seqid + 1);
  EXPECT_EQ(open_confirm(opened, 11), "kept 0");
  EXPECT_EQ(open_confirm(stateid, 12), "");
  EXPECT_EQ(status, NfsStatus::kBadStateid);
  EXPECT_EQ(open("o", 12, NodeNumber(8)), "0");
  EXPECT_TRUE(confirmed_);
  EXPECT_EQ(open("o", 12, NodeNumber(8)), "kept 0");
  EXPECT_EQ(open("o", 14, NodeNumber(8)), "");
  EXPECT_EQ(status, NfsStatus::kBadSeqid);
}

TEST_F(NfsOwnerTurnsTest, ACloseIsRetriedByTheStateidThatItClosed) {
  open("o", 1);
  open_confirm(stateid, 2);
  const NfsStateid closed = stateid;
  EXPECT_EQ(close(closed, 3), "0");
  EXPECT_EQ(close(closed, 3), "kept 0");
  EXPECT_EQ(close(closed, 4), "10025");
  EXPECT_EQ(status, NfsStatus::kBadStateid);
  // That took no number.
  EXPECT_EQ(open("o", 4), "0");
  EXPECT_TRUE(confirmed_);
}

TEST_F(NfsOwnerTurnsTest, AFailureTakesANumberUnlessItIsAsIfItHadNotCome) {
  open("o", 1);
  open_confirm(stateid, 2);
  NfsStateid old = stateid;
  old.seqid -= 1;
  EXPECT_EQ(close(old, 3), "10024");
  EXPECT_EQ(close(old, 3), "kept 10024");
  EXPECT_EQ(close(stateid, 4), "0");
}

TEST_F(NfsOwnerTurnsTest, AnUnconfirmedOwnerBeginsAnew) {
  open("o", 1);
  EXPECT_EQ(open("o", 70, NodeNumber(8)), "0");
  EXPECT_EQ(files.opens(), 1U);
  EXPECT_EQ(stateid.seqid, 1U);
}

TEST_F(NfsOwnerTurnsTest, OneOperationOfAnOwnerAtATime) {
  open("o", 1);
  open_confirm(stateid, 2);
  {
    const auto begun = turns.begin(stateid, 3);
    ASSERT_TRUE(begun);
    EXPECT_EQ(open("o", 3), "");
    EXPECT_EQ(status, NfsStatus::kDelay);
    EXPECT_EQ(open("other", 3), "0");
  }
  // What was dropped took no number.
  EXPECT_EQ(close(stateid = *files.open({.owner = "o",
                                         .node = kTurnNode,
                                         .share = {.access = kShareAccessRead, .deny = 0}}),
                  3),
            "0");
}

TEST_F(NfsOwnerTurnsTest, LockOwnersHaveNumbersOfTheirOwn) {
  open("o", 1);
  open_confirm(stateid, 2);
  const NfsStateid opened = stateid;
  end(turns.begin(opened, 3), [&](NfsOwnerTurn&) {
    const auto locked =
        files.lock({.node = kTurnNode, .range = {0, 9}, .stateid = opened, .new_owner = "locker"});
    stateid = *locked;
    turns.start_lock_owner("locker", 50);
    return NfsStatus::kOk;
  });
  const NfsStateid locked = stateid;
  const auto unlock = [&](const NfsStateid& id, std::uint32_t sequence) {
    return end(turns.begin(id, sequence),
               [&](NfsOwnerTurn&) { return take(files.unlock(id, kTurnNode, {0, 9})); });
  };
  EXPECT_EQ(turns.release_lock_owner("locker"), NfsStatus::kLocksHeld);
  EXPECT_EQ(unlock(locked, 53), "");
  EXPECT_EQ(status, NfsStatus::kBadSeqid);
  EXPECT_EQ(unlock(locked, 51), "0");
  EXPECT_EQ(unlock(locked, 51), "kept 0");
  EXPECT_EQ(turns.release_lock_owner("locker"), NfsStatus::kOk);
  EXPECT_EQ(turns.release_lock_owner("locker"), NfsStatus::kOk);
  EXPECT_EQ(unlock(stateid, 52), "");
  EXPECT_EQ(status, NfsStatus::kBadStateid);
  EXPECT_EQ(close(opened, 4), "0");
}

TEST_F(NfsOwnerTurnsTest, TooManyOwnersPushOutTheOneThatHasNothingOpenLongest) {
  std::vector<NfsStateid> opened;
  for (const char* owner : {"a", "b", "c", "d"}) {
    open(owner, 1);
    open_confirm(stateid, 2);
    opened.push_back(stateid);
  }
  EXPECT_EQ(open("e", 1), "");
  EXPECT_EQ(status, NfsStatus::kResource);
  close(opened[2], 3);
  close(opened[1], 3);
  EXPECT_EQ(open("e", 1), "0");
  // "c" is gone: it begins with any number; "b" is still known.
  EXPECT_EQ(open("b", 9), "");
  EXPECT_EQ(status, NfsStatus::kBadSeqid);
  EXPECT_EQ(open("c", 9), "0");
}

}  // namespace
}  // namespace millrace
