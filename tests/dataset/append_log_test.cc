#include "dataset/append_log.h"

#include <array>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "dataset/append_log_listing.h"
#include "objectstore/faulty_object_store.h"
#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

constexpr const char* kTestLog = "logs/one/";

LogRecord sample_record() {
  return {.key = "logs/one/00000007.json",
          .kind = "reserved",
          .number = 7,
          .nonce = "00112233445566778899aabbccddeeff",
          .time = WallTime(std::chrono::milliseconds(1'767'323'045'678)),
          .who = writer_of("alice"),
          .payload = {{"reason", "why \"not\" \xC3\xA4"}, {"big", UINT64_MAX}}};
}

StatusCode decoded_code(std::string_view text, const std::string& key) {
  const auto record = decode_log_record(text, key);
  if (record) return StatusCode::kOk;
  EXPECT_NE(record.error().message().find(key), std::string::npos) << record.error().to_string();
  return record.error().code();
}

TEST(LogRecord, RoundTrips) {
  const LogRecord record = sample_record();
  const auto read = decode_log_record(encode_log_record(record).value(), record.key);
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_EQ(read->kind, record.kind);
  EXPECT_EQ(read->number, record.number);
  EXPECT_EQ(read->nonce, record.nonce);
  EXPECT_EQ(read->time, record.time);
  EXPECT_EQ(read->who, record.who);
  EXPECT_EQ(read->payload, record.payload);
}

TEST(LogRecord, IsReadableForPeople) {
  const std::string text = encode_log_record(sample_record()).value();
  EXPECT_NE(text.find(R"("time":"2026-01-02T03:04:05.678Z")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("who":{"host":"node7","pid":4711,"user":"alice"})"), std::string::npos);
}

TEST(LogRecord, NoticesEveryFlippedBit) {
  const LogRecord record = sample_record();
  const std::string text = encode_log_record(record).value();
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(decoded_code(flipped, record.key), StatusCode::kCorruption) << "bit " << bit;
  }
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(decoded_code(text.substr(0, size), record.key), StatusCode::kCorruption);
}

TEST(LogRecord, RefusesWhatIsNoRecord) {
  const LogRecord record = sample_record();
  const std::string text = encode_log_record(record).value();
  EXPECT_EQ(decoded_code(text, "logs/two/00000007.json"), StatusCode::kCorruption);
  EXPECT_EQ(decoded_code(std::string(100'000, '['), record.key), StatusCode::kCorruption);
  EXPECT_EQ(decoded_code(std::string(100'000, '[') + std::string(100'000, ']'), record.key),
            StatusCode::kCorruption);
  EXPECT_EQ(decoded_code("[]", record.key), StatusCode::kCorruption);
  EXPECT_EQ(decoded_code("{\"format\":1}", record.key), StatusCode::kCorruption);
  EXPECT_EQ(decoded_code(std::string(kLogRecordBytesMax + 1, ' '), record.key),
            StatusCode::kCorruption);
}

TEST(LogRecord, ALaterFormatIsNotDamage) {
  nlohmann::json later = {{"format", 2}, {"what", "ever"}};
  const std::string text = later.dump();
  later["crc32c"] = fmt::format("{:08x}", crc32c(as_bytes(text)));
  EXPECT_EQ(decoded_code(later.dump(), "k"), StatusCode::kUnsupported);
}

TEST(LogRecord, HasALimit) {
  LogRecord record = sample_record();
  record.payload["reason"] = std::string(kLogRecordBytesMax, 'x');
  const auto text = encode_log_record(record);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code(), StatusCode::kInvalidArgument);
}

class AppendLogTest : public ::testing::Test {
 protected:
  Result<Appended> append(const AppendLog& log, std::uint64_t number) {
    return log.append(world_.context, number, "test", {{"n", number}}, world_.random.token());
  }
  void fill(const AppendLog& log, std::uint64_t count) {
    for (std::uint64_t number = 1; number <= count; ++number)
      ASSERT_TRUE(append(log, number).value().ours);
  }

  RegistryWorld world_;
  RegistryAccess access_ = world_.access();
  AppendLog log_{access_, kTestLog};
};

TEST_F(AppendLogTest, StartsEmptyAndGrows) {
  EXPECT_EQ(log_.last_number(world_.context).value(), 0U);
  EXPECT_FALSE(log_.last(world_.context).value().has_value());
  fill(log_, 3);
  EXPECT_EQ(log_.key_of(3), "logs/one/00000003.json");
  EXPECT_EQ(log_.last(world_.context).value()->payload["n"], 3);
  EXPECT_EQ(log_.records(world_.context).value().size(), 3U);
}

TEST_F(AppendLogTest, TheLastRecordTakesOneListAndOneGet) {
  fill(log_, 900);
  world_.recording->clear();
  ASSERT_TRUE(log_.last(world_.context).value().has_value());
  EXPECT_EQ(world_.recording->count(StoreOperation::kList), 1U);
  EXPECT_EQ(world_.recording->count(StoreOperation::kGetRange), 1U);
  EXPECT_EQ(world_.recording->count(), 2U);
}

TEST_F(AppendLogTest, AGuessAtTheLastRecordMayBeWrong) {
  constexpr std::uint64_t kGuess = 2;
  EXPECT_FALSE(log_.last(world_.context, kGuess).value().has_value());
  for (std::uint64_t number = 1; number <= 3; ++number) {
    ASSERT_TRUE(append(log_, number).value().ours);
    world_.recording->clear();
    EXPECT_EQ(log_.last(world_.context, kGuess).value()->payload["n"], number);
    EXPECT_EQ(world_.recording->count(StoreOperation::kList), 1U);
    EXPECT_EQ(world_.recording->count(StoreOperation::kGetRange), number == kGuess ? 1U : 2U);
  }
}

TEST_F(AppendLogTest, AnAppendIsOnePut) {
  world_.recording->clear();
  ASSERT_TRUE(append(log_, 1).value().ours);
  EXPECT_EQ(world_.recording->count(), 1U);
}

TEST_F(AppendLogTest, TheSecondWriterLearnsWhoWasFirst) {
  const RegistryAccess bob = world_.access("bob");
  ASSERT_TRUE(append(AppendLog(bob, kTestLog), 1).value().ours);
  const Appended lost = append(log_, 1).value();
  EXPECT_FALSE(lost.ours);
  EXPECT_EQ(lost.record.who.user, "bob");
}

TEST_F(AppendLogTest, TheSameNonceIsTheSameRecord) {
  const nlohmann::json payload = nlohmann::json::object();
  ASSERT_TRUE(log_.append(world_.context, 1, "test", payload, std::string(32, 'a')).value().ours);
  EXPECT_TRUE(log_.append(world_.context, 1, "test", payload, std::string(32, 'a')).value().ours);
  EXPECT_FALSE(log_.append(world_.context, 1, "test", payload, std::string(32, 'b')).value().ours);
}

TEST_F(AppendLogTest, FindsOutWhatALostAnswerSaid) {
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kConflict}) {
    SCOPED_TRACE(status_code_name(code));
    RegistryWorld world;
    FaultyObjectStore faulty(world.memory,
                             fault_nth_call(1, {.kind = Fault::Kind::kFailAfter, .code = code}),
                             world.clock, inline_executor());
    RegistryAccess access{faulty, world.clock, world.random, writer_of("alice")};
    EXPECT_TRUE(append(AppendLog(access, kTestLog), 1).value().ours);
    EXPECT_EQ(faulty.calls(), 2U);
    EXPECT_EQ(world.memory->object_count(), 1U);
  }
}

// Fails the first, the second ... call: success or a failure that says what is known.
TEST_F(AppendLogTest, EveryFailureOfACallIsToldTruly) {
  for (const Fault::Kind kind : {Fault::Kind::kFailBefore, Fault::Kind::kFailAfter}) {
    for (std::uint64_t first = 1; first <= 8; ++first) {
      RegistryWorld world;
      // From this call on all fail, as when the network goes.
      FaultyObjectStore faulty(
          world.memory,
          [&](const FaultableCall& call) {
            return call.number >= first ? std::optional<Fault>({.kind = kind}) : std::nullopt;
          },
          world.clock, inline_executor());
      RegistryAccess access{faulty, world.clock, world.random, writer_of("alice")};
      const auto appended = append(AppendLog(access, kTestLog), 1);
      if (appended) {
        EXPECT_TRUE(appended->ours);
        EXPECT_EQ(world.memory->object_count(), 1U);
      } else {
        EXPECT_EQ(appended.error().code(), StatusCode::kUnavailable);
        EXPECT_NE(appended.error().message().find("not known"), std::string::npos);
      }
    }
  }
}

TEST_F(AppendLogTest, AThrottledOrForbiddenAppendLeavesNothing) {
  for (const StatusCode code : {StatusCode::kThrottled, StatusCode::kPermissionDenied}) {
    FaultyObjectStore faulty(world_.memory, fault_nth_call(1, {.code = code}), world_.clock,
                             inline_executor());
    RegistryAccess access{faulty, world_.clock, world_.random, writer_of("alice")};
    const auto appended = append(AppendLog(access, kTestLog), 1);
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().code(), code);
    EXPECT_EQ(faulty.calls(), 1U);
    EXPECT_EQ(world_.memory->object_count(), 0U);
  }
}

TEST_F(AppendLogTest, AGapIsNamed) {
  fill(log_, 4);
  const std::vector<ObjectKey> gone = {ObjectKey(log_.key_of(2))};
  ASSERT_TRUE(world_.memory->remove(world_.context, gone).ok());
  const auto last = log_.last(world_.context);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code(), StatusCode::kCorruption);
  EXPECT_NE(last.error().message().find("logs/one/00000002.json"), std::string::npos);
}

TEST_F(AppendLogTest, ADamagedRecordIsNamed) {
  fill(log_, 2);
  for (const std::string& text :
       {std::string("rubbish"), std::string(), std::string(kLogRecordBytesMax + 1, 'x'),
        world_.content(log_.key_of(1))}) {
    world_.write(log_.key_of(2), text);
    const auto last = log_.last(world_.context);
    ASSERT_FALSE(last);
    EXPECT_EQ(last.error().code(), StatusCode::kCorruption);
    EXPECT_NE(last.error().message().find(log_.key_of(2)), std::string::npos);
  }
  // Nobody appends past it, and nobody overwrites it.
  EXPECT_EQ(append(log_, 2).error().code(), StatusCode::kCorruption);
}

TEST_F(AppendLogTest, ForeignKeysAreIgnoredAndImpossibleNumbersAreNot) {
  fill(log_, 1);
  for (const char* name : {"", "x", "1.json", "0000000a.json", "00000002.json.tmp", "00000002.txt"})
    world_.write(std::string(kTestLog) + name, "x");
  EXPECT_EQ(log_.last_number(world_.context).value(), 1U);
  for (const char* name : {"00000000.json", "00100001.json"}) {
    RegistryWorld other;
    const RegistryAccess access = other.access();
    other.write(std::string(kTestLog) + name, "x");
    EXPECT_EQ(AppendLog(access, kTestLog).last_number(other.context).error().code(),
              StatusCode::kCorruption);
  }
}

TEST_F(AppendLogTest, IsFullAtItsLimit) {
  EXPECT_EQ(append(log_, kLogRecordsMax + 1).error().code(), StatusCode::kResourceExhausted);
}

TEST_F(AppendLogTest, ASingleWriterNeedsNoConditions) {
  MemoryObjectStore plain(world_.clock, inline_executor(), {.refuse_conditions = true});
  RegistryAccess access{plain, world_.clock, world_.random, writer_of("alice")};
  EXPECT_EQ(append(AppendLog(access, kTestLog), 1).error().code(), StatusCode::kUnsupported);
  access.single_writer = true;
  const AppendLog log(access, kTestLog);
  EXPECT_TRUE(append(log, 1).value().ours);
  EXPECT_FALSE(append(log, 1).value().ours);
  EXPECT_TRUE(append(log, 2).value().ours);
}

TEST_F(AppendLogTest, ListsTheEndsOfManyLogs) {
  for (std::uint64_t i = 1; i <= 5; ++i)
    fill(AppendLog(access_, fmt::format("logs/{}/", i)), i * 100);
  world_.recording->clear();
  const auto ends = list_log_ends(world_.context, access_, "logs/").value();
  EXPECT_EQ(world_.recording->count(StoreOperation::kList), 2U);
  EXPECT_EQ(world_.recording->count(), 2U);
  ASSERT_EQ(ends.size(), 5U);
  EXPECT_EQ(ends.at("logs/4/").value(), 400U);
}

TEST_F(AppendLogTest, ALogWithAGapDoesNotHideTheOthers) {
  for (const char* name : {"a", "b", "c", "d"})
    fill(AppendLog(access_, fmt::format("logs/{}/", name)), 4);
  const std::array gone = {ObjectKey("logs/b/00000002.json")};
  ASSERT_TRUE(world_.memory->remove(world_.context, gone).ok());
  world_.write("logs/c/00000000.json", "x");
  const auto ends = list_log_ends(world_.context, access_, "logs/").value();
  ASSERT_EQ(ends.size(), 4U);
  EXPECT_EQ(ends.at("logs/a/").value(), 4U);
  EXPECT_EQ(ends.at("logs/d/").value(), 4U);
  EXPECT_EQ(ends.at("logs/b/").error().code(), StatusCode::kCorruption);
  EXPECT_NE(ends.at("logs/b/").error().message().find(gone[0].value()), std::string::npos);
  EXPECT_EQ(ends.at("logs/c/").error().code(), StatusCode::kCorruption);
}

TEST_F(AppendLogTest, ReadsManyRecordsAndKeepsTheirOrder) {
  fill(log_, 100);
  world_.write(log_.key_of(50), "rubbish");
  std::vector<LogPosition> positions;
  for (std::uint64_t number = 100; number >= 1; --number)
    positions.push_back({kTestLog, number});
  const auto records = read_log_records(world_.context, access_, positions).value();
  ASSERT_EQ(records.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) {
    if (i == 50) {
      EXPECT_EQ(records[i].error().code(), StatusCode::kCorruption);
    } else {
      EXPECT_EQ(records[i].value().number, 100 - i);
    }
  }
  EXPECT_EQ(log_.records(world_.context).error().code(), StatusCode::kCorruption);
}

// A list that passed the place of a record just before it was written, and saw its successor.
TEST_F(AppendLogTest, AListThatMissesARecordIsNoGap) {
  fill(log_, 3);
  class ForgetfulStore final : public ObjectStore {
   public:
    explicit ForgetfulStore(ObjectStore& inner) : inner_(inner) {}
    void get_range(const RequestContext& context, GetRequest request,
                   Completion<GetResult> done) override {
      inner_.get_range(context, std::move(request), std::move(done));
    }
    Result<ObjectInfo> head(const RequestContext& context, const ObjectKey& key) override {
      return inner_.head(context, key);
    }
    Result<ListPage> list(const RequestContext& context, const ListRequest& request) override {
      auto page = inner_.list(context, request);
      if (page) page->objects.erase(page->objects.begin() + 1);
      return page;
    }
    Result<ObjectInfo> put(const RequestContext& context, const ObjectKey& key, Slice data,
                           const PutOptions& options) override {
      return inner_.put(context, key, std::move(data), options);
    }
    Result<std::unique_ptr<Upload>> start_upload(const RequestContext& context,
                                                 const ObjectKey& key,
                                                 const PutOptions& options) override {
      return inner_.start_upload(context, key, options);
    }
    Result<ObjectInfo> copy(const RequestContext& context, const ObjectInfo& source,
                            const ObjectKey& target) override {
      return inner_.copy(context, source, target);
    }
    Status remove(const RequestContext& context, std::span<const ObjectKey> keys) override {
      return inner_.remove(context, keys);
    }
    std::string describe() const override { return inner_.describe(); }

   private:
    ObjectStore& inner_;
  } forgetful(*world_.memory);
  RegistryAccess access{forgetful, world_.clock, world_.random, writer_of("alice")};
  EXPECT_EQ(AppendLog(access, kTestLog).last_number(world_.context).value(), 3U);
}

// Threads that append as fast as they can: every number has one winner, and no record is lost.
TEST_F(AppendLogTest, ManyWritersMakeOneLine) {
  constexpr std::uint64_t kEach = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const RegistryAccess mine = world_.access(std::to_string(t));
      const AppendLog log(mine, kTestLog);
      std::uint64_t won = 0;
      while (won < kEach) {
        const std::uint64_t next = log.last_number(world_.context).value() + 1;
        if (append(log, next).value().ours) ++won;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  const auto records = log_.records(world_.context).value();
  EXPECT_EQ(records.size(), 4 * kEach);
  std::map<std::string, std::uint64_t> by_user;
  for (const LogRecord& record : records)
    ++by_user[record.who.user];
  for (const auto& [user, count] : by_user)
    EXPECT_EQ(count, kEach) << user;
}

}  // namespace

}  // namespace millrace
