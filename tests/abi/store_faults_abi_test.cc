// Loaders whose store fails, goes away, comes back, or delivers wrong bytes.

#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "tests/abi/daemon_abi_world.h"
#include "tests/servers/fault_proxy.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::Fault;
using testing::FaultProxy;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProxiedRequest;
using ::testing::SizeIs;

// A version in a store behind a proxy, read by the engine that is the test's parameter.
class StoreFaultsAbiTest : public DaemonAbiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  StoreFaultsAbiTest() {
    ::setenv("AWS_ACCESS_KEY_ID", "test-access-key", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "test-secret-key", 1);
    engine = GetParam();
  }

  AbiJson faulty(const std::string& cache = "cache") const {
    AbiJson with = options("faulty@v1");
    with["settings"]["store"] = store_url;
    with["settings"]["cache"] = home.path(cache);
    return with;
  }
  static std::string content(int number, std::size_t bytes) {
    std::string text(bytes, static_cast<char>('a' + number % 23));
    return text.replace(0, 3, fmt::format("{:03}", number));
  }
  // Samples "000", "001", ..., all of one length.
  void publish(int samples, std::size_t bytes) {
    const AbiJson with = {{"name", "faulty@v1"},
                          {"settings", faulty()["settings"]},
                          {"staging", home.path("staging")}};
    mr_writer* writer = nullptr;
    expect_ok(mr_writer_open(with.dump().c_str(), &writer, &error));
    for (int n = 0; n < samples; ++n) {
      const std::string body = content(n, bytes);
      const mr_field field = {"bin", body.data(), body.size()};
      expect_ok(mr_writer_write(writer, fmt::format("{:03}", n).c_str(), &field, 1, &error));
    }
    char* json = nullptr;
    expect_ok(mr_writer_commit(writer, &json, &error));
    take_text(json);
    mr_writer_close(writer);
  }
  // Of an epoch that nothing disturbs, with a cache of its own.
  std::string undisturbed_digest() {
    engine = "process";
    const AbiDataset dataset = open(faulty("undisturbed"));
    engine = GetParam();
    const AbiLoader loader = load(dataset, {{"batch", 10}});
    keys_of_epoch(loader);
    return digest(loader);
  }
  void bring_back() {
    proxy =
        std::make_unique<FaultProxy>("127.0.0.1", server.port(), testing::ProxySettings{}, port);
  }
  static void expect_right(const AbiBatch& batch) {
    for (const std::string& body : texts(batch, "data"))
      EXPECT_EQ(body, content(std::stoi(body.substr(0, 3)), body.size()));
  }

  testing::StrictS3Server server;
  std::unique_ptr<FaultProxy> proxy = std::make_unique<FaultProxy>(server.url());
  const std::uint16_t port = proxy->port();
  const std::string store_url = "s3://test-bucket/pre?endpoint=" + proxy->endpoint();
};

INSTANTIATE_TEST_SUITE_P(Engines, StoreFaultsAbiTest, ::testing::Values("process", "daemon"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(StoreFaultsAbiTest, AStoreThatGoesAndComesBackChangesNothing) {
  publish(120, 200'000);
  const std::string expected = undisturbed_digest();
  const AbiDataset dataset = open(faulty());
  ASSERT_NE(dataset, nullptr);
  const AbiLoader loader = load(dataset, {{"batch", 10}});
  proxy->set_policy([passed = 0](const ProxiedRequest&) mutable {
    return ++passed > 14 ? Fault::kResetBeforeForward : Fault::kNone;
  });
  std::size_t delivered = 0;
  const auto next_within = [&](double seconds) {
    mr_batch* taken = nullptr;
    const int code = mr_loader_next(loader.get(), seconds, &taken, &error);
    const AbiBatch batch(taken);
    if (code == MR_OK) {
      expect_right(batch);
      delivered += mr_batch_samples(batch.get());
    }
    return code;
  };
  int code = MR_OK;
  while (code == MR_OK ||
         (code == MR_AGAIN && proxy->stats().count(Fault::kResetBeforeForward) == 0))
    code = next_within(0.5);
  EXPECT_EQ(code, MR_AGAIN) << take_error();
  EXPECT_LT(delivered, 120u);
  proxy.reset();
  while ((code = next_within(0.5)) == MR_OK)
    EXPECT_LT(delivered, 120u);
  EXPECT_EQ(code, MR_AGAIN) << take_error();
  bring_back();
  while ((code = next_within(120)) == MR_OK) {
  }
  EXPECT_EQ(code, MR_END) << take_error();
  EXPECT_EQ(delivered, 120u);
  EXPECT_EQ(digest(loader), expected);
}

TEST_P(StoreFaultsAbiTest, ABatchHasItsOwnTimeAndTheNextCallGoesOn) {
  publish(120, 200'000);
  const std::string expected = undisturbed_digest();
  const AbiDataset dataset = open(faulty());
  ASSERT_NE(dataset, nullptr);
  const AbiLoader loader = load(dataset, {{"batch", 10}, {"sample_timeout", 1}});
  proxy->set_policy([](const ProxiedRequest&) { return Fault::kStall; });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(next(loader), nullptr);  // It would wait for 120 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_THAT(failure_text, HasSubstr("deadline_exceeded"));
  failure_text.clear();
  proxy->set_policy({});
  proxy->reset_connections();
  // What was read ahead may have run out of its time as well.
  std::size_t delivered = 0;
  for (int failures = 0; delivered < 120 && failures < 20;) {
    if (const AbiBatch batch = next(loader)) {
      expect_right(batch);
      delivered += mr_batch_samples(batch.get());
      continue;
    }
    EXPECT_THAT(failure_text, HasSubstr("deadline_exceeded")) << delivered;
    failure_text.clear();
    ++failures;
  }
  EXPECT_EQ(delivered, 120u);
  EXPECT_EQ(digest(loader), expected);
}

TEST_P(StoreFaultsAbiTest, BytesThatFailACheckOnceAreFetchedAgain) {
  publish(60, 200'000);
  const AbiDataset dataset = open(faulty());
  ASSERT_NE(dataset, nullptr);
  const AbiLoader loader = load(dataset, {{"batch", 10}});
  proxy->set_policy(testing::fail_next(1, Fault::kFlipResponseBit));
  std::size_t delivered = 0;
  while (const AbiBatch batch = next(loader)) {
    expect_right(batch);
    delivered += mr_batch_samples(batch.get());
  }
  EXPECT_EQ(failure_text, "");
  EXPECT_EQ(delivered, 60u);
  EXPECT_EQ(proxy->stats().count(Fault::kFlipResponseBit), 1u);
  EXPECT_EQ(stats(loader)["failed"], 0);
}

TEST_P(StoreFaultsAbiTest, BytesThatFailACheckTwiceAreAFailureOfTheSample) {
  publish(12, 3'000'000);  // Each is an object of its own.
  const AbiDataset dataset = open(faulty());
  ASSERT_NE(dataset, nullptr);
  // Whole names: the version's nonce, in all of its keys, may well hold the digits of one.
  const auto flip = [](const ProxiedRequest& request) {
    const bool wanted = request.method == "GET" && request.target.ends_with("/005.bin");
    return wanted ? Fault::kFlipResponseBit : Fault::kNone;
  };
  proxy->set_policy(flip);
  for (const char* const action : {"skip", "substitute"}) {
    const AbiLoader loader = load(dataset, {{"batch", 4}, {"on_error", action}});
    const std::vector<std::string> keys = keys_of_epoch(loader);
    EXPECT_EQ(failure_text, "") << action;
    EXPECT_THAT(keys, AllOf(SizeIs(std::string_view(action) == "skip" ? 11 : 12),
                            Each(Not(HasSubstr("005")))));
    const AbiJson failure = stats(loader)["failures"][0];
    EXPECT_THAT(failure["key"].get<std::string>(), HasSubstr("005"));
    EXPECT_EQ(failure["action"], action);
  }
  EXPECT_GE(proxy->stats().count(Fault::kFlipResponseBit), 2u);

  const AbiLoader raising = load(dataset, {{"batch", 4}});
  std::vector<std::string> keys = keys_of_epoch(raising);
  EXPECT_THAT(failure_text, AllOf(HasSubstr("corruption"), HasSubstr("005")));
  failure_text.clear();
  proxy->set_policy({});
  for (const std::string& key : keys_of_epoch(raising))
    keys.push_back(key);
  EXPECT_EQ(failure_text, "");
  EXPECT_THAT(keys, SizeIs(12)) << "the batch that failed was read again, and nothing twice";
}

TEST_P(StoreFaultsAbiTest, TheNextEpochIsFetchedBeforeThisOneEnds) {
  publish(24, 2 << 20);  // Each is an object of its own.
  // An epoch has half of them, and the next one others.
  const auto with = [this](const std::string& cache) {
    AbiJson each = faulty(cache);
    each["datasets"][0]["choose"] = 12;
    return each;
  };
  std::set<std::string> awaited;
  {
    engine = "process";
    const AbiDataset dataset = open(with("undisturbed"));
    engine = GetParam();
    const AbiLoader loader = load(dataset, {{"batch", 4}});
    const std::vector<std::string> first = keys_of_epoch(loader);
    for (const std::string& key : texts(next(loader), "__key__")) {
      if (!std::ranges::count(first, key)) awaited.insert(key);
    }
    ASSERT_FALSE(awaited.empty());
  }
  const AbiDataset dataset = open(with("cache"));
  ASSERT_NE(dataset, nullptr);
  const AbiLoader loader = load(dataset, {{"batch", 4}});
  server.clear_requests();
  for (int step = 0; step < 2; ++step)
    ASSERT_NE(next(loader), nullptr) << failure_text;
  // The last batch of this epoch is not even taken.
  const auto asked_for = [this](const std::string& key) {
    return server.count([&](const testing::S3RequestRecord& request) {
      return request.method == "GET" && request.key.ends_with(key);
    });
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (const std::string& key : awaited) {
    while (asked_for(key) == 0 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_GT(asked_for(key), 0u) << key;
  }
}

}  // namespace
}  // namespace millrace
