#include "service/usage.h"

#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "platform/small_file.h"
#include "tests/service/service_world.h"

namespace millrace {
namespace {

constexpr std::size_t kFileBytes = 2 * kMiB + 5;

RequestContext as(const std::string& principal, const std::string& run) {
  return {TimePoint::max(), std::make_shared<const Caller>(principal, run)};
}

UsageCounts sum_of(const std::vector<UsageRow>& rows) {
  UsageCounts sum;
  for (const UsageRow& row : rows)
    sum += row.counts;
  return sum;
}

// A usage on a disk of its own, whose time is the test's.
class UsageTest : public ::testing::Test {
 protected:
  UsageTest() { EXPECT_TRUE(disk_.make_directories("/state").ok()); }
  std::unique_ptr<Usage> open(UsageOptions options = {}) {
    return Usage::open(
               {.disk = disk_, .clock = clock_, .work = inline_executor(), .path = "/state/usage"},
               options)
        .value();
  }

  // Ends it with nothing saved that was not.
  void kill(std::unique_ptr<Usage> usage) {
    const auto text = read_small_file(disk_, "/state/usage", kMiB);
    usage.reset();
    if (text) {
      ASSERT_TRUE(replace_small_file(disk_, "/state/usage", *text).ok());
    } else {
      ASSERT_TRUE(disk_.remove("/state/usage").ok());
    }
  }

  MemoryDisk disk_;
  ManualClock clock_;
};

// How much was read of each version and bucket, as metrics show it.
std::map<std::string, std::uint64_t> read_bytes_shown(Usage& usage) {
  std::map<std::string, std::uint64_t> shown;
  std::istringstream page(usage.render_prometheus());
  for (std::string line; std::getline(page, line);) {
    const bool is_bucket = line.starts_with("millrace_bucket_read_bytes_total{");
    if (!is_bucket && !line.starts_with("millrace_version_read_bytes_total{")) continue;
    const std::size_t name = line.find('"') + 1;
    const std::size_t end = line.find('"', name);
    shown[(is_bucket ? "/buckets/" : "") + line.substr(name, end - name)] =
        std::stoull(line.substr(line.rfind(' ')));
  }
  return shown;
}

TEST_F(UsageTest, CountsByVersionPrincipalAndRun) {
  const auto usage = open();
  const auto account = usage->account("a@v1", {.principal = "uid:1", .run = "r"});
  account->add_read(100);
  account->add_read(50);
  account->add_fetched(4096);
  account->add_handed_out(1000);
  usage->account("a@v1", {.principal = "uid:2", .run = ""})->add_read(1);
  const std::vector<UsageRow> rows = usage->rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key, (UsageKey{"a@v1", "uid:1", "r"}));
  EXPECT_EQ(rows[0].counts, (UsageCounts{.read_bytes = 150,
                                         .reads = 2,
                                         .fetches = 1,
                                         .fetched_bytes = 4096,
                                         .handed_out_files = 1,
                                         .handed_out_bytes = 1000}));
  EXPECT_EQ(rows[1].counts.reads, 1u);
  account->add_read(7);
  EXPECT_EQ(usage->rows()[0].counts.read_bytes, 157u) << "an account is not emptied twice";
}

TEST_F(UsageTest, IsKeptOverRestartsAndAKillLosesOnePeriod) {
  auto usage = open();
  const auto count = [&](std::uint64_t bytes) {
    usage->account("a@v1", {.principal = "uid:1", .run = ""})->add_read(bytes);
  };
  count(1);
  clock_.advance(std::chrono::seconds(5));
  count(10);
  {
    // What a kill leaves: the file as it was last saved.
    const std::string text = read_small_file(disk_, "/state/usage", kMiB).value();
    EXPECT_EQ(sum_of(decode_usage(text, "usage").value()).read_bytes, 1u);
  }
  usage.reset();
  usage = open();
  count(100);
  EXPECT_EQ(sum_of(usage->rows()), (UsageCounts{.read_bytes = 111, .reads = 3}));
  usage.reset();
  disk_.simulate_power_loss(1);
  EXPECT_EQ(sum_of(open()->rows()).read_bytes, 111u);
}

TEST_F(UsageTest, RowsAreBoundedAndNothingIsLost) {
  const auto usage = open({.rows_max = 10, .accounts_max = 4});
  std::uint64_t total = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    clock_.advance(std::chrono::seconds(1));
    const std::string of = "d" + std::to_string(n % 3) + "@v1";
    usage->account(of, {.principal = "uid:" + std::to_string(n), .run = "r"})->add_read(n);
    total += n;
    (void)usage->rows();
  }
  const std::vector<UsageRow> rows = usage->rows();
  EXPECT_LE(rows.size(), 10u);
  EXPECT_EQ(sum_of(rows).read_bytes, total);
  EXPECT_EQ(sum_of(rows).reads, 100u);
  // The newest have their names.
  EXPECT_EQ(
      std::ranges::count(rows, "uid:99", [](const UsageRow& row) { return row.key.principal; }), 1);
  EXPECT_GE(
      std::ranges::count(rows, kOtherUsage, [](const UsageRow& row) { return row.key.principal; }),
      1);
}

TEST_F(UsageTest, ReadersAtATimeAreBoundedToo) {
  const auto usage = open({.rows_max = 100, .accounts_max = 4});
  std::vector<std::shared_ptr<ReadAccount>> accounts;
  for (int n = 0; n < 50; ++n) {
    accounts.push_back(usage->account("a@v1", {.principal = std::to_string(n), .run = ""}));
    accounts.back()->add_read(1);
  }
  const std::vector<UsageRow> rows = usage->rows();
  EXPECT_EQ(rows.size(), 5u);
  EXPECT_EQ(sum_of(rows).reads, 50u);
}

TEST_F(UsageTest, ReadersBeyondTheLimitCountForWhatIsNamed) {
  const auto usage = open({.rows_max = 100, .accounts_max = 4, .names_max = 1});
  usage->account("a@v1", {.principal = "0", .run = ""})->add_read(1);
  ASSERT_TRUE(usage->save().ok());
  std::vector<std::shared_ptr<ReadAccount>> held;
  for (const std::string version : {"b@v1", "c@v1", "d@v1", "e@v1", "a@v1", "a@v1"}) {
    const std::string reader = std::to_string(held.size());
    held.push_back(usage->account(version, {.principal = reader, .run = ""}));
    held.back()->add_read(10);
  }
  ASSERT_TRUE(usage->save().ok());
  EXPECT_THAT(usage->render_prometheus(),
              HasSubstr("millrace_version_read_bytes_total{version=\"a@v1\"} 21"));
}

TEST_F(UsageTest, ADamagedLineCostsThatLine) {
  {
    const auto usage = open();
    usage->account("a@v1", {.principal = "uid:1", .run = ""})->add_read(1);
    usage->account("b@v1", {.principal = "uid:1", .run = ""})->add_read(2);
  }
  std::string text = read_small_file(disk_, "/state/usage", kMiB).value();
  text[text.find("a@v1")] = 'x';
  ASSERT_TRUE(replace_small_file(disk_, "/state/usage", text).ok());
  EXPECT_EQ(sum_of(open()->rows()).read_bytes, 2u);
  const Usage::Parts parts{
      .disk = disk_, .clock = clock_, .work = inline_executor(), .path = "/state/usage"};
  ASSERT_TRUE(replace_small_file(disk_, "/state/usage", "something else").ok());
  EXPECT_EQ(Usage::open(parts).error().code(), StatusCode::kCorruption);
  ASSERT_TRUE(replace_small_file(disk_, "/state/usage", "millrace-usage 2\n").ok());
  EXPECT_EQ(Usage::open(parts).error().code(), StatusCode::kUnsupported);
  EXPECT_EQ(read_small_file(disk_, "/state/usage", kMiB).value(), "millrace-usage 2\n");
}

TEST_F(UsageTest, MetricsAreByVersionAndBounded) {
  const auto usage = open({.names_max = 2});
  EXPECT_EQ(usage->render_prometheus(), "");
  for (std::uint64_t n = 1; n <= 5; ++n) {
    const auto account =
        usage->account("d" + std::to_string(n) + "@v1", {.principal = "uid:1", .run = ""});
    account->add_read(n);
  }
  ASSERT_TRUE(usage->save().ok());
  const std::string page = usage->render_prometheus();
  EXPECT_NE(page.find("millrace_version_read_bytes_total{version=\"d5@v1\"} 5\n"),
            std::string::npos);
  EXPECT_NE(page.find("millrace_version_read_bytes_total{version=\"(other)\"} 6\n"),
            std::string::npos);
  EXPECT_EQ(page.find("d3@v1"), std::string::npos);
  EXPECT_EQ(page.find("uid:1"), std::string::npos);
}

// Fewer rows than versions, fewer names than rows, and an end at any time.
TEST_F(UsageTest, NoSeriesEverSinks) {
  const UsageOptions options{.rows_max = 10, .names_max = 2};
  auto usage = open(options);
  std::map<std::string, std::uint64_t> before;
  const auto seed = ::testing::UnitTest::GetInstance()->random_seed();
  std::mt19937 dice(static_cast<unsigned>(seed));
  for (int step = 0; step < 2000; ++step) {
    const std::string n = std::to_string(dice() % 5);
    const std::string of = dice() % 2 == 0 ? "d" + n + "@v1" : "/buckets/" + n;
    usage->account(of, {.principal = std::to_string(dice() % 3), .run = ""})
        ->add_read(1 + dice() % 1000);
    clock_.advance(std::chrono::milliseconds(500));
    if (dice() % 4 == 0) (void)usage->rows();
    const int fate = static_cast<int>(dice() % 20);
    if (fate == 0) kill(std::move(usage));
    if (fate == 1) usage.reset();
    if (fate < 2) usage = open(options);
    const auto shown = read_bytes_shown(*usage);
    for (const auto& [name, bytes] : before) {
      ASSERT_TRUE(shown.contains(name)) << name << " is gone; seed " << seed << ", step " << step;
      ASSERT_GE(shown.at(name), bytes) << name << " sank; seed " << seed << ", step " << step;
    }
    before = shown;
  }
  EXPECT_EQ(before.size(), 6U) << "two names and the others, of versions and of buckets";
}

TEST_F(UsageTest, MetricsShowWhatIsSaved) {
  auto usage = open({.names_max = 2});
  const auto read = [&](const std::string& version, std::uint64_t bytes) {
    usage->account(version, {.principal = "uid:1", .run = ""})->add_read(bytes);
  };
  using Shown = std::map<std::string, std::uint64_t>;
  read("a@v1", 3);
  read("b@v1", 2);
  read("c@v1", 1);
  // What rows that were folded together are called.
  read("(other)", 10);
  EXPECT_EQ(read_bytes_shown(*usage), Shown());
  ASSERT_TRUE(usage->save().ok());
  const Shown saved = {{"a@v1", 3}, {"b@v1", 2}, {"(other)", 11}};
  EXPECT_EQ(read_bytes_shown(*usage), saved);
  read("a@v1", 50);
  read("c@v1", 100);
  EXPECT_EQ(sum_of(usage->rows()).read_bytes, 166u);
  EXPECT_EQ(read_bytes_shown(*usage), saved);
  kill(std::move(usage));
  usage = open({.names_max = 2});
  EXPECT_EQ(read_bytes_shown(*usage), saved);
  // It is the one that was read most now, but too late for a name.
  read("c@v1", 100);
  usage.reset();
  usage = open({.names_max = 2});
  EXPECT_EQ(read_bytes_shown(*usage), (Shown{{"a@v1", 3}, {"b@v1", 2}, {"(other)", 111}}));
}

TEST_F(UsageTest, ReadsAFileWithoutNames) {
  {
    const auto usage = open();
    usage->account("a@v1", {.principal = "uid:1", .run = ""})->add_read(1);
    usage->account("b@v1", {.principal = "uid:1", .run = ""})->add_read(2);
  }
  std::vector<UsageRow> rows =
      decode_usage(read_small_file(disk_, "/state/usage", kMiB).value(), "usage").value();
  for (UsageRow& row : rows) {
    EXPECT_TRUE(row.is_named);
    row.is_named = false;
  }
  const std::string text = encode_usage(rows);
  EXPECT_EQ(text.find("named"), std::string::npos);
  ASSERT_TRUE(replace_small_file(disk_, "/state/usage", text).ok());
  const auto usage = open({.names_max = 1});
  EXPECT_EQ(read_bytes_shown(*usage),
            (std::map<std::string, std::uint64_t>{{"b@v1", 2}, {"(other)", 1}}));
}

TEST_F(UsageTest, MetricsOfBucketsAreApart) {
  const auto usage = open();
  const Caller caller{.principal = "uid:1", .run = ""};
  usage->account("a@v1", caller)->add_read(1);
  usage->account("/buckets/train", caller)->add_read(2);
  usage->account("/buckets/train", caller)->add_fetched(4096);
  usage->account("/buckets/say \"x\"", caller)->add_read(3);
  ASSERT_TRUE(usage->save().ok());
  const std::string page = usage->render_prometheus();
  for (const std::string_view line :
       {"millrace_version_read_bytes_total{version=\"a@v1\"} 1\n",
        "millrace_bucket_read_bytes_total{bucket=\"train\"} 2\n",
        "millrace_bucket_fetched_bytes_total{bucket=\"train\"} 4096\n",
        "millrace_bucket_read_bytes_total{bucket=\"say \\\"x\\\"\"} 3\n",
        "# HELP millrace_bucket_reads_total Reads of a bucket that were answered.\n"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  }
  EXPECT_EQ(page.find("/buckets"), std::string::npos);
}

TEST(UsageOfFilesTest, SixtyFourReadersCauseOneFetchOfEachByte) {
  ServiceWorld world;
  world.tree.write("large.bin", publish_bytes(kFileBytes, 1));
  ASSERT_TRUE(world.publish("a@v1"));
  const NodeNumber node = world.at("datasets/a/v1/large.bin").number;
  std::vector<std::thread> readers;
  for (int n = 0; n < 64; ++n) {
    readers.emplace_back([&, n] {
      const RequestContext context = as("uid:" + std::to_string(n % 4), "");
      const auto file = world.files().open(context, node).value();
      Waiter<Slice> waiter;
      file->read(context, {0, kFileBytes}, waiter.completion());
      EXPECT_TRUE(waiter.wait());
    });
  }
  for (std::thread& reader : readers)
    reader.join();
  const std::vector<UsageRow> rows = world.usage().rows();
  EXPECT_EQ(rows.size(), 4u);
  EXPECT_EQ(sum_of(rows), (UsageCounts{.read_bytes = 64 * kFileBytes,
                                       .reads = 64,
                                       .fetches = world.object_gets().requests,
                                       .fetched_bytes = kFileBytes}));
}

TEST(UsageOfFilesTest, AReadCountsForWhoReads) {
  ServiceWorld world;
  world.tree.write("f", publish_bytes(1000, 2));
  ASSERT_TRUE(world.publish("a@v1"));
  const RequestContext opener = as("uid:1", "r1");
  const auto file = world.files().open(opener, world.at("datasets/a/v1/f").number).value();
  const auto read = [&](const RequestContext& context, ByteRange range) {
    Waiter<Slice> waiter;
    file->read(context, range, waiter.completion());
    EXPECT_TRUE(waiter.wait());
  };
  read(opener, {0, 2000});
  read(as("uid:2", ""), {0, 10});
  read(opener, {5000, 10});
  const std::vector<UsageRow> rows = world.usage().rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key, (UsageKey{"a@v1", "uid:1", "r1"}));
  EXPECT_EQ(rows[0].counts.read_bytes, 1000u);
  EXPECT_GT(rows[0].counts.fetched_bytes, 0u);
  EXPECT_EQ(rows[1].counts, (UsageCounts{.read_bytes = 10, .reads = 1}));
}

TEST(UsageOfFilesTest, ReadsOfABucketCountForWhoReadsAndAreKept) {
  const auto objects = std::make_shared<MemoryObjectStore>();
  ServiceWorld world(kGiB, {},
                     {{.name = "train", .store = objects, .id = StoreId("memory://train")}});
  ASSERT_TRUE(objects->put(world.context, ObjectKey("x/f"),
                           Slice::copy_of(publish_bytes(kFileBytes, 3)), {}));
  const NodeNumber node = world.at("buckets/train/x/f").number;
  const RequestContext opener = as("uid:1", "r1");
  const auto read = [&](const RequestContext& context, ByteRange range) {
    const auto file = world.files().open(opener, node).value();
    Waiter<Slice> waiter;
    file->read(context, range, waiter.completion());
    EXPECT_TRUE(waiter.wait());
  };
  read(opener, {0, kFileBytes});
  read(opener, {kFileBytes + 5, 10});
  read(as("uid:2", ""), {0, 10});
  world.restart();
  read(as("uid:2", ""), {10, 10});
  const std::vector<UsageRow> rows = world.usage().rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key, (UsageKey{"/buckets/train", "uid:1", "r1"}));
  EXPECT_EQ(rows[0].counts,
            (UsageCounts{
                .read_bytes = kFileBytes, .reads = 1, .fetches = 1, .fetched_bytes = kFileBytes}));
  EXPECT_EQ(rows[1].key, (UsageKey{"/buckets/train", "uid:2", ""}));
  EXPECT_EQ(rows[1].counts, (UsageCounts{.read_bytes = 20, .reads = 2}));
}

}  // namespace
}  // namespace millrace
