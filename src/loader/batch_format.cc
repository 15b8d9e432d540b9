#include "loader/batch_format.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include <fmt/format.h>

namespace millrace {

static_assert(std::endian::native == std::endian::little, "batches are used where they lie");

namespace {

std::unexpected<Status> bad_batch(std::string_view what) {
  return failure(StatusCode::kCorruption, fmt::format("a batch: {}", what));
}

// Takes parts of a batch, and notes whether all of them are inside.
class BatchParts {
 public:
  explicit BatchParts(ByteView bytes) : bytes_(bytes) {}

  template <class T>
  std::span<const T> array(std::uint64_t at, std::uint64_t count) {
    if (at > bytes_.size() || at % alignof(T) != 0 || count > (bytes_.size() - at) / sizeof(T)) {
      good_ = false;
      return {};
    }
    return {reinterpret_cast<const T*>(bytes_.data() + at), static_cast<std::size_t>(count)};
  }
  std::string_view text(std::uint64_t at, std::uint64_t size) {
    // With the NUL that callers of C read up to.
    const auto chars = size == kNoDimension ? std::span<const char>() : array<char>(at, size + 1);
    if (chars.empty() || chars.back() != '\0') {
      good_ = false;
      return {};
    }
    return {chars.data(), chars.size() - 1};
  }
  bool good() const { return good_; }

 private:
  const ByteView bytes_;
  bool good_ = true;
};

bool rises_to(std::span<const std::uint64_t> offsets, std::uint64_t end) {
  return !offsets.empty() && offsets.front() == 0 && offsets.back() == end &&
         std::ranges::is_sorted(offsets);
}

// A uniform column is one array: all samples have equally much of it.
bool is_even(std::span<const std::uint64_t> offsets) {
  for (std::size_t n = 1; n + 1 < offsets.size(); ++n) {
    if (offsets[n + 1] - offsets[n] != offsets[1] - offsets[0]) return false;
  }
  return true;
}

Result<BatchColumn> parse_column(BatchParts& parts, const BatchColumnHead& head,
                                 std::uint64_t samples) {
  BatchColumn column{.name = parts.text(head.name_at, head.name_bytes),
                     .type = parts.text(head.type_at, head.type_bytes),
                     .data = parts.array<std::byte>(head.data_at, head.data_bytes),
                     .offsets = parts.array<std::uint64_t>(head.offsets_at, samples + 1),
                     .uniform = head.uniform != 0,
                     .dimensions = head.dimensions};
  if (head.item_offsets_at != 0 && head.items < kNoDimension) {
    column.item_offsets = parts.array<std::uint64_t>(head.item_offsets_at, head.items + 1);
  }
  if (head.present_at != 0) column.present = parts.array<std::uint8_t>(head.present_at, samples);
  if (head.dimensions > 64) return bad_batch("a column has too many dimensions");
  if (head.shape_at != 0) {
    column.shape = parts.array<std::uint64_t>(head.shape_at, head.dimensions);
  }
  if (head.shapes_at != 0) {
    column.shapes = parts.array<std::uint64_t>(head.shapes_at, head.dimensions * samples);
  }
  if (!parts.good()) return bad_batch("a part of a column lies outside");
  const bool is_list = column.type == "list";
  const bool ordered = is_list ? rises_to(column.offsets, head.items) &&
                                     rises_to(column.item_offsets, head.data_bytes)
                               : rises_to(column.offsets, head.data_bytes);
  if (!ordered || (column.uniform && !is_even(column.offsets))) {
    return bad_batch(fmt::format("offsets of column '{}' are out of order", column.name));
  }
  return column;
}

}  // namespace

Result<BatchView> BatchView::parse(ByteView bytes) {
  BatchParts parts(bytes);
  const auto heads = parts.array<BatchHead>(0, 1);
  if (heads.empty() || heads[0].magic != kBatchMagic) return bad_batch("it begins wrong");
  const BatchHead& head = heads[0];
  if (head.bytes > bytes.size()) return bad_batch("it is cut");
  if (head.samples >= bytes.size() || head.columns > kBatchColumnsMax) {
    return bad_batch("it has more than fits");
  }
  BatchView view;
  view.bytes_ = bytes.first(head.bytes);
  view.head_ = &head;
  view.positions_ = parts.array<std::uint64_t>(head.positions_at, head.samples);
  view.sources_ = parts.array<std::uint64_t>(head.sources_at, head.samples);
  view.sample_ids_ = parts.array<std::uint64_t>(head.sample_ids_at, head.samples);
  view.seeds_ = parts.array<std::uint64_t>(head.seeds_at, head.samples);
  const auto columns = parts.array<BatchColumnHead>(head.columns_at, head.columns);
  if (!parts.good()) return bad_batch("its tables lie outside");
  for (const BatchColumnHead& column : columns) {
    MR_ASSIGN_OR_RETURN(BatchColumn parsed, parse_column(parts, column, head.samples));
    view.columns_.push_back(std::move(parsed));
  }
  return view;
}

}  // namespace millrace
