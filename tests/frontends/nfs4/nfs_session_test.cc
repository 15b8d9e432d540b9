#include "frontends/nfs4/nfs_session.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_state_world.h"

namespace millrace {
namespace {

NfsSequenceRequest sequence_request(std::uint32_t slot, std::uint32_t number) {
  return {.call = {.slot = slot, .sequence = number},
          .cache_this = true,
          .operations = 2,
          .request_bytes = 200};
}

NfsStatus status_of_begin(NfsSession& session, const NfsSequenceRequest& request) {
  const auto begun = session.begin(request);
  return begun ? NfsStatus::kOk : begun.error();
}

TEST(NfsSession, ARetryGetsTheReplyAndDoesNotRun) {
  NfsStateWorld world;
  const auto session = world.client("a");
  EXPECT_EQ(world.sequence(*session, 0, 1, "first"), NfsStatus::kOk);
  EXPECT_EQ(world.retry(*session, 0, 1), "first");
  EXPECT_EQ(world.sequence(*session, 0, 2, "second"), NfsStatus::kOk);
  EXPECT_EQ(world.retry(*session, 0, 2), "second");
  EXPECT_EQ(world.state->session_memory().reply_bytes(), 6U);
}

TEST(NfsSession, AnAbandonedRequestFreesItsSlotAndIsNotRunAgain) {
  NfsStateWorld world;
  const auto session = world.client("a");
  {
    const auto begun = session->begin(sequence_request(0, 1));
    ASSERT_TRUE(begun);
    EXPECT_TRUE(std::get<NfsSlotUse>(*begun).must_keep_reply());
    EXPECT_EQ(status_of_begin(*session, sequence_request(0, 1)), NfsStatus::kDelay);
  }
  const auto again = session->begin(sequence_request(0, 1));
  ASSERT_TRUE(again);
  EXPECT_EQ(std::get<NfsRetry>(*again).reply, nullptr);
  EXPECT_EQ(world.sequence(*session, 0, 2), NfsStatus::kOk);
}

TEST(NfsSession, OnlyWhatIsAskedForIsKeptAndALoneSequence) {
  NfsStateWorld world;
  const auto session = world.client("a");
  NfsSequenceRequest request = sequence_request(0, 1);
  request.cache_this = false;
  {
    auto begun = session->begin(request);
    std::get<NfsSlotUse>(*begun).finish("not kept");
  }
  EXPECT_EQ(std::get<NfsRetry>(*session->begin(request)).reply, nullptr);
  request.call.sequence = 2;
  request.operations = 1;
  {
    auto begun = session->begin(request);
    std::get<NfsSlotUse>(*begun).finish("kept");
  }
  EXPECT_EQ(*std::get<NfsRetry>(*session->begin(request)).reply, "kept");
  request.call.sequence = 3;
  {
    auto begun = session->begin(request);
    NfsSlotUse& use = std::get<NfsSlotUse>(*begun);
    EXPECT_TRUE(use.keeps_reply());
    EXPECT_FALSE(use.must_keep_reply());
    use.finish(std::string(7585, 'r'));
  }
  EXPECT_EQ(std::get<NfsRetry>(*session->begin(request)).reply, nullptr);
}

TEST(NfsSession, WhatTheTermsDoNotAllowLeavesTheSlotAlone) {
  NfsStateWorld world;
  NfsCreateSessionRequest terms = world.session_request(*world.exchange("a"));
  terms.fore.cached_response_bytes_max = 10;
  const auto session =
      world.state->sessions().find(world.state->clients().create_session(terms)->session);
  NfsSequenceRequest request = sequence_request(0, 1);
  EXPECT_EQ(status_of_begin(*session, request), NfsStatus::kRepTooBigToCache);
  request.cache_this = false;
  request.operations = 9;
  EXPECT_EQ(status_of_begin(*session, request), NfsStatus::kTooManyOps);
  request.operations = 8;
  request.request_bytes = 1049621;
  EXPECT_EQ(status_of_begin(*session, request), NfsStatus::kReqTooBig);
  request.request_bytes = 1049620;
  EXPECT_EQ(status_of_begin(*session, request), NfsStatus::kOk);
}

TEST(NfsSession, ARefusedRequestRenewsNoLease) {
  NfsStateWorld world;
  const auto session = world.client("a");
  const TimePoint made = session->client().renewed();
  world.clock.advance(std::chrono::seconds(5));
  EXPECT_EQ(world.sequence(*session, 0, 7), NfsStatus::kSeqMisordered);
  EXPECT_EQ(session->client().renewed(), made);
  EXPECT_EQ(world.sequence(*session, 0, 1), NfsStatus::kOk);
  EXPECT_EQ(session->client().renewed(), made + std::chrono::seconds(5));
}

TEST(NfsSession, SlotsGrowAsTheyAreUsedUpToTheLimit) {
  NfsStateWorld world;
  const auto session = world.client("a");
  EXPECT_EQ(world.sequence(*session, 64, 1), NfsStatus::kBadSlot);
  std::uint32_t highest = 63;
  std::vector<NfsSlotUse> uses;
  for (std::uint32_t slot = 0; slot < kNfsSlotsMax; ++slot) {
    ASSERT_LE(slot, highest);
    auto begun = session->begin(sequence_request(slot, 1));
    ASSERT_TRUE(begun) << slot;
    uses.push_back(std::move(std::get<NfsSlotUse>(*begun)));
    highest = uses.back().answer().target_highest_slot;
    EXPECT_EQ(uses.back().answer().highest_slot, highest);
  }
  EXPECT_EQ(highest, kNfsSlotsMax - 1);
  EXPECT_EQ(world.sequence(*session, kNfsSlotsMax, 1), NfsStatus::kBadSlot);
}

TEST(NfsSession, AClientThatUsesFewSlotsKeepsFew) {
  NfsStateWorld world;
  const auto session = world.client("a");
  for (std::uint32_t number = 1; number < 20; ++number) {
    for (std::uint32_t slot = 0; slot < 40; ++slot)
      EXPECT_EQ(world.sequence(*session, slot, number), NfsStatus::kOk);
  }
  EXPECT_EQ(world.state->session_memory().slots(), 64U);
}

TEST(NfsSession, AllSessionsShareTheSlotsThatThereAre) {
  NfsStateOptions options;
  options.slots_max = 100;
  NfsStateWorld world(options);
  const auto a = world.client("a");
  const auto b = world.client("b");
  const auto c = world.client("c");
  EXPECT_EQ(a->terms().fore.requests_max, 64U);
  EXPECT_EQ(b->terms().fore.requests_max, 36U);
  EXPECT_EQ(c->terms().fore.requests_max, 1U);
  EXPECT_EQ(world.sequence(*a, 63, 1), NfsStatus::kOk);
  EXPECT_EQ(world.sequence(*a, 64, 1), NfsStatus::kBadSlot);
  EXPECT_EQ(world.state->session_memory().slots(), 101U);
}

TEST(NfsSession, SlotsAndRepliesGoWithTheSession) {
  NfsStateWorld world;
  auto session = world.client("a");
  EXPECT_EQ(world.sequence(*session, 0, 1), NfsStatus::kOk);
  auto begun = session->begin(sequence_request(1, 1));
  EXPECT_EQ(world.state->clients().destroy_session(session->id()), NfsStatus::kOk);
  EXPECT_EQ(world.sequence(*session, 0, 2), NfsStatus::kBadSession);
  // What still runs may end.
  std::get<NfsSlotUse>(*begun).finish("late");
  begun = std::unexpected(NfsStatus::kOk);
  session.reset();
  EXPECT_EQ(world.state->session_memory().reply_bytes(), 0U);
  EXPECT_EQ(world.state->session_memory().slots(), 0U);
}

TEST(NfsSession, RepliesOfGoneClientsGoFirstThenTheOldest) {
  NfsStateOptions options;
  options.reply_bytes_max = 10'000;
  NfsStateWorld world(options);
  const std::string reply(1000, 'r');
  const auto gone = world.client("gone");
  EXPECT_EQ(world.sequence(*gone, 0, 1, reply), NfsStatus::kOk);
  world.clock.advance(options.lease + std::chrono::seconds(1));
  const auto old = world.client("old");
  EXPECT_EQ(world.sequence(*old, 0, 1, reply), NfsStatus::kOk);
  world.clock.advance(std::chrono::seconds(1));
  const auto busy = world.client("busy");
  std::uint32_t slot = 0;
  const auto fill = [&](int count) {
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(world.sequence(*busy, slot++, 1, reply), NfsStatus::kOk);
  };
  fill(8);
  EXPECT_EQ(world.retry(*gone, 0, 1), reply);
  // The retry has brought it back: it is not gone any more, but used last.
  world.clock.advance(options.lease + std::chrono::seconds(1));
  EXPECT_EQ(world.retry(*old, 0, 1), reply);
  EXPECT_EQ(world.retry(*busy, 0, 1), reply);
  fill(1);
  EXPECT_EQ(world.retry(*gone, 0, 1), std::nullopt);
  EXPECT_LE(world.state->session_memory().reply_bytes(), options.reply_bytes_max);
  EXPECT_EQ(world.sequence(*gone, 0, 2), NfsStatus::kOk);
}

TEST(NfsSession, CallbacksGoToTheConnectionThatWasBoundLast) {
  NfsStateWorld world;
  NfsSessionTable& table = world.state->sessions();
  const auto session = world.client("a");
  EXPECT_EQ(session->back_channel(), NfsConnectionId(1));
  table.connection_opened(NfsConnectionId(2));
  EXPECT_EQ(table.bind(*session, NfsConnectionId(2), NfsChannelWish::kBack), NfsChannel::kBack);
  EXPECT_EQ(session->back_channel(), NfsConnectionId(2));
  EXPECT_EQ(table.bind(*session, NfsConnectionId(1), NfsChannelWish::kBackOrBoth),
            NfsChannel::kBoth);
  EXPECT_EQ(session->back_channel(), NfsConnectionId(1));
  table.connection_closed(NfsConnectionId(1));
  EXPECT_EQ(session->back_channel(), NfsConnectionId(2));
  EXPECT_EQ(table.bind(*session, NfsConnectionId(2), NfsChannelWish::kFore), NfsChannel::kFore);
  EXPECT_EQ(session->back_channel(), std::nullopt);
  // A connection that is closed binds nothing, however late its request runs.
  EXPECT_EQ(table.bind(*session, NfsConnectionId(1), NfsChannelWish::kBack), NfsChannel::kFore);
}

TEST(NfsSession, ALostCallbackPathIsToldTheClient) {
  NfsStateWorld world;
  auto id = world.exchange("a");
  const auto one = world.state->sessions().find(world.create(*id)->session);
  world.state->sessions().connection_opened(NfsConnectionId(2));
  ++id->sequence;
  NfsCreateSessionRequest request = world.session_request(*id);
  request.connection = NfsConnectionId(2);
  const auto two =
      world.state->sessions().find(world.state->clients().create_session(request)->session);
  const auto flags = [&](NfsSession& session, std::uint32_t number) {
    auto begun = session.begin(sequence_request(0, number));
    return std::get<NfsSlotUse>(*begun).answer().status_flags;
  };
  EXPECT_EQ(flags(*one, 1), 0U);
  world.state->sessions().connection_closed(NfsConnectionId(1));
  EXPECT_EQ(flags(*one, 2), kSequenceCbPathDownSession);
  EXPECT_EQ(flags(*two, 1), 0U);
  world.state->sessions().connection_closed(NfsConnectionId(2));
  EXPECT_EQ(flags(*one, 3), kSequenceCbPathDownSession | kSequenceCbPathDown);
  world.state->sessions().connection_opened(NfsConnectionId(3));
  world.state->sessions().bind(*one, NfsConnectionId(3), NfsChannelWish::kBackOrBoth);
  EXPECT_EQ(flags(*one, 4), 0U);
  EXPECT_EQ(flags(*two, 2), kSequenceCbPathDownSession);
}

// Threads share a session as the connections of a mount do, while replies are dropped and the
// client restarts: every request runs once, and the books are right at the end.
TEST(NfsSession, ManyConnectionsAtOnce) {
  NfsStateOptions options;
  options.reply_bytes_max = 20'000;
  NfsStateWorld world(options);
  std::atomic<int> runs = 0;
  {
    const auto session = world.client("a");
    std::vector<std::jthread> threads;
    for (std::uint32_t thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::uint32_t number = 1; number <= 500; ++number) {
          // Each pair of threads sends the same numbers in the same slots.
          const std::uint32_t slot = thread / 2;
          auto begun = session->begin(sequence_request(slot, number));
          if (!begun) {
            if (begun.error() == NfsStatus::kDelay) --number;
            continue;
          }
          if (NfsSlotUse* const use = std::get_if<NfsSlotUse>(&*begun)) {
            ++runs;
            use->finish(std::string(100, 'r'));
          }
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto other = world.client("b", static_cast<std::uint64_t>(i));
        for (std::uint32_t slot = 0; slot < 60; ++slot)
          world.sequence(*other, slot, 1, std::string(400, 'r'));
      }
    });
    threads.clear();
    EXPECT_EQ(runs, 1000);
  }
  EXPECT_LE(world.state->session_memory().reply_bytes(), options.reply_bytes_max);
  EXPECT_EQ(world.state->session_memory().slots() % 64, 0U);
  EXPECT_EQ(world.state->clients().size(), 2U);
}

}  // namespace
}  // namespace millrace
