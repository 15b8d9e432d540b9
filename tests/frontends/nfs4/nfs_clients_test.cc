#include "frontends/nfs4/nfs_clients.h"

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_state_world.h"

namespace millrace {
namespace {

NfsStatus status_of(const auto& result) { return result ? NfsStatus::kOk : result.error(); }

// The numbers are those of the cases in RFC 8881, 18.35.5.
TEST(NfsClients, ExchangeIdCases1And4AnUnconfirmedClientIsReplaced) {
  NfsStateWorld world;
  const auto first = world.exchange("a");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->sequence, 1U);
  EXPECT_FALSE(first->confirmed);
  const auto again = world.exchange("a");
  const auto other = world.exchange("a", 2, "sys:7");
  EXPECT_NE(again->client, first->client);
  EXPECT_NE(other->client, again->client);
  EXPECT_EQ(status_of(world.create(*first)), NfsStatus::kStaleClientId);
  EXPECT_EQ(status_of(world.create(*again)), NfsStatus::kStaleClientId);
}

TEST(NfsClients, ExchangeIdCases2And6AConfirmedClientIsFound) {
  NfsStateWorld world;
  const auto first = world.exchange("a");
  ASSERT_TRUE(world.create(*first));
  for (const bool update : {false, true}) {
    const auto again = world.exchange("a", 1, "sys:0", update);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->client, first->client);
    EXPECT_TRUE(again->confirmed);
    EXPECT_EQ(again->sequence, 2U);
  }
}

TEST(NfsClients, ExchangeIdCase3AnotherPrincipalGetsTheNameOnlyWhenItIsFree) {
  NfsStateWorld world;
  const auto session = world.client("a");
  ASSERT_NE(session, nullptr);
  const NfsClientId first = session->client().id();
  EXPECT_EQ(status_of(world.exchange("a", 1, "sys:7")), NfsStatus::kClidInUse);
  ASSERT_EQ(world.state->clients().destroy_session(session->id()), NfsStatus::kOk);
  const auto other = world.exchange("a", 1, "sys:7");
  ASSERT_TRUE(other);
  EXPECT_NE(other->client, first);
  EXPECT_EQ(status_of(world.create({.client = first, .sequence = 2})), NfsStatus::kStaleClientId);
}

TEST(NfsClients, ExchangeIdCase3AGoneClientGivesItsNameAway) {
  NfsStateWorld world;
  const auto session = world.client("a");
  world.clock.advance(world.options.lease + std::chrono::seconds(1));
  EXPECT_TRUE(world.exchange("a", 1, "sys:7"));
  EXPECT_EQ(world.sequence(*session, 0, 1), NfsStatus::kBadSession);
}

TEST(NfsClients, ExchangeIdCase5ARestartedClientLosesItsPastWhenItIsConfirmed) {
  NfsStateWorld world;
  const auto before = world.client("a", 1);
  const auto restarted = world.exchange("a", 2);
  ASSERT_TRUE(restarted);
  EXPECT_NE(restarted->client, before->client().id());
  EXPECT_EQ(world.sequence(*before, 0, 1), NfsStatus::kOk);
  ASSERT_TRUE(world.create(*restarted));
  EXPECT_EQ(world.sequence(*before, 0, 2), NfsStatus::kBadSession);
  EXPECT_EQ(world.state->sessions().find(before->id()), nullptr);
  EXPECT_EQ(world.state->clients().size(), 1U);
}

TEST(NfsClients, ExchangeIdCases7To9AnUpdateNeedsTheSameConfirmedClient) {
  NfsStateWorld world;
  EXPECT_EQ(status_of(world.exchange("a", 1, "sys:0", true)), NfsStatus::kNoEnt);
  ASSERT_TRUE(world.exchange("a"));
  EXPECT_EQ(status_of(world.exchange("a", 1, "sys:0", true)), NfsStatus::kNoEnt);
  ASSERT_NE(world.client("a"), nullptr);
  EXPECT_EQ(status_of(world.exchange("a", 2, "sys:0", true)), NfsStatus::kNotSame);
  EXPECT_EQ(status_of(world.exchange("a", 1, "sys:7", true)), NfsStatus::kPerm);
}

TEST(NfsClients, CreateSessionAnswersARetryAsBefore) {
  NfsStateWorld world;
  const auto client = world.exchange("a");
  NfsCreateSessionRequest request = world.session_request(*client);
  request.sequence = 0;
  EXPECT_EQ(status_of(world.state->clients().create_session(request)), NfsStatus::kSeqMisordered);
  request.sequence = 1;
  const auto first = world.state->clients().create_session(request);
  const auto again = world.state->clients().create_session(request);
  ASSERT_TRUE(first);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->session, first->session);
  EXPECT_EQ(world.state->sessions().size(), 1U);
  request.sequence = 3;
  EXPECT_EQ(status_of(world.state->clients().create_session(request)), NfsStatus::kSeqMisordered);
  request.sequence = 2;
  // Once it is confirmed, anybody may make sessions for it.
  request.principal = "sys:7";
  const auto second = world.state->clients().create_session(request);
  ASSERT_TRUE(second);
  EXPECT_NE(second->session, first->session);
  EXPECT_EQ(second->sequence, 2U);
}

TEST(NfsClients, OnlyWhoMadeTheClientConfirmsIt) {
  NfsStateWorld world;
  const auto client = world.exchange("a");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        status_of(world.state->clients().create_session(world.session_request(*client, "sys:7"))),
        NfsStatus::kClidInUse);
  }
  EXPECT_TRUE(world.create(*client));
}

TEST(NfsClients, TermsAreNeverMoreThanAskedFor) {
  NfsStateWorld world;
  const auto linux_like = world.create(*world.exchange("a"));
  ASSERT_TRUE(linux_like);
  EXPECT_EQ(linux_like->fore, world.fore_channel());
  EXPECT_EQ(linux_like->flags, kSessionBackChannel);

  NfsCreateSessionRequest greedy = world.session_request(*world.exchange("b"));
  greedy.flags = kSessionPersist | kSessionRdma;
  greedy.fore = {.header_pad_bytes = 8,
                 .request_bytes_max = UINT32_MAX,
                 .response_bytes_max = UINT32_MAX,
                 .cached_response_bytes_max = UINT32_MAX,
                 .operations_max = UINT32_MAX,
                 .requests_max = 2049};
  const auto terms = world.state->clients().create_session(greedy);
  ASSERT_TRUE(terms);
  EXPECT_EQ(terms->flags, 0U);
  EXPECT_EQ(terms->fore.requests_max, kNfsSlotsMax);
  EXPECT_EQ(terms->fore.operations_max, kNfsOperationsMax);
  EXPECT_EQ(terms->fore.cached_response_bytes_max, kNfsCachedReplyBytesMax);
  EXPECT_EQ(terms->fore.header_pad_bytes, 0U);
}

TEST(NfsClients, TermsThatCarryNothingUseNoNumberUp) {
  NfsStateWorld world;
  const auto client = world.exchange("a");
  const auto answer = [&](auto change) {
    NfsCreateSessionRequest request = world.session_request(*client);
    change(request);
    return status_of(world.state->clients().create_session(request));
  };
  EXPECT_EQ(answer([](auto& r) { r.flags = 0xf; }), NfsStatus::kInval);
  EXPECT_EQ(answer([](auto& r) { r.fore.response_bytes_max = 0; }), NfsStatus::kTooSmall);
  EXPECT_EQ(answer([](auto& r) { r.fore.request_bytes_max = 20; }), NfsStatus::kTooSmall);
  EXPECT_EQ(answer([](auto& r) { r.fore.requests_max = 0; }), NfsStatus::kInval);
  EXPECT_EQ(answer([](auto& r) { r.back.request_bytes_max = 10; }), NfsStatus::kTooSmall);
  EXPECT_EQ(answer([](auto& r) { r.back.operations_max = 1; }), NfsStatus::kTooSmall);
  EXPECT_EQ(answer([](auto&) {}), NfsStatus::kOk);
}

TEST(NfsClients, AnUnconfirmedClientHasOneLeaseToBeConfirmed) {
  NfsStateWorld world;
  const auto in_time = world.exchange("a");
  world.clock.advance(world.options.lease - std::chrono::seconds(1));
  EXPECT_TRUE(world.create(*in_time));
  const auto late = world.exchange("b");
  world.clock.advance(world.options.lease + std::chrono::seconds(1));
  EXPECT_EQ(status_of(world.create(*late)), NfsStatus::kStaleClientId);
}

TEST(NfsClients, AClientIsDestroyedAfterItsSessions) {
  NfsStateWorld world;
  NfsClients& clients = world.state->clients();
  const auto session = world.client("a");
  const NfsClientId id = session->client().id();
  EXPECT_EQ(clients.destroy_client(id), NfsStatus::kClientIdBusy);
  EXPECT_EQ(clients.destroy_session(session->id()), NfsStatus::kOk);
  EXPECT_EQ(clients.destroy_session(session->id()), NfsStatus::kBadSession);
  EXPECT_EQ(clients.destroy_client(id), NfsStatus::kOk);
  EXPECT_EQ(clients.destroy_client(id), NfsStatus::kStaleClientId);
  const auto unconfirmed = world.exchange("b");
  EXPECT_EQ(clients.destroy_client(unconfirmed->client), NfsStatus::kOk);
  EXPECT_EQ(clients.destroy_client(NfsClientId(0)), NfsStatus::kStaleClientId);
}

TEST(NfsClients, AGoneClientStaysUntilTheCourtesyEnds) {
  NfsStateWorld world;
  const auto session = world.client("a");
  world.clock.advance(2 * world.options.lease);
  world.state->sweep();
  EXPECT_EQ(world.sequence(*session, 0, 1), NfsStatus::kOk);
  world.clock.advance(world.options.lease + world.options.courtesy + std::chrono::seconds(1));
  world.state->sweep();
  EXPECT_EQ(world.sequence(*session, 0, 2), NfsStatus::kBadSession);
  EXPECT_EQ(world.state->clients().size(), 0U);
  // It lost its state by no wish of its own.
  EXPECT_EQ(world.client("a")->client().reclaim(), NfsReclaim::kAllowed);
}

TEST(NfsClients, TooManyClientsPushOutTheOneThatIsGoneLongest) {
  NfsStateOptions options;
  options.clients_max = 3;
  NfsStateWorld world(options);
  const auto a = world.client("a");
  world.clock.advance(std::chrono::seconds(1));
  const auto b = world.client("b");
  const auto c = world.client("c");
  const auto late = world.exchange("d");
  EXPECT_EQ(status_of(world.create(*late)), NfsStatus::kDelay);
  world.clock.advance(options.lease);
  EXPECT_EQ(world.sequence(*c, 0, 1), NfsStatus::kOk);
  EXPECT_NE(world.client("d"), nullptr);
  EXPECT_EQ(world.sequence(*a, 0, 1), NfsStatus::kBadSession);
  EXPECT_EQ(world.sequence(*b, 0, 1), NfsStatus::kOk);
}

TEST(NfsClients, UnconfirmedClientsAreBoundedOldestFirst) {
  NfsStateOptions options;
  options.unconfirmed_clients_max = 2;
  NfsStateWorld world(options);
  const auto a = world.exchange("a");
  const auto b = world.exchange("b");
  const auto c = world.exchange("c");
  EXPECT_EQ(status_of(world.create(*a)), NfsStatus::kStaleClientId);
  EXPECT_TRUE(world.create(*b));
  EXPECT_TRUE(world.create(*c));
}

TEST(NfsClients, SessionsOfAClientAreBounded) {
  NfsStateOptions options;
  options.sessions_per_client_max = 2;
  NfsStateWorld world(options);
  auto client = world.exchange("a");
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(world.create(*client));
    ++client->sequence;
  }
  EXPECT_EQ(status_of(world.create(*client)), NfsStatus::kNoSpc);
}

TEST(NfsClients, DropGoneForgetsThoseWhoseLeaseHasPassed) {
  NfsStateWorld world;
  const auto a = world.client("a");
  world.clock.advance(world.options.lease + std::chrono::seconds(1));
  const auto b = world.client("b");
  EXPECT_EQ(world.state->clients().drop_gone(), 1U);
  EXPECT_EQ(world.sequence(*a, 0, 1), NfsStatus::kBadSession);
  EXPECT_EQ(world.sequence(*b, 0, 1), NfsStatus::kOk);
}

TEST(NfsClients, AfterARestartOnlyThoseWhoWereKnownMayReclaim) {
  NfsStateWorld world;
  ASSERT_NE(world.client("a"), nullptr);
  auto done = world.client("b");
  const NfsClientId done_id = done->client().id();
  ASSERT_EQ(world.state->clients().destroy_session(done->id()), NfsStatus::kOk);
  ASSERT_EQ(world.state->clients().destroy_client(done_id), NfsStatus::kOk);
  done.reset();
  ASSERT_TRUE(world.exchange("never confirmed"));
  const std::string owner_before = world.state->identity().owner().major_id;

  world.disk.simulate_power_loss(1);
  world.start();
  EXPECT_EQ(world.state->identity().owner().major_id, owner_before);
  EXPECT_EQ(status_of(world.create({.client = done_id, .sequence = 1})), NfsStatus::kStaleClientId);
  const auto a = world.client("a");
  EXPECT_EQ(a->client().reclaim(), NfsReclaim::kAllowed);
  EXPECT_EQ(a->client().complete_reclaim(), NfsStatus::kOk);
  EXPECT_EQ(a->client().complete_reclaim(), NfsStatus::kCompleteAlready);
  EXPECT_EQ(world.client("never confirmed")->client().reclaim(), NfsReclaim::kNothing);
  // The client itself restarts: it has nothing to claim any more.
  EXPECT_EQ(world.client("a", 2)->client().reclaim(), NfsReclaim::kNothing);
}

TEST(NfsClients, ThoseWhoDoNotComeBackAreForgottenOnTheDisk) {
  NfsStateWorld world;
  ASSERT_NE(world.client("a"), nullptr);
  world.start();
  world.clock.advance(world.options.courtesy + std::chrono::seconds(1));
  world.state->sweep();
  world.start();
  EXPECT_EQ(world.client("a")->client().reclaim(), NfsReclaim::kNothing);
}

}  // namespace
}  // namespace millrace
