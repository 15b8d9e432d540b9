#include "dataset/pack_builder.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/thread_pool.h"
#include "cache/unit.h"
#include "dataset/directory_source.h"
#include "dataset/store_source.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "tests/dataset/source_world.h"
#include "tests/dataset/tar_archive.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const RequestContext kPackContext = RequestContext::background();
const ObjectKey kPackKey("packs/0.tar");
// Every pack is an upload of many chunks.
constexpr PackBuilderOptions kSmallChunks = {
    .put_bytes_max = 0, .chunk_bytes = kUnitBytes, .reads_max = 4};

struct OnePack final : PackPlanSink {
  Status add_pack(PlannedPack planned) override {
    EXPECT_TRUE(pack.members.empty()) << "a second pack";
    pack = std::move(planned);
    return {};
  }
  Status add_object(SourceEntry file) override {
    ADD_FAILURE() << file.path << " is not packed";
    return {};
  }
  PlannedPack pack;
};

// All files of a scan in one pack.
PlannedPack plan_one_pack(const CollectedSource& found) {
  OnePack plan;
  PackPlanner planner({.file_bytes_max = 8 * kMiB}, plan);
  for (const auto& [path, entry] : found.entries()) {
    if (entry.kind == EntryKind::kFile) {
      EXPECT_TRUE(planner.add(entry).ok());
    }
  }
  EXPECT_TRUE(planner.finish().ok());
  return std::move(plan.pack);
}

// A source whose files call `hook` after each read, with the path, how many reads there were, and
// how much this one gave, which the hook may change.
class MeddledSource final : public SourceTree {
 public:
  using Hook = std::function<void(const std::string& path, int reads, std::size_t& filled)>;
  MeddledSource(SourceTree& inner, Hook hook) : inner_(inner), hook_(std::move(hook)) {}

  Status scan(const RequestContext& context, SourceSink& sink) override {
    return inner_.scan(context, sink);
  }
  Result<std::unique_ptr<SourceFile>> open(const RequestContext& context,
                                           const SourceEntry& entry) override {
    MR_ASSIGN_OR_RETURN(auto file, inner_.open(context, entry));
    return std::make_unique<MeddledFile>(std::move(file), entry.path, hook_);
  }
  std::string describe() const override { return inner_.describe(); }

 private:
  class MeddledFile final : public SourceFile {
   public:
    MeddledFile(std::unique_ptr<SourceFile> inner, std::string path, const Hook& hook)
        : inner_(std::move(inner)), path_(std::move(path)), hook_(hook) {}
    Result<std::size_t> read_at(const RequestContext& context, std::uint64_t offset,
                                MutableByteView into) override {
      auto result = inner_->read_at(context, offset, into);
      if (result) hook_(path_, ++reads_, *result);
      return result;
    }
    Result<bool> unchanged(const RequestContext& context) override {
      return inner_->unchanged(context);
    }

   private:
    const std::unique_ptr<SourceFile> inner_;
    const std::string path_;
    const Hook& hook_;
    int reads_ = 0;
  };

  SourceTree& inner_;
  const Hook hook_;
};

class PackBuilderTest : public ::testing::Test {
 protected:
  // Files of sizes around every boundary.
  void write_files(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::uint64_t sizes[] = {
        0, 1, 511, 512, 513, kUnitBytes - 512, kUnitBytes, 70'000, 200'000, 3 * kUnitBytes - 1024};
    for (int n = 0; n < 40; ++n) {
      const std::uint64_t size =
          random() % 2 == 0 ? sizes[random() % std::size(sizes)] : random() % 3000;
      std::string content(size, '\0');
      for (char& c : content)
        c = static_cast<char>(random());
      const std::string name = n % 10 == 0 ? std::string(120, 'n') : "f";
      tree_.write("d/" + name + std::to_string(n) + ".bin", content);
    }
    source_ = DirectorySource::open_root(tree_.root()).value();
    found_ = scan_all(*source_);
  }
  std::string stored_bytes() {
    const auto result = memory_->get(kPackContext, {.key = kPackKey});
    return result ? std::string(result->data.text()) : result.error().to_string();
  }
  // What lies between files must not be what a buffer held before.
  static void expect_zeros(const std::string& bytes, std::uint64_t offset, std::uint64_t length) {
    EXPECT_EQ(bytes.substr(offset, length), std::string(length, '\0')) << "at " << offset;
  }
  void expect_right(const BuiltPack& built, const PlannedPack& plan) {
    const std::string bytes = stored_bytes();
    ASSERT_EQ(built.object.size, bytes.size());
    ASSERT_EQ(built.object.key, kPackKey);
    ASSERT_EQ(built.object.identity, memory_->head(kPackContext, kPackKey)->identity);
    ASSERT_EQ(plan.bytes, bytes.size());
    ASSERT_EQ(built.checksums.size(), unit_count(bytes.size()));
    for (std::size_t unit = 0; unit < built.checksums.size(); ++unit) {
      ASSERT_EQ(built.checksums[unit],
                crc32c(as_bytes(std::string_view(bytes).substr(unit * kUnitBytes, kUnitBytes))));
    }
    const auto listed = list_archive(bytes);
    ASSERT_EQ(listed.size(), plan.members.size());
    ASSERT_EQ(built.members.size(), plan.members.size());
    for (std::size_t n = 0; n < listed.size(); ++n) {
      const SourceEntry& file = plan.members[n].file;
      const std::string content = read_source(*source_, file).value();
      ASSERT_EQ(listed[n].member.path, file.path);
      ASSERT_EQ(listed[n].member.mode, file.mode.value_or(0644));
      ASSERT_EQ(listed[n].member.mtime_ns, file.mtime_ns / 1'000'000'000 * 1'000'000'000);
      ASSERT_EQ(listed[n].content_offset, built.members[n].content_offset);
      ASSERT_EQ(bytes.substr(listed[n].content_offset, listed[n].member.size), content);
      ASSERT_EQ(built.members[n].hash, sha256(as_bytes(content)));
      expect_zeros(bytes, listed[n].content_offset + file.size, tar_padded(file.size) - file.size);
    }
    expect_zeros(bytes, bytes.size() - kTarEndBytes, kTarEndBytes);
  }

  ScratchTree tree_;
  std::unique_ptr<SourceTree> source_;
  std::unique_ptr<CollectedSource> found_;
  std::shared_ptr<MemoryObjectStore> memory_ = std::make_shared<MemoryObjectStore>();
  BufferPool pool_{{.bytes_max = 16 * kMiB, .idle_bytes_max = kMiB}};
};

TEST_F(PackBuilderTest, StoresWhatWasPlanned) {
  ThreadPool readers({.name = "readers", .threads = 4, .queued_tasks_max = 2});
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    write_files(seed);
    const PlannedPack plan = plan_one_pack(*found_);
    for (Executor* executor : {static_cast<Executor*>(nullptr), static_cast<Executor*>(&readers)}) {
      for (const PackBuilderOptions& options : {kSmallChunks, PackBuilderOptions{}}) {
        PackBuilder builder(*memory_, pool_, executor, options);
        const auto built = builder.build(kPackContext, *source_, plan, kPackKey, {});
        ASSERT_TRUE(built) << built.error().to_string();
        expect_right(*built, plan);
      }
    }
    EXPECT_EQ(memory_->open_uploads(), 0U);
    EXPECT_EQ(pool_.bytes_in_use(), 0U);
  }
}

TEST_F(PackBuilderTest, TakesOneBufferAtATime) {
  write_files(7);
  const PlannedPack plan = plan_one_pack(*found_);
  ASSERT_GT(plan.bytes, 4 * kUnitBytes);
  BufferPool tiny({.bytes_max = kUnitBytes, .idle_bytes_max = 0});
  PackBuilder builder(*memory_, tiny, nullptr, kSmallChunks);
  const auto built = builder.build(kPackContext, *source_, plan, kPackKey, {});
  ASSERT_TRUE(built) << built.error().to_string();
  expect_right(*built, plan);
}

TEST_F(PackBuilderTest, PutsSmallPacksWithOneRequest) {
  write_files(8);
  const PlannedPack plan = plan_one_pack(*found_);
  RecordingObjectStore recording(memory_);
  PackBuilder builder(recording, pool_);
  ASSERT_TRUE(builder.build(kPackContext, *source_, plan, kPackKey, {}));
  EXPECT_EQ(recording.count(), 1U);
  EXPECT_EQ(recording.count(StoreOperation::kPut), 1U);
  // The condition of the caller holds for both ways.
  for (const PackBuilderOptions& options : {kSmallChunks, PackBuilderOptions{}}) {
    PackBuilder again(*memory_, pool_, nullptr, options);
    const auto refused = again.build(kPackContext, *source_, plan, kPackKey,
                                     {.condition = WriteCondition::if_absent()});
    EXPECT_EQ(refused.error().code(), StatusCode::kPreconditionFailed);
  }
}

TEST_F(PackBuilderTest, ReadsFromAStoreWithOneRequestPerFile) {
  for (int n = 0; n < 30; ++n) {
    ASSERT_TRUE(memory_->put(kPackContext, ObjectKey("in/" + std::to_string(n) + ".txt"),
                             Slice::copy_of(std::string(n * 7, 'x')), {}));
  }
  auto recording = std::make_shared<RecordingObjectStore>(memory_);
  source_ = std::make_unique<StoreSource>(*recording, "in");
  found_ = scan_all(*source_);
  const PlannedPack plan = plan_one_pack(*found_);
  recording->clear();
  ThreadPool readers({.name = "readers", .threads = 4, .queued_tasks_max = 64});
  PackBuilder builder(*memory_, pool_, &readers);
  const auto built = builder.build(kPackContext, *source_, plan, kPackKey, {});
  ASSERT_TRUE(built) << built.error().to_string();
  EXPECT_EQ(recording->count(StoreOperation::kGetRange), 29U);
  EXPECT_EQ(recording->count(StoreOperation::kHead), 1U);  // The empty one.
  expect_right(*built, plan);
}

struct PackMeddling {
  const char* name;
  std::function<void(const std::string& path)> make;
};
std::vector<PackMeddling> pack_meddlings() {
  return {
      {"longer", [](const std::string& path) { std::ofstream(path, std::ios::app) << "more"; }},
      {"shorter", [](const std::string& path) { fs::resize_file(path, 100); }},
      {"empty", [](const std::string& path) { fs::resize_file(path, 0); }},
      {"rewritten",
       [](const std::string& path) {
         std::ofstream(path, std::ios::in | std::ios::out) << "other";
       }},
      {"replaced",
       [](const std::string& path) {
         fs::copy_file(path, path + ".new");
         fs::last_write_time(path + ".new", fs::last_write_time(path));
         fs::rename(path + ".new", path);
       }},
      {"removed", [](const std::string& path) { fs::remove(path); }},
      {"removed with its directory",
       [](const std::string& path) { fs::remove_all(fs::path(path).parent_path()); }},
  };
}

// Nothing is stored, and the message has the name.
void expect_refused(const Result<BuiltPack>& built, const MemoryObjectStore& store) {
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code(), StatusCode::kConflict) << built.error().to_string();
  EXPECT_THAT(built.error().message(), HasSubstr("d/victim"));
  EXPECT_EQ(store.object_count(), 0U);
  EXPECT_EQ(store.open_uploads(), 0U);
}

TEST_F(PackBuilderTest, FilesThatChangeBetweenScanAndReadingAreNamed) {
  for (const PackMeddling& meddling : pack_meddlings()) {
    SCOPED_TRACE(meddling.name);
    tree_.write("a/first", "x");
    tree_.write("d/victim", std::string(150'000, 'v'));
    source_ = DirectorySource::open_root(tree_.root()).value();
    found_ = scan_all(*source_);
    const PlannedPack plan = plan_one_pack(*found_);
    meddling.make(tree_.path("d/victim"));
    for (const PackBuilderOptions& options : {kSmallChunks, PackBuilderOptions{}}) {
      PackBuilder builder(*memory_, pool_, nullptr, options);
      expect_refused(builder.build(kPackContext, *source_, plan, kPackKey, {}), *memory_);
    }
  }
}

TEST_F(PackBuilderTest, FilesThatChangeWhileTheyAreReadAreNamed) {
  for (const PackMeddling& meddling : pack_meddlings()) {
    // After its first part, and after its last.
    for (const int reads : {1, 3}) {
      SCOPED_TRACE(meddling.name + std::string(" after read ") + std::to_string(reads));
      tree_.write("a/first", "x");
      tree_.write("d/victim", std::string(150'000, 'v'));
      source_ = DirectorySource::open_root(tree_.root()).value();
      found_ = scan_all(*source_);
      const PlannedPack plan = plan_one_pack(*found_);
      MeddledSource meddled(*source_, [&](const std::string& path, int count, std::size_t&) {
        if (path == "d/victim" && count == reads) meddling.make(tree_.path(path));
      });
      PackBuilder builder(*memory_, pool_, nullptr, kSmallChunks);
      expect_refused(builder.build(kPackContext, meddled, plan, kPackKey, {}), *memory_);
    }
  }
}

TEST_F(PackBuilderTest, AFileThatGivesLessThanItsSizeIsNamed) {
  tree_.write("d/victim", std::string(1000, 'v'));
  source_ = DirectorySource::open_root(tree_.root()).value();
  found_ = scan_all(*source_);
  // Although it says that nothing changed.
  MeddledSource meddled(*source_, [](const std::string&, int, std::size_t& filled) { --filled; });
  PackBuilder builder(*memory_, pool_);
  expect_refused(builder.build(kPackContext, meddled, plan_one_pack(*found_), kPackKey, {}),
                 *memory_);
}

TEST_F(PackBuilderTest, AnEmptyFileThatGrowsIsNamed) {
  tree_.write("d/victim", "");
  source_ = DirectorySource::open_root(tree_.root()).value();
  found_ = scan_all(*source_);
  tree_.write("d/victim", "x");
  PackBuilder builder(*memory_, pool_);
  expect_refused(builder.build(kPackContext, *source_, plan_one_pack(*found_), kPackKey, {}),
                 *memory_);
}

TEST_F(PackBuilderTest, EveryCallOfTheStoreMayFail) {
  write_files(9);
  const PlannedPack plan = plan_one_pack(*found_);
  for (const PackBuilderOptions& options : {kSmallChunks, PackBuilderOptions{}}) {
    for (std::uint64_t call = 1;; ++call) {
      FaultyObjectStore faulty(memory_, fault_nth_call(call, {.kind = Fault::Kind::kFailBefore}),
                               system_clock(), inline_executor());
      PackBuilder builder(faulty, pool_, nullptr, options);
      const auto built = builder.build(kPackContext, *source_, plan, kPackKey, {});
      EXPECT_EQ(memory_->open_uploads(), 0U);
      EXPECT_EQ(pool_.bytes_in_use(), 0U);
      if (built) {
        EXPECT_LT(faulty.calls(), call);
        expect_right(*built, plan);
        ASSERT_TRUE(memory_->remove(kPackContext, std::vector{kPackKey}).ok());
        break;
      }
      EXPECT_EQ(built.error().code(), StatusCode::kUnavailable);
      EXPECT_EQ(memory_->object_count(), 0U);
    }
  }
}

TEST_F(PackBuilderTest, StopsWhenItsContextEnds) {
  write_files(10);
  const RequestContext cancelled(TimePoint::max(), "test");
  cancelled.cancellation().request();
  PackBuilder builder(*memory_, pool_, nullptr, kSmallChunks);
  const auto built = builder.build(cancelled, *source_, plan_one_pack(*found_), kPackKey, {});
  EXPECT_EQ(built.error().code(), StatusCode::kCancelled);
  EXPECT_EQ(memory_->object_count(), 0U);
}

}  // namespace
}  // namespace millrace
