#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/run_figures.h"

namespace millrace::bench {

// An NFS server under load. Its processor time is what runs are charged with, not the client's.
struct NfsTarget {
  std::uint16_t port = 0;
  pid_t pid = -1;
  std::string directory;  // "/data": where the files of the benchmark are.
};

// Reads a file once, in order.
void nfs_read_through(const NfsTarget& target, const std::string& file);

// READs of `bytes` at random places of a file that is as large as a multiple of them, `depth` at a
// time over one connection. The amount is bytes, or requests when they are small.
RunFigures nfs_read_load(const NfsTarget& target, const std::string& file, std::uint64_t file_bytes,
                         std::uint32_t bytes, std::uint32_t depth, double seconds);

// Opens, reads and closes the files "0" to "count - 1" of a directory, `depth` at a time, without
// delegations. The amount is files.
RunFigures nfs_small_files_load(const NfsTarget& target, const std::string& directory,
                                std::uint64_t count, std::uint32_t depth, double seconds);

// Lists a directory once, with the attributes that Linux asks for. The amount is entries.
RunFigures nfs_list_load(const NfsTarget& target, const std::string& directory);

// What a server does that only sends: for each request 1 MiB of a file by sendfile, over one
// connection, `depth` at a time. The amount is bytes.
RunFigures sendfile_load(const std::string& file, std::uint64_t file_bytes, std::uint32_t depth,
                         double seconds);

}  // namespace millrace::bench
