#pragma once

#include <memory>
#include <vector>

#include "loader/dealing.h"
#include "loader/delivery_digest.h"
#include "loader/job_order.h"

namespace millrace {

// A dataset of so many samples of 4 bytes in blocks of about 16.
inline JobSource job_source(std::uint64_t samples, unsigned content) {
  const std::vector<SampleStretch> stretches = {{.samples = samples, .bytes = samples * 4}};
  return {.content_digest = {std::byte(content)},
          .layout = std::make_shared<const BlockLayout>(stretches, 64)};
}

inline MixPhase first_phase(std::vector<MixShare> shares) {
  return {.epoch = 0,
          .position = 0,
          .taken = std::vector<std::uint64_t>(shares.size()),
          .shares = std::move(shares)};
}

inline std::vector<MixShare> weights_of(std::initializer_list<double> amounts) {
  std::vector<MixShare> shares;
  for (const double amount : amounts) {
    shares.push_back({.kind = ShareKind::kWeight, .amount = amount});
  }
  return shares;
}

// Adds what all ranks deliver in some steps of an epoch, each by a digest of its own, and returns
// where the job is then.
inline std::uint64_t deliver(const JobEpoch& order, const Dealing& dealing,
                             const Topology& topology, std::uint64_t steps,
                             DeliveryDigest& delivered) {
  for (std::uint64_t rank = 0; rank < topology.world; rank += topology.replication) {
    DeliveryDigest of_rank;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const Share share = dealing.share(step, rank);
      for (std::uint64_t n = 0; n < share.count; ++n) {
        const JobOrder::Place place = order.at(share.at(n));
        of_rank.add(order.epoch(), share.at(n), place.source, place.sample);
      }
    }
    delivered.add(of_rank);
  }
  return dealing.position(steps);
}

}  // namespace millrace
