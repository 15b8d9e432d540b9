#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_store.h"
#include "bench/run_figures.h"

namespace millrace::bench {

// Objects of one size that are put to measure what a store takes, whoever asks.
struct RawUpload {
  std::uint64_t object_bytes = 0;
  std::size_t objects = 0;
  std::size_t in_flight = 8;

  std::uint64_t bytes() const { return object_bytes * objects; }
};

// By `curl -Z -T`, one file again and again, shared by `processes`. Payloads are not signed and
// have no checksum, so curl only moves bytes. Throws std::runtime_error when an upload fails.
RunFigures put_by_curl(const BenchTarget& target, const RawUpload& upload, std::size_t processes,
                       const std::string& scratch);

// By our own client, from memory: what it costs to store bytes that need not be read and packed.
RunFigures put_by_client(const BenchTarget& target, const RawUpload& upload, std::size_t loops);

// `aws s3 cp` to the target with its own defaults, whatever is configured for the user who runs
// this; what to copy from and to is to be added.
std::vector<std::string> aws_copy_command(const BenchTarget& target);

// `aws s3 cp --recursive` of a directory; the amount is its `files`.
RunFigures copy_by_aws(const BenchTarget& target, const std::string& directory, std::uint64_t files,
                       const std::string& scratch);

// rclone with its own defaults, which knows the target as "store:"; what to do is to be added.
std::vector<std::string> rclone_command(const BenchTarget& target);

// `rclone copy` of a directory with as many transfers at a time as its documentation advises for
// small files, and without the requests that only compare; the amount is its `files`.
RunFigures copy_by_rclone(const BenchTarget& target, const std::string& directory,
                          std::uint64_t files, const std::string& scratch);

}  // namespace millrace::bench
