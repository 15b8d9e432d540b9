#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// Proof of what was delivered: a digest of (epoch, position, source, sample) of every sample.
//
// It is a sum of hashes, modulo 2^128. So it does not depend on the order in which ranks deliver,
// nor on where steps end, and the sum over all ranks is that of the job: two jobs that delivered
// the same samples at the same positions have the same digest, whatever their topologies, and a
// sample that is missing, doubled or misplaced changes it. It tells of mistakes, not of attacks:
// who wants to can construct a collision.
//
// A plain value. Needs one thread at a time.
class DeliveryDigest {
 public:
  void add(std::uint64_t epoch, std::uint64_t position, std::uint64_t source, std::uint64_t sample);
  // Adds what another rank, or an earlier part of the job, has delivered.
  void add(const DeliveryDigest& other);

  std::uint64_t samples() const { return samples_; }
  // 32 hexadecimal digits, a colon, and the number of samples.
  std::string text() const;
  // kInvalidArgument for anything else.
  static Result<DeliveryDigest> parse(std::string_view text);

  bool operator==(const DeliveryDigest&) const = default;

 private:
  void add(std::uint64_t high, std::uint64_t low);

  std::uint64_t high_ = 0;
  std::uint64_t low_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace millrace
