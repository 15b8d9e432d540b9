// Manifests that come from a store, frame by frame.
#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/buffer.h"
#include "base/current_request.h"
#include "dataset/frame_format.h"
#include "dataset/frame_pages.h"
#include "dataset/frame_writer.h"
#include "dataset/manifest_cursor.h"
#include "tests/dataset/manifest_tree.h"

namespace millrace {
namespace {

// Stands for the store: counts what is fetched, and fails or lies on demand.
struct FrameStore {
  std::string bytes;
  std::mutex mutex;
  std::vector<ByteRange> fetches;
  std::atomic<bool> fails = false;
  // What is fetched comes when the latch opens.
  std::shared_ptr<std::latch> hangs;
  std::counting_semaphore<> asked{0};

  FrameFetch fetch() {
    return [this](std::uint64_t offset, std::uint64_t length) -> Result<Slice> {
      if (hangs) {
        asked.release();
        hangs->wait();
      }
      const std::lock_guard lock(mutex);
      fetches.push_back({offset, length});
      if (fails) return failure(StatusCode::kUnavailable, "the store is away");
      return Slice::copy_of(std::string_view(bytes).substr(std::min(offset, bytes.size()), length));
    };
  }
};

class ManifestFramesTest : public ::testing::Test {
 protected:
  void store_tree(const ManifestTree& made) {
    tree = made;
    const auto built = build_tree(tree, folder.file("m"));
    ASSERT_TRUE(built) << built.error().to_string();
    const auto written = write_frames(folder.file("m"), folder.file("frames"));
    ASSERT_TRUE(written) << written.error().to_string();
    summary = *written;
    EXPECT_EQ(summary.layout_digest, built->layout_digest);
    store.bytes = read_bytes(folder.file("frames"));
    EXPECT_EQ(store.bytes.size(), summary.framed_bytes);
    EXPECT_LT(summary.framed_bytes, built->file_bytes);
  }
  FramedPagesOptions options(const std::string& name = "local") {
    return {.path = folder.file(name),
            .framed_bytes = summary.framed_bytes,
            .index_bytes = summary.index_bytes,
            .fetch = store.fetch(),
            .layout_digest = summary.layout_digest};
  }
  Manifest open(const std::string& name = "local") {
    return Manifest(FramedManifestPages::open(options(name)).value());
  }
  FrameIndex frame_index() const {
    return decode_frame_index(as_bytes(store.bytes).last(summary.index_bytes), store.bytes.size())
        .value();
  }

  // Of the frames that were fetched at all.
  void expect_each_fetched_once() const {
    std::map<std::uint64_t, int> times;
    for (std::size_t i = 1; i < store.fetches.size(); ++i) {
      EXPECT_LE(store.fetches[i].length, 4 * kMiB);
      for (const FrameRecord& frame : frame_index().frames) {
        if (frame.offset >= store.fetches[i].offset && frame.end() <= store.fetches[i].end()) {
          ++times[frame.offset];
        }
      }
    }
    EXPECT_FALSE(times.empty());
    for (const auto& [offset, count] : times)
      EXPECT_EQ(count, 1) << offset;
  }

  ManifestFolder folder;
  ManifestTree tree;
  FrameStore store;
  FramesSummary summary;
};

TEST_F(ManifestFramesTest, SaysWhatTheWholeFileSays) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    store_tree(random_tree(seed, 2000));
    const auto framed = FramedManifestPages::open(options(std::to_string(seed)));
    ASSERT_TRUE(framed) << framed.error().to_string();
    expect_tree(open(std::to_string(seed)), tree);
  }
}

TEST_F(ManifestFramesTest, OpensInThreeFetchesAndFetchesWhatIsTouched) {
  store_tree(wide_tree(40'000));
  ASSERT_GT(frame_index().frames.size(), 10);
  const Manifest manifest = open();
  EXPECT_EQ(store.fetches.size(), 3);
  EXPECT_EQ(store.fetches[0],
            (ByteRange{summary.framed_bytes - summary.index_bytes, summary.index_bytes}));
  expect_entry(manifest, tree, "d/n01440764_012345.JPEG");
  // Directory, slots, entry, name, object and key lie in different places, one fetch each at most.
  EXPECT_LE(store.fetches.size(), 3 + 6);
  const std::size_t before = store.fetches.size();
  expect_entry(manifest, tree, "d/n01440764_012345.JPEG");
  EXPECT_EQ(store.fetches.size(), before);
}

TEST_F(ManifestFramesTest, ASmallOneComesInOneFetch) {
  store_tree(wide_tree(1000));
  const Manifest manifest = open();
  expect_tree(manifest, tree);
  EXPECT_EQ(store.fetches, (std::vector<ByteRange>{{0, summary.framed_bytes}}));
  store.fetches.clear();
  expect_tree(open(), tree);
  EXPECT_EQ(store.fetches.size(), 0);
}

TEST_F(ManifestFramesTest, AScanFetchesMoreAndMoreAtOnceAndNothingTwice) {
  store_tree(wide_tree(60'000));
  const FrameIndex index = frame_index();
  const Manifest manifest = open();
  ManifestCursor cursor(manifest);
  while (true) {
    const auto item = cursor.next();
    ASSERT_TRUE(item) << item.error().to_string();
    if (!*item) break;
  }
  EXPECT_LT(store.fetches.size(), index.frames.size() / 2);
  expect_each_fetched_once();
}

TEST_F(ManifestFramesTest, ManyReadersFetchEachFrameOnce) {
  store_tree(wide_tree(30'000));
  const Manifest manifest = open();
  std::vector<std::thread> readers;
  std::atomic<int> wrong = 0;
  for (unsigned reader = 0; reader < 8; ++reader) {
    readers.emplace_back([&, reader] {
      std::mt19937_64 random(reader / 4);  // Several touch the same at the same time.
      for (int i = 0; i < 500; ++i) {
        const std::string path = fmt::format("d/n01440764_{:06}.JPEG", random() % 30'000);
        const auto found = manifest.resolve(path);
        if (!found || !*found || manifest.path_of(**found).value_or("") != path) ++wrong;
      }
    });
  }
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_EQ(wrong, 0);
  expect_each_fetched_once();
}

TEST_F(ManifestFramesTest, WhatIsInTheFileIsNotFetchedAgain) {
  store_tree(wide_tree(20'000));
  {
    const auto pages = FramedManifestPages::open(options()).value();
    ASSERT_TRUE(pages->fetch_all().ok());
  }
  // It is the manifest now.
  EXPECT_EQ(read_bytes(folder.file("local")), read_bytes(folder.file("m")));
  store.fetches.clear();
  const Manifest again = open();
  expect_tree(again, tree);
  EXPECT_EQ(store.fetches.size(), 0);

  // A damaged page is fetched again, and only that.
  std::string bytes = read_bytes(folder.file("local"));
  bytes[10 * kManifestPageBytes + 5] ^= 1;
  write_bytes(folder.file("damaged"), bytes);
  store.fetches.clear();
  expect_tree(open("damaged"), tree);
  EXPECT_EQ(store.fetches.size(), 2);
}

TEST_F(ManifestFramesTest, AKeptIndexThatIsNotThisOnesIsFetchedAgain) {
  store_tree(wide_tree(3000));
  expect_tree(open(), tree);
  const std::string kept = read_bytes(folder.file("local.index"));
  for (const std::string& wrong :
       {std::string(), kept.substr(1), kept + "x", std::string("rubbish")}) {
    write_bytes(folder.file("local.index"), wrong);
    store.fetches.clear();
    expect_tree(open(), tree);
    EXPECT_EQ(store.fetches.size(), 1);
    EXPECT_EQ(read_bytes(folder.file("local.index")), kept);
  }
  FramedPagesOptions another = options();
  another.layout_digest[0] ^= std::byte{1};
  const auto refused = FramedManifestPages::open(another);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error() == StatusCode::kCorruption) << refused.error().to_string();
}

TEST_F(ManifestFramesTest, AFileOfAnotherManifestIsNotBelieved) {
  store_tree(wide_tree(3000));
  ManifestTree other = tree;
  for (auto& [path, entry] : other.entries)
    entry.mode = 0111;
  ASSERT_TRUE(build_tree(other, folder.file("local")));
  expect_tree(open(), tree);
  write_bytes(folder.file("short"), "rubbish");
  expect_tree(open("short"), tree);
  write_bytes(folder.file("long"), std::string(10'000'000, 'x'));
  expect_tree(open("long"), tree);
}

TEST_F(ManifestFramesTest, AFailedFetchIsTriedAgainByTheNext) {
  store_tree(wide_tree(20'000));
  const Manifest manifest = open();
  store.fails = true;
  const auto failed = manifest.resolve("d/n01440764_019999.JPEG");
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error() == StatusCode::kUnavailable) << failed.error().to_string();
  store.fails = false;
  expect_entry(manifest, tree, "d/n01440764_019999.JPEG");
  store.fails = true;
  EXPECT_FALSE(FramedManifestPages::open(options("new")));
}

TEST_F(ManifestFramesTest, WhoWaitsForAnothersFetchWaitsNoLongerThanItsOwnRequest) {
  store_tree(wide_tree(20'000));
  const Manifest manifest = open();
  const auto resolve_last = [&] {
    const auto found = manifest.resolve("d/n01440764_019999.JPEG");
    return found ? StatusCode::kOk : found.error().code();
  };
  store.hangs = std::make_shared<std::latch>(1);
  std::thread first([&] { EXPECT_EQ(resolve_last(), StatusCode::kOk); });
  store.asked.acquire();
  {
    const RequestContext late(system_clock().now() + std::chrono::milliseconds(1), "late");
    const CurrentRequest current(late);
    EXPECT_EQ(resolve_last(), StatusCode::kDeadlineExceeded);
  }
  const RequestContext killed = RequestContext::background();
  std::thread second([&] {
    const CurrentRequest current(killed);
    EXPECT_EQ(resolve_last(), StatusCode::kCancelled);
  });
  killed.cancellation().request();
  second.join();
  EXPECT_FALSE(store.asked.try_acquire()) << "it was asked for twice";
  store.hangs->count_down();
  first.join();
}

TEST_F(ManifestFramesTest, DamageInTheStoreIsNoticed) {
  store_tree(random_tree(9, 800));
  const std::string whole = store.bytes;
  std::mt19937_64 random(1);
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    store.bytes = whole;
    const std::size_t byte =
        i < 50 ? whole.size() - 1 - random() % summary.index_bytes : random() % whole.size();
    store.bytes[byte] = static_cast<char>(store.bytes[byte] ^ (1 << random() % 8));
    const auto pages = FramedManifestPages::open(options(std::to_string(i)));
    if (!pages) {
      EXPECT_TRUE(pages.error() == StatusCode::kCorruption ||
                  pages.error() == StatusCode::kUnsupported);
      continue;
    }
    const Status all = (*pages)->fetch_all();
    EXPECT_TRUE(all == StatusCode::kCorruption) << byte;
    // What was good is good; the damage can be mended.
    store.bytes = whole;
    EXPECT_TRUE((*pages)->fetch_all().ok());
  }
  store.bytes = whole;
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, whole.size() / 2}) {
    store.bytes = whole.substr(0, cut);
    EXPECT_FALSE(FramedManifestPages::open(options("cut")));
  }
  FramedPagesOptions impossible = options("cut");
  impossible.index_bytes = impossible.framed_bytes + 1;
  EXPECT_FALSE(FramedManifestPages::open(impossible));
}

}  // namespace
}  // namespace millrace
