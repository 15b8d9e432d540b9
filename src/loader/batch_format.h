#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// A batch as it lies in memory, in one piece: docs/formats/batch.md. Numbers are little-endian and
// aligned, so that consumers use them where they are.

inline constexpr std::uint64_t kBatchMagic = 0x0031'4843'5442'524d;  // "MRBTCH1"
inline constexpr std::size_t kBatchAlignment = 64;
inline constexpr std::uint64_t kBatchColumnsMax = 4096;
// Behind the dimensions that a sample has, where others have more.
inline constexpr std::uint64_t kNoDimension = ~std::uint64_t{0};

// Offsets are from the beginning of the batch; 0 is none.
struct BatchHead {
  std::uint64_t magic = kBatchMagic;
  std::uint64_t bytes = 0;  // Of the whole batch.
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;
  std::uint64_t columns = 0;
  // One number for each sample.
  std::uint64_t positions_at = 0;
  std::uint64_t sources_at = 0;
  std::uint64_t sample_ids_at = 0;
  std::uint64_t seeds_at = 0;
  std::uint64_t columns_at = 0;
  // What making it took.
  std::uint64_t store_ns = 0;
  std::uint64_t decode_ns = 0;
};

struct BatchColumnHead {
  std::uint64_t name_at = 0;  // Texts have a NUL behind them that does not count.
  std::uint64_t name_bytes = 0;
  std::uint64_t type_at = 0;
  std::uint64_t type_bytes = 0;
  std::uint64_t data_at = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t offsets_at = 0;
  std::uint64_t item_offsets_at = 0;  // Of a list: items + 1 of them.
  std::uint64_t items = 0;
  std::uint64_t present_at = 0;
  std::uint64_t uniform = 0;
  std::uint64_t dimensions = 0;
  std::uint64_t shape_at = 0;
  std::uint64_t shapes_at = 0;
};

// include/millrace.h says what the members mean.
struct BatchColumn {
  std::string_view name = {};
  std::string_view type = {};
  ByteView data = {};
  std::span<const std::uint64_t> offsets = {};
  std::span<const std::uint64_t> item_offsets = {};
  std::span<const std::uint8_t> present = {};
  bool uniform = false;
  std::uint64_t dimensions = 0;
  std::span<const std::uint64_t> shape = {};
  std::span<const std::uint64_t> shapes = {};
};

// A batch where it lies. Points into memory that outlives it. Immutable, safe from any thread.
class BatchView {
 public:
  // Takes any bytes, which begin at a boundary of 8: kCorruption, saying where, when something
  // points outside, or is not in order.
  static Result<BatchView> parse(ByteView bytes);

  ByteView bytes() const { return bytes_; }
  const BatchHead& head() const { return *head_; }
  std::size_t samples() const { return head_->samples; }
  std::span<const std::uint64_t> positions() const { return positions_; }
  std::span<const std::uint64_t> sources() const { return sources_; }
  std::span<const std::uint64_t> sample_ids() const { return sample_ids_; }
  std::span<const std::uint64_t> seeds() const { return seeds_; }
  const std::vector<BatchColumn>& columns() const { return columns_; }

 private:
  ByteView bytes_;
  const BatchHead* head_ = nullptr;
  std::span<const std::uint64_t> positions_;
  std::span<const std::uint64_t> sources_;
  std::span<const std::uint64_t> sample_ids_;
  std::span<const std::uint64_t> seeds_;
  std::vector<BatchColumn> columns_;
};

}  // namespace millrace
