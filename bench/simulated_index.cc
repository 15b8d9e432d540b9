#include "bench/simulated_index.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_store.h"
#include "bench/cache_bench_setup.h"
#include "cache/object_map_format.h"
#include "cache/segment_format.h"
#include "cache/segment_store.h"
#include "platform/file.h"

namespace millrace::bench {
namespace {

// Room for a key and an identity of usual lengths.
constexpr std::uint32_t kRecordHeaderBytes = 256;

// Digests are hashes, so random ones are as good.
ObjectDigest random_digest(std::mt19937_64& random) {
  ObjectDigest digest;
  std::ranges::generate(digest.bytes, [&] { return static_cast<std::byte>(random()); });
  return digest;
}

void append(std::vector<std::byte>& bytes, ByteView more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

void write_new(const std::string& path, ByteView bytes) {
  require(require(File::open(path, O_WRONLY | O_CREAT | O_EXCL)).write_at(0, bytes));
}

void make_hole(const std::string& path, std::uint64_t bytes) {
  require(require(File::open(path, O_WRONLY | O_CREAT | O_EXCL)).truncate(bytes));
}

void add_index(SimulatedIndex& index, std::string path, ByteView bytes) {
  write_new(path, bytes);
  index.files.push_back(std::move(path));
  index.bytes += bytes.size();
}

}  // namespace

SimulatedIndex simulate_small_objects(const std::string& directory, std::uint64_t object_bytes,
                                      std::uint64_t total_bytes) {
  SegmentEntry entry{.digest = {},
                     .segment = 0,
                     .page = 0,
                     .header_bytes = kRecordHeaderBytes,
                     .stored_bytes = static_cast<std::uint32_t>(object_bytes),
                     .object_bytes = static_cast<std::uint32_t>(object_bytes)};
  const std::uint64_t per_segment = SegmentOptions().segment_bytes_max / entry.pages_bytes();
  const std::uint64_t objects = total_bytes / object_bytes;
  std::mt19937_64 random(1);
  SimulatedIndex index;
  while (index.objects < objects) {
    ++entry.segment;
    entry.page = 0;
    const SegmentBlock header = encode_segment_index_header(entry.segment);
    std::vector<std::byte> bytes(header.begin(), header.end());
    const std::uint64_t count = std::min(per_segment, objects - index.objects);
    for (std::uint64_t slot = 0; slot < count; ++slot) {
      entry.digest = random_digest(random);
      append(bytes, encode_segment_entry(entry));
      entry.page += entry.pages();
    }
    index.objects += count;
    const std::string segments = directory + "/segments/";
    make_hole(segments + segment_data_name(entry.segment), entry.offset());
    add_index(index, segments + segment_index_name(entry.segment), bytes);
  }
  return index;
}

SimulatedIndex simulate_large_objects(const std::string& directory, std::uint64_t object_bytes,
                                      std::uint64_t total_bytes) {
  SimulatedIndex index;
  for (; index.objects < total_bytes / object_bytes; ++index.objects) {
    const ObjectVersion version = CacheBenchSetup::object(
        fmt::format("simulated/{:08}", index.objects), "simulated", object_bytes);
    const std::string digest = version.digest().to_text();
    const std::string stem =
        fmt::format("{}/objects/{}/{}", directory, digest.substr(0, 2), digest);
    const std::string header = require(encode_map_header(version));
    const ByteView header_bytes = as_bytes(header);
    std::vector<std::byte> map(header_bytes.begin(), header_bytes.end());
    for (std::uint32_t unit = 0; unit < unit_count(object_bytes); ++unit)
      append(map, encode_map_record(version.digest(), unit, unit));
    std::filesystem::create_directories(std::filesystem::path(stem).parent_path());
    make_hole(stem + ".data", object_bytes);
    add_index(index, stem + ".map", map);
  }
  return index;
}

void read_plainly(const SimulatedIndex& index) {
  std::vector<std::byte> piece(256 * kKiB);
  std::uint64_t bytes = 0;
  for (const std::string& path : index.files) {
    const File file = require(File::open(path, O_RDONLY));
    for (std::uint64_t offset = 0;; offset += piece.size()) {
      const std::size_t count = require(file.read_at(offset, piece));
      bytes += count;
      if (count < piece.size()) break;
    }
  }
  if (bytes != index.bytes) give_up({StatusCode::kInternal, "the indexes have changed"});
}

}  // namespace millrace::bench
