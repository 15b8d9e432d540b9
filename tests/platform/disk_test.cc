// The contract of Disk, which every implementation passes.

#include "platform/disk.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/buffer.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "platform/path.h"
#include "platform/posix_disk.h"

namespace millrace {
namespace {

struct PosixSubject {
  PosixSubject() {
    std::string pattern = ::testing::TempDir() + "millrace-disk-XXXXXX";
    root = ::mkdtemp(pattern.data());
  }
  ~PosixSubject() { std::filesystem::remove_all(root); }
  std::string root;
  PosixDisk disk;
};

struct MemorySubject {
  std::string root = "/";
  MemoryDisk disk;
};

struct FaultySubject {
  std::string root = "/";
  MemoryDisk memory;
  FaultyDisk disk{memory};
};

template <class Subject>
class DiskContract : public ::testing::Test {
 protected:
  std::string path(std::string_view name) const { return join_path(subject_.root, name); }
  Disk& disk() { return subject_.disk; }

  std::unique_ptr<DiskFile> open(std::string_view name, OpenMode mode) {
    auto file = disk().open(path(name), mode);
    EXPECT_TRUE(file.has_value()) << file.error().to_string();
    return file ? std::move(*file) : nullptr;
  }
  void write(std::string_view name, std::string_view text) {
    const auto file = open(name, OpenMode::kCreate);
    ASSERT_TRUE(file->truncate(0).ok());
    ASSERT_TRUE(file->write_at(0, as_bytes(text)).ok());
  }
  std::string read(DiskFile& file, std::uint64_t offset, std::size_t length) {
    std::string text(length, '?');
    const auto count = file.read_at(offset, std::as_writable_bytes(std::span(text)));
    EXPECT_TRUE(count.has_value());
    text.resize(count.value_or(0));
    return text;
  }
  std::string read(std::string_view name) { return read(*open(name, OpenMode::kRead), 0, 1 << 20); }
  std::vector<std::string> names(std::string_view name) {
    std::vector<std::string> result;
    const auto entries = disk().list(path(name));
    EXPECT_TRUE(entries.has_value());
    for (const auto& entry : *entries)
      result.push_back(entry.name);
    return result;
  }

  Subject subject_;
};

using Subjects = ::testing::Types<PosixSubject, MemorySubject, FaultySubject>;
TYPED_TEST_SUITE(DiskContract, Subjects);

TYPED_TEST(DiskContract, ReadsBackWhatWasWritten) {
  const auto file = this->open("a", OpenMode::kCreateNew);
  ASSERT_TRUE(file->write_at(3, as_bytes("hello")).ok());
  EXPECT_EQ(file->size().value(), 8u);
  EXPECT_EQ(this->read(*file, 0, 100), std::string("\0\0\0hello", 8));
  EXPECT_EQ(this->read(*file, 4, 2), "el");
  EXPECT_EQ(this->read(*file, 8, 5), "");
  EXPECT_EQ(this->read(*file, 1000, 5), "");
  EXPECT_TRUE(file->sync().ok());
  EXPECT_EQ(file->path(), this->path("a"));
}

// Aligned or not, over what is in the page cache and over what is not there yet.
TYPED_TEST(DiskContract, WritesPastTheCacheAreReadBackLikeOthers) {
  constexpr std::size_t kPage = 4096;
  const auto file = this->open("a", OpenMode::kCreateNew);
  ASSERT_TRUE(file->truncate(64 * kPage).ok());
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(4 * kPage, 'o'))).ok());
  std::string expected = std::string(4 * kPage, 'o') + std::string(60 * kPage, '\0');
  EXPECT_EQ(this->read(*file, 0, expected.size()), expected);
  struct alignas(kPage) Pages {
    std::array<std::byte, 8 * kPage> bytes;
  };
  const auto pages = std::make_unique<Pages>();
  char mark = 'a';
  for (const std::size_t offset : {2 * kPage, 10 * kPage, 20 * kPage + 1}) {
    for (const std::size_t skipped : {std::size_t{0}, std::size_t{3}}) {
      for (const std::size_t length : {std::size_t{1}, kPage, 3 * kPage, 3 * kPage + 17}) {
        pages->bytes.fill(static_cast<std::byte>(mark));
        ASSERT_TRUE(
            file->write_past_cache(offset, ByteView(pages->bytes).subspan(skipped, length)).ok());
        expected.replace(offset, length, length, mark++);
        ASSERT_EQ(this->read(*file, 0, expected.size()), expected);
      }
    }
  }
  EXPECT_EQ(file->size().value(), expected.size());
}

TYPED_TEST(DiskContract, ReadNowFillsAllOrSaysFalse) {
  const auto file = this->open("a", OpenMode::kCreateNew);
  ASSERT_TRUE(file->write_at(0, as_bytes("hello")).ok());
  std::string text(4, '?');
  const auto into = std::as_writable_bytes(std::span(text));
  // Whether it is in memory is the system's affair; what it says to have read is right.
  if (file->read_now(1, into).value()) {
    EXPECT_EQ(text, "ello");
  }
  EXPECT_FALSE(file->read_now(2, into).value());
  EXPECT_FALSE(file->read_now(5, into).value());
  EXPECT_FALSE(file->read_now(UINT64_MAX, into).value());
}

TYPED_TEST(DiskContract, APunchedRangeReadsAsZerosAndTakesNoSpace) {
  constexpr std::uint64_t kBytes = 1 << 20;
  const auto file = this->open("a", OpenMode::kCreateNew);
  ASSERT_TRUE(file->write_at(0, as_bytes(std::string(kBytes, 'x'))).ok());
  ASSERT_TRUE(file->sync().ok());
  const auto allocated = [&] { return this->disk().stat(this->path("a")).value().allocated_bytes; };
  const std::uint64_t before = allocated();
  EXPECT_GE(before, kBytes);
  const Status status = file->punch(kBytes / 4 + 1, kBytes / 2);
  if (status == StatusCode::kUnsupported) GTEST_SKIP() << status.to_string();
  ASSERT_TRUE(status.ok()) << status.to_string();
  // The blocks at both ends of the range are also others'; none is larger than 64 KiB.
  EXPECT_LE(allocated(), before - kBytes / 2 + 2 * 64 * kKiB);
  EXPECT_EQ(this->read(*file, 0, 2 * kBytes), std::string(kBytes / 4 + 1, 'x') +
                                                  std::string(kBytes / 2, '\0') +
                                                  std::string(kBytes / 4 - 1, 'x'));
  // Beyond the end there is nothing to free, and an empty range is fine.
  EXPECT_TRUE(file->punch(kBytes - 1, kBytes).ok());
  EXPECT_TRUE(file->punch(2 * kBytes, kBytes).ok());
  EXPECT_TRUE(file->punch(0, 0).ok());
  EXPECT_EQ(file->size().value(), kBytes);
  EXPECT_EQ(this->read(*file, kBytes - 2, 2), std::string("x\0", 2));
  EXPECT_EQ(this->read(*file, 0, 1), "x");
  ASSERT_TRUE(file->write_at(kBytes / 2, as_bytes("again")).ok());
  EXPECT_EQ(this->read(*file, kBytes / 2 - 1, 7), std::string("\0again\0", 7));
  EXPECT_FALSE(this->open("a", OpenMode::kRead)->punch(0, 1).ok());
  EXPECT_EQ(this->read(*file, 0, 1), "x");
}

TYPED_TEST(DiskContract, HolesTakeNoSpace) {
  const auto file = this->open("a", OpenMode::kCreateNew);
  ASSERT_TRUE(file->truncate(8 << 20).ok());
  ASSERT_TRUE(file->write_at(16 << 20, as_bytes("x")).ok());
  ASSERT_TRUE(file->sync().ok());
  EXPECT_LT(this->disk().stat(this->path("a")).value().allocated_bytes, 1u << 20);
}

TYPED_TEST(DiskContract, ALockHasOneHolder) {
  auto lock = this->disk().lock(this->path("lock"), "millrace serve, process 1 on a");
  ASSERT_TRUE(lock.has_value()) << lock.error().to_string();
  EXPECT_EQ(this->read("lock"), "millrace serve, process 1 on a\n");
  const Status status = this->disk().lock(this->path("lock"), "second").error();
  EXPECT_EQ(status.code(), StatusCode::kConflict);
  EXPECT_EQ(status.message(), this->path("lock") + " is held by millrace serve, process 1 on a");
  // The loser leaves the holder's line alone, and other files have their own locks.
  EXPECT_EQ(this->read("lock"), "millrace serve, process 1 on a\n");
  EXPECT_TRUE(this->disk().lock(this->path("other"), "second").has_value());

  lock->reset();
  EXPECT_EQ(this->read("lock"), "");
  const auto next = this->disk().lock(this->path("lock"), "next");
  ASSERT_TRUE(next.has_value()) << next.error().to_string();
  EXPECT_EQ(this->read("lock"), "next\n");
}

TYPED_TEST(DiskContract, ALockTellsOnlyTheFirstLineFoundThere) {
  const auto lock = this->disk().lock(this->path("lock"), "first");
  const auto conflict = [&] {
    return this->disk().lock(this->path("lock"), "second").error().message();
  };
  this->write("lock", "");
  EXPECT_EQ(conflict(), this->path("lock") + " is held by another process");
  this->write("lock", "one\x1b[2J\ntwo");
  EXPECT_EQ(conflict(), this->path("lock") + " is held by one");
  this->write("lock", std::string(100'000, 'x'));
  EXPECT_EQ(conflict(), this->path("lock") + " is held by " + std::string(kLockTextBytesMax, 'x'));
}

TYPED_TEST(DiskContract, ALockNeedsAFile) {
  EXPECT_EQ(this->disk().lock(this->path("no/lock"), "x").error().code(), StatusCode::kNotFound);
  ASSERT_TRUE(this->disk().make_directories(this->path("d")).ok());
  EXPECT_EQ(this->disk().lock(this->path("d"), "x").error().code(), StatusCode::kIoError);
}

TYPED_TEST(DiskContract, OneOfManyThreadsGetsTheLock) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Result<std::unique_ptr<DiskLock>>> locks(8);
    std::vector<std::jthread> threads;
    for (auto& lock : locks) {
      threads.emplace_back([&] { lock = this->disk().lock(this->path("lock"), "one of us"); });
    }
    threads.clear();
    EXPECT_EQ(std::ranges::count_if(locks, [](const auto& lock) { return lock.has_value(); }), 1);
  }
}

TYPED_TEST(DiskContract, TruncatesBothWays) {
  const auto file = this->open("a", OpenMode::kCreateNew);
  ASSERT_TRUE(file->write_at(0, as_bytes("hello")).ok());
  ASSERT_TRUE(file->truncate(2).ok());
  ASSERT_TRUE(file->truncate(4).ok());
  EXPECT_EQ(this->read(*file, 0, 10), std::string("he\0\0", 4));
}

TYPED_TEST(DiskContract, OpenModesMeanWhatTheySay) {
  EXPECT_EQ(this->disk().open(this->path("a"), OpenMode::kRead).error().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(this->disk().open(this->path("a"), OpenMode::kReadWrite).error().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(this->disk().open(this->path("no/a"), OpenMode::kCreate).error().code(),
            StatusCode::kNotFound);
  this->write("a", "1");
  EXPECT_EQ(this->disk().open(this->path("a"), OpenMode::kCreateNew).error().code(),
            StatusCode::kConflict);
  EXPECT_EQ(this->read("a"), "1");
  const auto read_only = this->open("a", OpenMode::kRead);
  EXPECT_FALSE(read_only->write_at(0, as_bytes("2")).ok());
  const auto again = this->open("a", OpenMode::kCreate);
  EXPECT_EQ(again->size().value(), 1u);
}

TYPED_TEST(DiskContract, FailuresNameThePath) {
  const Status status = this->disk().open(this->path("gone"), OpenMode::kRead).error();
  EXPECT_THAT(status.message(), ::testing::HasSubstr(this->path("gone")));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("No such file"));
}

TYPED_TEST(DiskContract, DirectoriesAreNotFiles) {
  ASSERT_TRUE(this->disk().make_directories(this->path("d")).ok());
  EXPECT_EQ(this->disk().open(this->path("d"), OpenMode::kRead).error().code(),
            StatusCode::kIoError);
  this->write("f", "");
  EXPECT_EQ(this->disk().list(this->path("f")).error().code(), StatusCode::kIoError);
  EXPECT_EQ(this->disk().make_directories(this->path("f")).code(), StatusCode::kIoError);
  EXPECT_EQ(this->disk().make_directories(this->path("f/d")).code(), StatusCode::kIoError);
}

TYPED_TEST(DiskContract, RenameReplacesOrRefuses) {
  this->write("a", "new");
  this->write("b", "old");
  EXPECT_EQ(this->disk().rename(this->path("a"), this->path("b"), Replace::kRefused).code(),
            StatusCode::kConflict);
  EXPECT_EQ(this->read("b"), "old");
  ASSERT_TRUE(this->disk().rename(this->path("a"), this->path("b"), Replace::kAllowed).ok());
  EXPECT_EQ(this->read("b"), "new");
  ASSERT_TRUE(this->disk().rename(this->path("b"), this->path("c"), Replace::kRefused).ok());
  EXPECT_EQ(this->names(""), std::vector<std::string>{"c"});
  EXPECT_EQ(this->disk().rename(this->path("x"), this->path("y"), Replace::kAllowed).code(),
            StatusCode::kNotFound);
}

TYPED_TEST(DiskContract, RemovesFilesAndEmptyDirectories) {
  ASSERT_TRUE(this->disk().make_directories(this->path("d/e")).ok());
  EXPECT_EQ(this->disk().remove(this->path("d")).code(), StatusCode::kConflict);
  EXPECT_TRUE(this->disk().remove(this->path("d/e")).ok());
  EXPECT_TRUE(this->disk().remove(this->path("d")).ok());
  EXPECT_EQ(this->disk().remove(this->path("d")).code(), StatusCode::kNotFound);
}

TYPED_TEST(DiskContract, AnOpenFileOutlivesItsName) {
  const auto file = this->open("a", OpenMode::kCreate);
  ASSERT_TRUE(file->write_at(0, as_bytes("kept")).ok());
  ASSERT_TRUE(this->disk().remove(this->path("a")).ok());
  EXPECT_EQ(this->read(*file, 0, 10), "kept");
  this->write("a", "other");
  EXPECT_EQ(this->read(*file, 0, 10), "kept");
}

TYPED_TEST(DiskContract, ListsInOrderWithKinds) {
  for (const char* name : {"b", "a0", "a"})
    this->write(name, "");
  ASSERT_TRUE(this->disk().make_directories(this->path("a-")).ok());
  EXPECT_EQ(this->names(""), (std::vector<std::string>{"a", "a-", "a0", "b"}));
  EXPECT_EQ(this->disk().list(this->path("")).value()[1].kind, FileKind::kDirectory);
  EXPECT_EQ(this->disk().list(this->path("no")).error().code(), StatusCode::kNotFound);
}

TYPED_TEST(DiskContract, MakeDirectoriesIsIdempotent) {
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(this->disk().make_directories(this->path("x/y/z")).ok());
  EXPECT_TRUE(this->disk().sync_directory(this->path("x/y")).ok());
  EXPECT_EQ(this->disk().sync_directory(this->path("no")).code(), StatusCode::kNotFound);
}

TYPED_TEST(DiskContract, MakesOneDirectoryAtATime) {
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(this->disk().make_directory(this->path("x")).ok());
  EXPECT_EQ(this->disk().stat(this->path("x")).value().kind, FileKind::kDirectory);
  EXPECT_EQ(this->disk().make_directory(this->path("no/y")).code(), StatusCode::kNotFound);
  this->write("f", "");
  EXPECT_EQ(this->disk().make_directory(this->path("f")).code(), StatusCode::kIoError);
  EXPECT_EQ(this->disk().make_directory(this->path("f/y")).code(), StatusCode::kIoError);
}

TYPED_TEST(DiskContract, StatAndSpace) {
  this->write("a", "12345");
  const FileFacts facts = this->disk().stat(this->path("a")).value();
  EXPECT_EQ(facts.kind, FileKind::kFile);
  EXPECT_EQ(facts.size, 5u);
  EXPECT_GT(facts.modified.time_since_epoch().count(), 0);
  EXPECT_EQ(this->disk().stat(this->path("")).value().kind, FileKind::kDirectory);
  EXPECT_EQ(this->disk().stat(this->path("no")).error().code(), StatusCode::kNotFound);
  const DiskSpace space = this->disk().space(this->path("")).value();
  EXPECT_GT(space.free_bytes, 0u);
  EXPECT_LE(space.free_bytes, space.total_bytes);
  EXPECT_EQ(this->disk().space(this->path("no")).error().code(), StatusCode::kNotFound);
}

TYPED_TEST(DiskContract, ThreadsMayShareAFile) {
  const auto file = this->open("a", OpenMode::kCreate);
  constexpr std::size_t kBlock = 4096;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string block(kBlock, static_cast<char>('a' + t));
      for (int i = t; i < 64; i += 4) {
        ASSERT_TRUE(file->write_at(i * kBlock, as_bytes(block)).ok());
        ASSERT_EQ(this->read(*file, i * kBlock, kBlock), block);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(file->size().value(), 64 * kBlock);
}

}  // namespace
}  // namespace millrace
