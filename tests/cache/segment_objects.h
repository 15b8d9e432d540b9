#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "cache/segment_store.h"
#include "cache/unit.h"
#include "platform/disk.h"

namespace millrace {

// Small objects of known content for the tests of segments.

inline constexpr const char* kSegmentCache = "/cache";

inline std::string segment_file(std::uint32_t segment, std::string_view extension) {
  return std::string(kSegmentCache) + "/segments/0000000" + std::to_string(segment) + "." +
         std::string(extension);
}

// Object number `n`: the same version whenever it is asked for.
inline ObjectVersion segment_object(std::uint64_t n, std::uint64_t size) {
  return {StoreId("memory:segments"), ObjectKey("key-" + std::to_string(n)),
          ObjectIdentity("etag-" + std::to_string(n)), size};
}

// What that version holds, for ever.
inline std::string segment_content(const ObjectVersion& version) {
  std::mt19937_64 random(std::hash<std::string>{}(version.key().value()) + version.size());
  std::string content(version.size(), '\0');
  for (std::size_t at = 0; at < content.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(content.data() + at, &word, std::min(sizeof word, content.size() - at));
  }
  return content;
}

inline UnitChecksums segment_checksums(std::string_view stored) {
  UnitChecksums checksums;
  for (std::size_t at = 0; at < stored.size(); at += kUnitBytes) {
    checksums.push_back(crc32c(as_bytes(stored.substr(at, kUnitBytes))));
  }
  return checksums;
}

inline Status put_segment_object(SegmentStore& store, const ObjectVersion& version) {
  const std::string content = segment_content(version);
  return store.put(version, as_bytes(content), segment_checksums(content));
}

// Reads as the cache does: all units, held against their checksums, then looks whether the record
// is still there.
inline Result<std::string> read_segment_object(SegmentStore& store, const ObjectVersion& version) {
  MR_ASSIGN_OR_RETURN(const SmallObject object, store.load(version));
  std::string stored(object.stored_bytes, '?');
  MR_ASSIGN_OR_RETURN(
      const std::size_t count,
      object.file->read_at(object.data_offset, std::as_writable_bytes(std::span(stored))));
  stored.resize(count);
  const UnitChecksums found = segment_checksums(stored);
  const bool sound = std::ranges::equal(found, object.unit_checksums());
  if (!store.still_there(object)) return failure(StatusCode::kNotFound, "removed meanwhile");
  if (!sound) return failure(StatusCode::kCorruption, "a unit fails its checksum");
  return stored.substr(0, version.size());
}

// A store and the damage that it reported.
struct SegmentStoreUnderTest {
  std::unique_ptr<SegmentStore> store;
  std::shared_ptr<std::vector<SegmentDamage>> damage;

  SegmentStore* operator->() const { return store.get(); }
  SegmentStore& operator*() const { return *store; }
};

inline Result<SegmentStoreUnderTest> try_open_segments(Disk& disk, SegmentOptions options = {}) {
  auto damage = std::make_shared<std::vector<SegmentDamage>>();
  MR_ASSIGN_OR_RETURN(
      auto store, SegmentStore::open(disk, kSegmentCache, options,
                                     [damage](const SegmentDamage& d) { damage->push_back(d); }));
  return SegmentStoreUnderTest{std::move(store), std::move(damage)};
}

inline SegmentStoreUnderTest open_segments(Disk& disk, SegmentOptions options = {}) {
  auto opened = try_open_segments(disk, options);
  EXPECT_TRUE(opened) << opened.error().to_string();
  return std::move(opened).value();
}

// Three small objects in one segment.
inline std::vector<ObjectVersion> three_segment_objects() {
  return {segment_object(0, 20), segment_object(1, 5000), segment_object(2, 0)};
}

inline void put_three_segment_objects(Disk& disk) {
  const auto segments = open_segments(disk);
  for (const ObjectVersion& version : three_segment_objects()) {
    ASSERT_TRUE(put_segment_object(*segments, version).ok());
  }
}

// All that is in a file.
inline std::string segment_file_content(Disk& disk, const std::string& path) {
  const auto file = disk.open(path, OpenMode::kRead);
  if (!file) return "absent";
  std::string content((*file)->size().value(), '\0');
  EXPECT_EQ((*file)->read_at(0, std::as_writable_bytes(std::span(content))).value(),
            content.size());
  return content;
}

inline void write_segment_file(Disk& disk, const std::string& path, std::uint64_t offset,
                               std::string_view bytes) {
  const auto file = disk.open(path, OpenMode::kCreate);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->write_at(offset, as_bytes(bytes)).ok());
}

inline void flip_segment_bit(Disk& disk, const std::string& path, std::uint64_t bit) {
  const auto file = disk.open(path, OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  std::byte byte{};
  ASSERT_EQ((*file)->read_at(bit / 8, {&byte, 1}).value(), 1U);
  byte ^= std::byte{1} << static_cast<int>(bit % 8);
  ASSERT_TRUE((*file)->write_at(bit / 8, {&byte, 1}).ok());
}

}  // namespace millrace
