#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_store.h"
#include "objectstore/object_store.h"

namespace millrace::bench {

// Objects of equal size with content that tells every piece from every other.
struct BenchObjects {
  std::vector<std::string> keys;
  std::uint64_t object_bytes = 0;
  // Content is cut into pieces of this size; the CRC32C of piece p of object o is
  // piece_crcs[o * pieces_per_object() + p].
  std::uint64_t piece_bytes = 0;
  std::vector<std::uint32_t> piece_crcs;

  std::uint64_t pieces_per_object() const { return object_bytes / piece_bytes; }
};

// Writes the objects as files named by their keys into the directory.
BenchObjects write_files(const std::string& directory, std::size_t count,
                         std::uint64_t object_bytes, std::uint64_t piece_bytes);

// Puts the files into Ceph through curl, in another process, so that ours stays as small as it is.
void upload_large(const BenchTarget& target, const BenchObjects& objects,
                  const std::string& directory);

// Puts small objects with the checksum that our own put leaves, so that our reads verify it.
void upload_small(const BenchTarget& target, const BenchObjects& objects,
                  const std::string& directory);

}  // namespace millrace::bench
