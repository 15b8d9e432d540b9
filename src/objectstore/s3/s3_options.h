#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace millrace::s3 {

// How the bucket is named in a request: as part of the host, or as the first part of the path.
enum class Addressing : std::uint8_t {
  // By host on AWS, by path on a custom endpoint, whose name server seldom knows bucket hosts.
  kAuto,
  kPath,
  kVirtualHost,
};

struct S3Options {
  std::string bucket;
  std::string region = "us-east-1";
  // "https://host[:port]"; empty: AWS's own for the region.
  std::string endpoint;
  Addressing addressing = Addressing::kAuto;
  // Requests carry no signature: for public buckets.
  bool anonymous = false;
  // Send and check CRC32C. Off for the few stores that refuse the headers.
  bool checksums = true;
  // File of certificates to trust; empty: the HTTP client's default.
  std::string ca_bundle;

  // All parts of an upload but the last have this size (some stores insist on equal parts), more
  // only when the caller announced an object that would need over 10,000 of them.
  std::uint64_t part_bytes = 16 * kMiB;
  // Of one upload.
  std::size_t parts_in_flight_max = 4;
  // Of all uploads to the store: each part on its way has a thread.
  std::size_t part_threads = 16;
  // The most that CopyObject takes at once; larger objects are copied by parts of copy_part_bytes.
  std::uint64_t copy_bytes_max = 5 * kGiB;
  std::uint64_t copy_part_bytes = kGiB;
};

inline constexpr int kPartsMax = 10'000;

}  // namespace millrace::s3
