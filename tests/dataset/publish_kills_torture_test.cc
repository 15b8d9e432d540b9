// kill -9 at every point of a publish, then the same publish again: it goes on, and what the store
// has and the journal knows is not sent again.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dataset/publisher.h"
#include "objectstore/prefixed_object_store.h"
#include "tests/dataset/publish_world.h"
#include "tests/dataset/version_contents.h"
#include "tests/servers/child_process.h"
#include "tests/servers/s3_test_store.h"
#include "tests/servers/strict_s3_server.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

using testing::ChildProcess;
using testing::StrictS3Server;

constexpr int kKilled = 128 + SIGKILL;
// What the child says when the name is taken, as by a publish that had nothing left to do.
constexpr int kNameTaken = 6;

// A store below a prefix of the server's bucket, as both sides open it.
class KilledStore {
 public:
  KilledStore(const std::string& endpoint, const std::string& prefix)
      : s3_({endpoint, "test-bucket", testing::S3Credentials{}.access_key,
             testing::S3Credentials{}.secret_key, ""},
            five_mib_parts()),
        store_(std::shared_ptr<ObjectStore>(&s3_.retrying(), [](ObjectStore*) {}), prefix) {}

  ObjectStore& store() { return store_; }
  const Registry& registry() const { return registry_; }

  Result<PublishReport> publish(const std::string& tree, const std::string& state,
                                std::string_view ref, std::function<void(PublishPoint)> reached) {
    PublishOptions options;
    options.packs = {.file_bytes_max = 64 * kKiB, .target_bytes = 256 * kKiB};
    options.parallel = 1;  // So that at most one object is under way when it is killed.
    options.reached = std::move(reached);
    MR_ASSIGN_OR_RETURN(const auto source, DirectorySource::open_root(tree));
    return millrace::publish(RequestContext::background(),
                             {.store = store_,
                              .registry = registry_,
                              .buffers = buffers_,
                              .clock = system_clock(),
                              .random = system_random(),
                              .state_directory = state},
                             *source, ref_of(ref), options);
  }

 private:
  static s3::S3Options five_mib_parts() {
    s3::S3Options options;
    options.part_bytes = 5 * kMiB;
    return options;
  }

  s3::S3TestStore s3_;
  PrefixedObjectStore store_;
  BufferPool buffers_{{.bytes_max = 256 * kMiB, .idle_bytes_max = 0}};
  const Registry registry_{{.store = store_,
                            .clock = system_clock(),
                            .random = system_random(),
                            .writer = this_process_writer()}};
};

std::string from_environment(const char* name) {
  const char* text = std::getenv(name);
  EXPECT_NE(text, nullptr) << name;
  return text == nullptr ? "" : text;
}

// Not a test: what EveryPointOfAPublish starts. Ends with SIGKILL at the n-th time that it reaches
// a point, else with 0, or with kNameTaken.
TEST(PublishKills, DISABLED_Child) {
  const std::string point = from_environment("MILLRACE_KILL_POINT");
  const std::string times = from_environment("MILLRACE_KILL_TIME");
  std::atomic<std::uint64_t> left = std::strtoull(times.c_str(), nullptr, 10);
  KilledStore killed(from_environment("MILLRACE_KILL_ENDPOINT"),
                     from_environment("MILLRACE_KILL_PREFIX"));
  const auto report = killed.publish(
      from_environment("MILLRACE_KILL_TREE"), from_environment("MILLRACE_KILL_STATE"), "d@v2",
      [&](PublishPoint reached) {
        if (kPublishPoints[static_cast<std::size_t>(reached)].name != point || --left > 0) return;
        (void)::kill(::getpid(), SIGKILL);
        ::pause();
      });
  if (!report) fmt::print(stderr, "{}\n", report.error().to_string());
  std::fflush(nullptr);
  std::_Exit(report ? 0 : report.error() == StatusCode::kConflict ? kNameTaken : 1);
}

class PublishKillLoop {
 public:
  PublishKillLoop() {
    tree_.write("shared.bin", publish_bytes(200'000, 1));
    state_.write("base/shared.bin", publish_bytes(200'000, 1));
    for (int i = 0; i < 12; ++i)
      tree_.write(fmt::format("{}.jpg", i), publish_bytes(60'000, 10 + i));
    tree_.write("large/a.bin", publish_bytes(700'000, 50));
    tree_.write("large/b.bin", publish_bytes(40'000'000, 51));
    tree_.write("large/c.bin", publish_bytes(300'000, 52));
    for (const auto& item : std::filesystem::recursive_directory_iterator(tree_.root())) {
      if (!item.is_regular_file()) continue;
      wanted_[item.path().string().substr(tree_.root().size() + 1)] =
          read_file(item.path().string(), 64 * kMiB).value();
    }
  }

  // Kills a publish when it reaches a point for the n-th time, and does it again. False when it
  // ended before that.
  bool kill_at(const NamedPublishPoint& point, std::uint64_t time) {
    prefix_ = fmt::format("{}-{}", point.name, time);
    KilledStore killed(server_.url(), prefix_);
    const auto base = killed.publish(state_.path("base"), state_.path(prefix_ + "/base"), "d@v1",
                                     [](PublishPoint) {});
    EXPECT_TRUE(base) << base.error().to_string();
    server_.clear_requests();
    const int ours = server_.connections_open();
    const int first = run_child(std::string(point.name), time);
    if (first == 0) return false;
    EXPECT_EQ(first, kKilled);
    // What it had sent when it was killed may still be on its way through the server.
    while (server_.connections_open() > ours)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto before = sent_bytes();
    const bool visible = killed.registry().resolve(context_, ref_of("d@v2")).has_value();
    EXPECT_EQ(visible, point.point >= PublishPoint::kCommitted);
    // Only when the journal is gone, too, is its own commit like that of anybody else.
    EXPECT_EQ(run_child("none", 1), point.point == PublishPoint::kJournalRemoved ? kNameTaken : 0);
    check_version(killed);
    check_repeated(point.point, before);
    return true;
  }

  std::uint64_t repeated() const { return repeated_; }

 private:
  int run_child(const std::string& point, std::uint64_t time) {
    ChildProcess child(
        {std::filesystem::read_symlink("/proc/self/exe").string(),
         "--gtest_filter=PublishKills.DISABLED_Child", "--gtest_also_run_disabled_tests"},
        {.output_file = state_.path("output"),
         .environment = {{"MILLRACE_KILL_POINT", point},
                         {"MILLRACE_KILL_TIME", std::to_string(time)},
                         {"MILLRACE_KILL_ENDPOINT", server_.url()},
                         {"MILLRACE_KILL_PREFIX", prefix_},
                         {"MILLRACE_KILL_TREE", tree_.root()},
                         {"MILLRACE_KILL_STATE", state_.path(prefix_ + "/own")}}});
    const std::optional<int> status = child.wait(std::chrono::seconds(120));
    EXPECT_TRUE(status) << "it does not end: " << read_file(state_.path("output")).value();
    return status.value_or(-1);
  }

  // Bytes that the server was sent since the base was made, by key; those of the logs left out.
  std::map<std::string, std::uint64_t> sent_bytes() const {
    std::map<std::string, std::uint64_t> sent;
    for (const testing::S3RequestRecord& request : server_.requests()) {
      if (request.method != "PUT" || request.key.contains("/.millrace/datasets/")) continue;
      sent[name_below_life(request.key.substr(prefix_.size() + 1))] += request.body_bytes;
    }
    return sent;
  }

  void check_version(KilledStore& killed) {
    const auto entry = killed.registry().resolve(context_, ref_of("d@v2"));
    ASSERT_TRUE(entry) << entry.error().to_string();
    const auto contents =
        read_version_contents(context_, killed.store(), *entry, state_.path("check"));
    ASSERT_TRUE(contents) << contents.error().to_string();
    EXPECT_TRUE(contents->files == wanted_);
  }

  // Only what was stored, or half stored, and not noted is sent again.
  void check_repeated(PublishPoint point, const std::map<std::string, std::uint64_t>& before) {
    static const std::set<PublishPoint> kUnnoted = {
        PublishPoint::kPackStored, PublishPoint::kPartWritten, PublishPoint::kObjectStored};
    std::vector<std::string> twice;
    for (const auto& [key, bytes] : sent_bytes()) {
      const auto earlier = before.find(key);
      if (earlier != before.end() && earlier->second < bytes) twice.push_back(key);
    }
    // Of a part nothing may have reached the store yet.
    if (point == PublishPoint::kPartWritten) {
      EXPECT_LE(twice.size(), 1U);
    } else {
      EXPECT_EQ(twice.size(), kUnnoted.contains(point) ? 1U : 0U);
    }
    for (const std::string& key : twice) {
      SCOPED_TRACE(key);
      EXPECT_FALSE(key.starts_with(kManifestsPrefix));
      EXPECT_LE(sent_bytes().at(key) - before.at(key), 40'100'000U);
    }
    repeated_ += twice.size();
  }

  const RequestContext context_ = RequestContext::background();
  StrictS3Server server_;
  ScratchTree tree_;
  ScratchTree state_;
  std::map<std::string, std::string> wanted_;
  std::string prefix_;
  std::uint64_t repeated_ = 0;
};

TEST(PublishKills, EveryPointOfAPublish) {
  PublishKillLoop loop;
  std::uint64_t kills = 0;
  for (const NamedPublishPoint& point : kPublishPoints) {
    SCOPED_TRACE(point.name);
    std::uint64_t time = 1;
    while (loop.kill_at(point, time) && !HasFailure()) {
      ++kills;
      if (++time > 1 && !full_torture()) break;
    }
    EXPECT_GT(time, 1U) << "no publish reaches it";
  }
  EXPECT_GE(kills, kPublishPoints.size());
  report_torture("publish_kills", 0,
                 fmt::format(R"("points":{},"kills":{},"objects_sent_again":{})",
                             kPublishPoints.size(), kills, loop.repeated()));
}

}  // namespace
}  // namespace millrace
