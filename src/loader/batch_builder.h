#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "loader/batch_format.h"
#include "loader/batch_memory.h"
#include "loader/sample_source.h"

namespace millrace {

// A sample where it stands in an epoch.
struct PlacedSample {
  std::uint64_t position = 0;
  std::uint64_t source = 0;
  std::uint64_t sample = 0;
  std::uint64_t seed = 0;  // Of its random numbers.
  bool operator==(const PlacedSample&) const = default;
};

// A batch, and the memory that it lies in. Copies share both; they never change.
struct Batch {
  std::shared_ptr<BatchMemory> memory = {};
  std::shared_ptr<const BatchView> view = {};
};

struct ReadSample {
  PlacedSample place = {};
  std::string key = {};
  std::vector<SampleValue> values = {};
};

struct BatchTimes {
  std::uint64_t store_ns = 0;
  std::uint64_t decode_ns = 0;
};

// Lays samples out in columns: one for each name and type of a field, and "__key__". Fails with
// kResourceExhausted for want of memory, and with kInvalidArgument for too many columns.
Result<Batch> build_batch(BatchMemoryPool& memory, std::uint64_t epoch,
                          const std::vector<ReadSample>& samples, const BatchTimes& times);
// The columns that a batch of the models would have, without a sample.
Result<Batch> build_empty_batch(BatchMemoryPool& memory, std::uint64_t epoch,
                                const std::vector<ReadSample>& models, const BatchTimes& times);

}  // namespace millrace
