#include "frontends/nfs4/nfs_clients40.h"

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_state_world.h"

namespace millrace {
namespace {

constexpr NfsShare kReads40{.access = kShareAccessRead, .deny = kShareDenyNone};
const NodeNumber kNode40(7);

NfsStatus status_of40(const auto& result) { return result ? NfsStatus::kOk : result.error(); }

struct World40 : NfsStateWorld {
  using NfsStateWorld::NfsStateWorld;

  NfsResult<NfsSetClientIdAnswer> set(const std::string& owner, std::uint64_t instance = 1,
                                      const std::string& principal = "sys:0") const {
    return state->clients40().set_client_id({.verifier = verifier(instance), .id = owner},
                                            principal);
  }
  NfsStatus confirm(const NfsSetClientIdAnswer& answer,
                    const std::string& principal = "sys:0") const {
    return state->clients40().confirm(answer.client, answer.confirm, principal);
  }
  std::shared_ptr<NfsClient> client40(const std::string& owner, std::uint64_t instance = 1) const {
    const auto answer = set(owner, instance);
    EXPECT_EQ(confirm(*answer), NfsStatus::kOk);
    return *state->clients40().find(answer->client);
  }
  NfsStateid open(NfsClient& client, const std::string& owner = "o") const {
    return *state->open_file(client, {.owner = owner, .node = kNode40, .share = kReads40});
  }
};

TEST(NfsClients40, AClientIsThereOnceItIsConfirmed) {
  World40 world;
  const auto answer = world.set("a");
  ASSERT_TRUE(answer);
  EXPECT_EQ(status_of40(world.state->clients40().find(answer->client)), NfsStatus::kExpired);
  EXPECT_EQ(world.confirm({answer->client, world.verifier(99)}), NfsStatus::kStaleClientId);
  EXPECT_EQ(world.confirm(*answer, "sys:7"), NfsStatus::kClidInUse);
  EXPECT_EQ(world.confirm(*answer), NfsStatus::kOk);
  EXPECT_EQ(world.confirm(*answer), NfsStatus::kOk);
  EXPECT_EQ(world.confirm(*answer, "sys:7"), NfsStatus::kClidInUse);
  EXPECT_TRUE(world.state->clients40().find(answer->client));
  EXPECT_EQ(world.state->list_clients().size(), 1U);
}

TEST(NfsClients40, SettingAgainKeepsTheClientAndItsState) {
  World40 world;
  const auto client = world.client40("a");
  const NfsStateid stateid = world.open(*client);
  const auto again = world.set("a");
  EXPECT_EQ(again->client, client->id());
  EXPECT_EQ(world.confirm(*again), NfsStatus::kOk);
  EXPECT_EQ(world.state->clients40().check(stateid, kNode40, kShareAccessRead), NfsStatus::kOk);
}

TEST(NfsClients40, ANewInstanceTakesThePlaceWhenItIsConfirmed) {
  World40 world;
  const auto client = world.client40("a");
  const NfsStateid stateid = world.open(*client);
  const auto unused = world.set("a", 2);
  const auto restarted = world.set("a", 2);
  EXPECT_NE(restarted->client, client->id());
  EXPECT_NE(restarted->client, unused->client);
  EXPECT_EQ(world.confirm(*unused), NfsStatus::kStaleClientId);
  EXPECT_EQ(world.state->clients40().check(stateid, kNode40, kShareAccessRead), NfsStatus::kOk);
  EXPECT_EQ(world.confirm(*restarted), NfsStatus::kOk);
  EXPECT_EQ(world.state->clients40().check(stateid, kNode40, kShareAccessRead),
            NfsStatus::kExpired);
  EXPECT_EQ(status_of40(world.state->clients40().find(client->id())), NfsStatus::kExpired);
}

TEST(NfsClients40, AnotherPrincipalGetsTheNameOfAClientWithoutOpens) {
  World40 world;
  const auto client = world.client40("a");
  EXPECT_TRUE(world.set("a", 1, "sys:7"));
  world.open(*client);
  EXPECT_EQ(status_of40(world.set("a", 1, "sys:7")), NfsStatus::kClidInUse);
  world.clock.advance(world.options.lease + std::chrono::seconds(1));
  EXPECT_TRUE(world.set("a", 1, "sys:7"));
}

TEST(NfsClients40, ForeignStateidsAreToldApart) {
  World40 world;
  auto client = world.client40("a");
  NfsStateid stateid = world.open(*client);
  NfsClients40& clients = world.state->clients40();
  const auto check = [&](const NfsStateid& id) {
    return clients.check(id, kNode40, kShareAccessRead);
  };
  EXPECT_EQ(check(kAnonymousStateid), NfsStatus::kOk);
  EXPECT_EQ(check(bypass_stateid()), NfsStatus::kOk);
  EXPECT_EQ(check(kInvalidStateid), NfsStatus::kBadStateid);
  EXPECT_EQ(check(client->files().delegation(kNode40)), NfsStatus::kBadStateid);
  NfsStateid foreign = stateid;
  foreign.other[7] = std::byte{200};  // A client that never was.
  EXPECT_EQ(check(foreign), NfsStatus::kBadStateid);
  foreign = {.seqid = 1, .other = {}};
  foreign.other[3] = std::byte{1};
  EXPECT_EQ(check(foreign), NfsStatus::kStaleStateid);
  client.reset();  // It ends before the state that it is part of.
  world.start();
  EXPECT_EQ(world.state->clients40().check(stateid, kNode40, kShareAccessRead),
            NfsStatus::kStaleStateid);
}

TEST(NfsClients40, AfterARestartAKnownClientReclaims) {
  World40 world;
  NfsClientId before = world.client40("a")->id();
  world.disk.simulate_power_loss(5);
  world.start();
  EXPECT_EQ(status_of40(world.state->clients40().find(before)), NfsStatus::kStaleClientId);
  const auto known = world.client40("a");
  const auto unknown = world.client40("b");
  const NfsOpenRequest claim{.owner = "o", .node = kNode40, .share = kReads40, .reclaim = true};
  EXPECT_TRUE(world.state->open_file(*known, claim));
  EXPECT_EQ(status_of40(world.state->open_file(*unknown, claim)), NfsStatus::kNoGrace);
  EXPECT_TRUE(world.state->open_file(
      *unknown, {.owner = "o", .node = kNode40, .share = kReads40, .reclaim = false}));
}

TEST(NfsClients40, AGoneClientLosesItsStateToAConflict) {
  World40 world;
  const auto gone = world.client40("gone");
  const NfsOpenRequest denying{
      .owner = "o", .node = kNode40, .share = {.access = kShareAccessRead, .deny = kShareDenyRead}};
  const NfsStateid stateid = *world.state->open_file(*gone, denying);
  const auto other = world.client("other");
  ASSERT_EQ(other->client().complete_reclaim(), NfsStatus::kOk);
  const NfsOpenRequest reading{.owner = "o", .node = kNode40, .share = kReads40};
  EXPECT_EQ(status_of40(world.state->open_file(other->client(), reading)), NfsStatus::kShareDenied);
  world.clock.advance(world.options.lease + std::chrono::seconds(1));
  EXPECT_EQ(world.sequence(*other, 0, 1), NfsStatus::kOk);
  EXPECT_TRUE(world.state->open_file(other->client(), reading));
  EXPECT_EQ(world.state->clients40().check(stateid, kNode40, kShareAccessRead),
            NfsStatus::kExpired);
}

TEST(NfsClients40, ClientsAndPendingOnesAreBounded) {
  NfsStateOptions options;
  options.clients_max = 2;
  options.unconfirmed_clients_max = 2;
  World40 world(options);
  const auto pushed_out = world.set("p");
  world.clock.advance(std::chrono::seconds(1));
  world.client40("a");
  world.client40("b");
  const auto late = world.set("c");
  world.clock.advance(std::chrono::seconds(1));
  ASSERT_TRUE(world.set("d"));
  EXPECT_EQ(world.confirm(*pushed_out), NfsStatus::kStaleClientId);
  EXPECT_EQ(world.confirm(*late), NfsStatus::kResource);
  world.clock.advance(options.lease);
  EXPECT_EQ(world.confirm(*world.set("e")), NfsStatus::kOk);
}

TEST(NfsState, ClientsWithSessionsReclaimFirstAndThenOpen) {
  NfsStateWorld world;
  ASSERT_NE(world.client("a"), nullptr);
  world.start();
  const auto session = world.client("a");
  NfsOpenRequest request{.owner = "o", .node = kNode40, .share = kReads40};
  EXPECT_EQ(status_of40(world.state->open_file(session->client(), request)), NfsStatus::kGrace);
  request.reclaim = true;
  EXPECT_TRUE(world.state->open_file(session->client(), request));
  EXPECT_EQ(session->client().complete_reclaim(), NfsStatus::kOk);
  EXPECT_EQ(status_of40(world.state->open_file(session->client(), request)), NfsStatus::kNoGrace);
  request.reclaim = false;
  EXPECT_TRUE(world.state->open_file(session->client(), request));
  const std::vector<NfsClientInfo> infos = world.state->list_clients();
  ASSERT_EQ(infos.size(), 1U);
  EXPECT_EQ(infos[0].owner, "a");
  EXPECT_EQ(infos[0].opens, 1U);
  EXPECT_EQ(infos[0].sessions, 1U);
}

}  // namespace
}  // namespace millrace
