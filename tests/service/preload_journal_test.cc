#include "service/preload_journal.h"

#include <string>

#include <gtest/gtest.h>

#include "base/checked_line.h"
#include "platform/memory_disk.h"

namespace millrace {
namespace {

PreloadInfo some_preload(const std::string& id) {
  return {.id = PreloadId(id),
          .request = {.version = VersionRef::parse("vision/a@v1").value(),
                      .paths = {"train/**", "[a-b]"},
                      .lease = std::chrono::hours(12),
                      .bytes_per_second_max = 1000,
                      .what_fits = true,
                      .holder = {.principal = "uid:1000", .run = "r1"}},
          .state = PreloadState::kRunning,
          .created = WallTime(std::chrono::seconds(1'700'000'000)),
          .files = 3,
          .bytes_total = 77,
          .problem = "the store is away"};
}

TEST(PreloadJournalTest, KeepsWhatWasSavedOverAPowerLoss) {
  MemoryDisk disk;
  PreloadJournal journal = PreloadJournal::open(disk, "/preloads").value();
  PreloadInfo first = some_preload("00000000000a");
  ASSERT_TRUE(journal.save(first).ok());
  first.state = PreloadState::kReady;
  first.ended = first.created + std::chrono::hours(1);
  ASSERT_TRUE(journal.save(first).ok());
  PreloadInfo second = some_preload("000000000002");
  second.created += std::chrono::seconds(1);
  second.request.lease.reset();
  second.request.paths.clear();
  ASSERT_TRUE(journal.save(second).ok());
  disk.simulate_power_loss(1);

  const auto loaded = PreloadJournal::open(disk, "/preloads").value().load().value();
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(encode_preload(loaded[0]), encode_preload(first));
  EXPECT_EQ(encode_preload(loaded[1]), encode_preload(second));
  EXPECT_EQ(loaded[0].request.lease, std::chrono::hours(12));
  EXPECT_EQ(loaded[0].request.holder.run, "r1");
  EXPECT_FALSE(loaded[1].request.lease);
}

std::string noted(std::string text, const std::string& field, const std::string& replaced) {
  const std::size_t line = text.find('\n') + 1;
  std::string json = text.substr(line + 9, text.size() - line - 10);
  const std::size_t at = json.find(field);
  EXPECT_NE(at, std::string::npos) << json;
  return text.substr(0, line) + checked_line(json.replace(at, field.size(), replaced));
}

TEST(PreloadJournalTest, KeepsWhatKindOfFailureItWas) {
  PreloadInfo failed = some_preload("00000000000a");
  failed.state = PreloadState::kFailed;
  failed.code = StatusCode::kPermissionDenied;
  failed.fit = {.wanted_bytes = 100, .limit_bytes = 80, .leased_bytes = 10, .short_bytes = 40};
  const std::string text = encode_preload(failed);
  const Result<PreloadInfo> loaded = decode_preload(text, "f");
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(loaded->code, StatusCode::kPermissionDenied);
  EXPECT_EQ(loaded->fit.short_bytes, 40u);

  const Result<PreloadInfo> of_old = decode_preload(
      noted(noted(text, R"("code":"permission_denied",)", ""), R"("short_bytes":40,)", ""), "f");
  ASSERT_TRUE(of_old) << of_old.error().to_string();
  EXPECT_EQ(of_old->code, StatusCode::kIoError);
  EXPECT_EQ(of_old->fit.short_bytes, 30u);
  const Result<PreloadInfo> of_later =
      decode_preload(noted(text, "permission_denied", "bad_weather"), "f");
  ASSERT_TRUE(of_later) << of_later.error().to_string();
  EXPECT_EQ(of_later->code, StatusCode::kIoError);
}

TEST(PreloadJournalTest, AnyDamageIsSeen) {
  const std::string good = encode_preload(some_preload("00000000000a"));
  ASSERT_TRUE(decode_preload(good, "f"));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(decode_preload(bad, "f")) << at;
    EXPECT_FALSE(decode_preload(std::string_view(good).substr(0, at), "f")) << at;
  }
  const Result<PreloadInfo> later = decode_preload("millrace-preload 2\n", "f");
  EXPECT_EQ(later.error().code(), StatusCode::kUnsupported);
}

TEST(PreloadJournalTest, DamagedFilesAreReportedAndGo) {
  MemoryDisk disk;
  PreloadJournal journal = PreloadJournal::open(disk, "/preloads").value();
  ASSERT_TRUE(journal.save(some_preload("00000000000a")).ok());
  const auto write = [&](const std::string& name, const std::string& text) {
    const auto file = disk.open("/preloads/" + name, OpenMode::kCreate).value();
    ASSERT_TRUE(file->write_at(0, as_bytes(text)).ok());
  };
  write("00000000000b", "rubbish");
  write("00000000000c", encode_preload(some_preload("00000000000d")));
  write("00000000000e.new", "half");
  EXPECT_EQ(journal.load().value().size(), 1u);
  EXPECT_EQ(disk.list("/preloads").value().size(), 1u);
}

}  // namespace
}  // namespace millrace
