#include "dataset/manifest_builder.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cache/unit.h"
#include "tests/dataset/manifest_tree.h"

namespace millrace {
namespace {

class ManifestBuilderTest : public ::testing::Test {
 protected:
  std::unique_ptr<ManifestBuilder> builder(EntryArrival arrival) {
    return ManifestBuilder::create({.path = path,
                                    .arrival = arrival,
                                    .report =
                                        [this](std::string_view at, std::string_view why) {
                                          reports.push_back(fmt::format("{}: {}", at, why));
                                          return Status();
                                        }})
        .value();
  }
  static NewEntry file(std::string at, std::uint32_t object, std::uint64_t offset,
                       std::uint64_t size) {
    return {.path = std::move(at),
            .size = size,
            .extents = {{.object = object,
                         .codec = ExtentCodec::kNone,
                         .offset = offset,
                         .stored_bytes = size,
                         .logical_bytes = size}}};
  }
  static NewObject object(std::uint64_t size) {
    return {.key = ObjectKey("k"), .identity = ObjectIdentity("i"), .size = size, .foreign = true};
  }

  ManifestFolder folder;
  std::string path = folder.file("m");
  std::vector<std::string> reports;
};

TEST_F(ManifestBuilderTest, AnEmptyVersionIsARoot) {
  for (const EntryArrival arrival : {EntryArrival::kAnyOrder, EntryArrival::kSorted}) {
    const auto summary = builder(arrival)->finish();
    ASSERT_TRUE(summary) << summary.error().to_string();
    EXPECT_EQ(summary->totals.entries(), 1);
    const auto manifest = Manifest::open(path).value();
    const ManifestEntry root = manifest->entry(Manifest::root()).value();
    EXPECT_EQ(root.kind(), EntryKind::kDirectory);
    EXPECT_EQ(root.mode(), 0755);
    EXPECT_EQ(manifest->children(root).value().count(), 0);
    EXPECT_EQ(manifest->find(0, "a").value(), std::nullopt);
  }
}

TEST_F(ManifestBuilderTest, MissingParentsAreMade) {
  const auto made = builder(EntryArrival::kAnyOrder);
  ASSERT_TRUE(made->add({.path = "a/b/c", .mode = 0600, .mtime_ns = 5}).ok());
  ASSERT_TRUE(made->finish());
  const auto manifest = Manifest::open(path).value();
  const ManifestEntry parent = manifest->entry(*manifest->resolve("a/b").value()).value();
  EXPECT_EQ(parent.kind(), EntryKind::kDirectory);
  EXPECT_EQ(parent.mode(), 0755);
  EXPECT_EQ(parent.mtime_ns(), 0);
  EXPECT_EQ(manifest->entry(*manifest->resolve("a/b/c").value()).value().mode(), 0600);
}

TEST_F(ManifestBuilderTest, WhatCannotBeIsReportedAndTheRestGoesOn) {
  const auto made = builder(EntryArrival::kAnyOrder);
  for (const char* const at : {"a", "a/b", "c", "c", "x//y", "e/..", "/f", "g/"})
    EXPECT_TRUE(made->add({.path = at, .mtime_ns = 1}).ok());
  const auto summary = made->finish();
  ASSERT_TRUE(summary) << summary.error().to_string();
  EXPECT_EQ(reports.size(), 6);
  EXPECT_EQ(summary->totals.files, 2);
  const auto manifest = Manifest::open(path).value();
  EXPECT_TRUE(manifest->resolve("a/b").value());
  EXPECT_FALSE(manifest->resolve("e").value());
}

TEST_F(ManifestBuilderTest, LimitsHold) {
  std::string deepest = std::string(255, 'd');
  while (deepest.size() + 2 <= 4095)
    deepest += deepest.size() + 256 <= 4095 ? "/" + std::string(255, 'd') : "/d";
  const auto made = builder(EntryArrival::kAnyOrder);
  ASSERT_TRUE(made->add({.path = deepest}).ok());
  std::string thin = "t";
  while (thin.size() + 2 <= 4095)
    thin += "/t";
  ASSERT_TRUE(made->add({.path = thin}).ok());
  ASSERT_TRUE(
      made->add(
              {.path = "l", .kind = EntryKind::kSymlink, .symlink_target = std::string(4095, 't')})
          .ok());
  ASSERT_TRUE(made->finish());
  const auto manifest = Manifest::open(path).value();
  EXPECT_EQ(manifest->path_of(*manifest->resolve(deepest).value()).value(), deepest);
  EXPECT_EQ(manifest->path_of(*manifest->resolve(thin).value()).value(), thin);
  EXPECT_EQ(manifest->find(0, std::string(256, 'd')).value(), std::nullopt);
  EXPECT_FALSE(ManifestBuilder::create({.path = path, .prefix = std::string(1025, 'p')}));
}

TEST_F(ManifestBuilderTest, MistakesAreRefused) {
  const ContentHash hash = ContentHash::of_content({});
  NewEntry own = file("f", kOwnObject, 0, 10);
  own.hash = hash;
  const NewEntry bad[] = {
      {.path = "f", .mode = 010000},
      {.path = "f", .size = 5},
      {.path = "f", .kind = EntryKind::kDirectory, .hash = hash},
      {.path = "f", .kind = EntryKind::kDirectory, .size = 1},
      {.path = "f", .kind = EntryKind::kSymlink},
      {.path = "f", .kind = EntryKind::kSymlink, .symlink_target = std::string(4096, 'x')},
      {.path = "f", .kind = EntryKind::kSymlink, .symlink_target = std::string("a\0b", 3)},
      own,
  };
  for (const NewEntry& entry : bad) {
    EXPECT_TRUE(builder(EntryArrival::kAnyOrder)->add(entry) == StatusCode::kInvalidArgument);
    EXPECT_TRUE(builder(EntryArrival::kSorted)->add(entry) == StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST_F(ManifestBuilderTest, ExtentsLieInObjectsThatCame) {
  const auto sorted = builder(EntryArrival::kSorted);
  EXPECT_TRUE(sorted->add(file("f", 0, 0, 10)) == StatusCode::kInvalidArgument);
  const auto beyond = builder(EntryArrival::kSorted);
  ASSERT_EQ(beyond->add_object(object(20)).value(), 0);
  EXPECT_TRUE(beyond->add(file("e", 0, 10, 10)).ok());
  EXPECT_TRUE(beyond->add(file("f", 0, 11, 10)) == StatusCode::kInvalidArgument);
  const auto wraps = builder(EntryArrival::kSorted);
  ASSERT_EQ(wraps->add_object(object(20)).value(), 0);
  EXPECT_TRUE(wraps->add(file("f", 0, UINT64_MAX, 10)) == StatusCode::kInvalidArgument);
}

TEST_F(ManifestBuilderTest, ObjectsAreChecked) {
  const auto made = builder(EntryArrival::kAnyOrder);
  const std::vector<std::uint32_t> two(2);
  NewObject wrong = object(kUnitBytes);
  wrong.checksums = two;
  EXPECT_FALSE(made->add_object(wrong));
  wrong.size = kUnitBytes + 1;
  EXPECT_TRUE(made->add_object(wrong));
  wrong.key = ObjectKey("");
  EXPECT_FALSE(made->add_object(wrong));
  EXPECT_FALSE(made->add_object(object(UINT64_MAX)));
}

TEST_F(ManifestBuilderTest, OtherStoresAreFewAndTheirObjectsForeign) {
  const auto made = builder(EntryArrival::kAnyOrder);
  NewObject far = object(9);
  far.foreign = false;
  far.store = "s3://far";
  EXPECT_FALSE(made->add_object(far)) << "it could be deleted";
  far.foreign = true;
  std::vector<std::uint32_t> numbers;
  for (std::size_t n = 0; n < kManifestStoresMax; ++n) {
    far.store = "s3://" + std::string(kManifestStoreBytesMax - 7, 'x') + std::to_string(n + 10);
    const auto number = made->add_object(far);
    ASSERT_TRUE(number) << number.error().to_string();
    numbers.push_back(*number);
  }
  EXPECT_TRUE(made->add_object(far)) << "known already";
  far.store = "s3://one-too-many";
  EXPECT_EQ(made->add_object(far).error().code(), StatusCode::kResourceExhausted);
  far.store.resize(kManifestStoreBytesMax + 1, 'x');
  EXPECT_EQ(made->add_object(far).error().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(made->finish());
  const auto manifest = Manifest::open(path).value();
  for (const std::uint32_t number : numbers) {
    EXPECT_EQ(manifest->object(number).value().store.size(), kManifestStoreBytesMax);
    EXPECT_TRUE(manifest->object(number).value().store.ends_with(std::to_string(number + 10)));
  }
}

TEST_F(ManifestBuilderTest, SortedEntriesMustBeSo) {
  const auto add_all = [this](std::vector<NewEntry> entries) {
    const auto made = builder(EntryArrival::kSorted);
    Status status;
    for (const NewEntry& entry : entries) {
      if (status.ok()) status = made->add(entry);
    }
    return status.code();
  };
  const NewEntry directory{.path = "d", .kind = EntryKind::kDirectory};
  EXPECT_EQ(add_all({{.path = "b"}, {.path = "a"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add_all({{.path = "b"}, {.path = "b"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add_all({{.path = "d/a"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add_all({{.path = "d"}, {.path = "d/a"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add_all({{.path = ""}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add_all({directory, {.path = "d/a"}, {.path = "e"}}), StatusCode::kInvalidArgument);
  EXPECT_EQ(add_all({directory, {.path = "e"}, {.path = "d/a"}}), StatusCode::kOk);
  EXPECT_TRUE(folder.names().empty());
}

TEST_F(ManifestBuilderTest, SaysWhenItCannotWrite) {
  const auto made = ManifestBuilder::create({.path = "/no/such/directory/m"});
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error() == StatusCode::kNotFound);
}

// The promise of the issue, without names: at most 100 bytes a file, whose bytes are packed with
// checksums, or registered with usual ETags.
TEST_F(ManifestBuilderTest, AFileTakesAtMostAHundredBytesBesideItsName) {
  constexpr std::uint64_t kFiles = 100'000;
  constexpr std::uint64_t kFileBytes = 110 * kKiB;
  constexpr std::uint64_t kFilesInPack = 64 * kMiB / kFileBytes;
  for (const bool packed : {true, false}) {
    const auto made = builder(EntryArrival::kAnyOrder);
    std::uint64_t name_bytes = 0;
    for (std::uint64_t i = 0; i < kFiles; ++i) {
      const std::uint64_t in_pack = i % kFilesInPack;
      if (packed && in_pack == 0) {
        NewObject pack = object(kFilesInPack * kFileBytes);
        pack.key = ObjectKey(fmt::format("packs/00000000/{:08}.tar", i));
        const std::vector<std::uint32_t> checksums(unit_count(pack.size));
        pack.checksums = checksums;
        ASSERT_TRUE(made->add_object(pack));
      }
      NewEntry entry = packed ? file("", static_cast<std::uint32_t>(i / kFilesInPack),
                                     in_pack * kFileBytes, kFileBytes)
                              : file("", kOwnObject, 0, kFileBytes);
      entry.path = fmt::format("n{:08}/n{:08}_{}.JPEG", i / 1300, i / 1300, i);
      entry.hash =
          packed
              ? ContentHash::of_content({})
              : ContentHash::of_identity(ObjectIdentity("\"0123456789abcdef0123456789abcdef-2\""));
      name_bytes += entry_base(entry.path).size();
      ASSERT_TRUE(made->add(entry).ok());
    }
    const auto summary = made->finish();
    ASSERT_TRUE(summary) << summary.error().to_string();
    // Sections end on whole pages, which counts for little in a manifest of this size.
    EXPECT_LE((summary->file_bytes - name_bytes) / kFiles, 100);
    if (packed) {
      EXPECT_GT((summary->file_bytes - name_bytes) / kFiles, 84);
    }
  }
}

}  // namespace
}  // namespace millrace
