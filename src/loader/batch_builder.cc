#include "loader/batch_builder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::string_view kKeyColumn = "__key__";

// Those whose values have a shape, and can be one array.
bool has_shape(std::string_view type) {
  constexpr std::array<std::string_view, 4> kBeginnings = {"int", "uint", "float", "pil:"};
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view start) { return type.starts_with(start); });
}

// A column that is being gathered: a value for each sample, null where it has none.
struct GatheredColumn {
  std::string_view name;
  std::string_view type;
  std::vector<const SampleValue*> values;
  BatchColumnHead head = {};
  bool all = true;                        // Every sample has a value.
  std::vector<std::uint64_t> shape = {};  // Where it is uniform.
};

class BatchWriter {
 public:
  BatchWriter(std::uint64_t epoch, const std::vector<ReadSample>& samples, const BatchTimes& times)
      : samples_(samples) {
    head_.epoch = epoch;
    head_.samples = samples.size();
    head_.store_ns = times.store_ns;
    head_.decode_ns = times.decode_ns;
  }

  Status gather() {
    for (std::size_t n = 0; n < samples_.size(); ++n) {
      std::size_t hint = 0;
      for (const SampleValue& value : samples_[n].values) {
        GatheredColumn& column = column_of(value, hint);
        hint = static_cast<std::size_t>(&column - columns_.data()) + 1;
        column.values[n] = &value;
      }
      if (columns_.size() >= kBatchColumnsMax) {
        return {StatusCode::kInvalidArgument,
                fmt::format("the samples of a batch have more than {} fields", kBatchColumnsMax)};
      }
    }
    // Also a batch without samples has keys: consumers find the column.
    for (const ReadSample& sample : samples_)
      keys_.push_back({.name = {}, .type = {}, .bytes = Slice::from_string(sample.key)});
    GatheredColumn& column =
        columns_.emplace_back(GatheredColumn{.name = kKeyColumn, .type = "str", .values = {}});
    for (const SampleValue& key : keys_)
      column.values.push_back(&key);
    for (GatheredColumn& each : columns_)
      describe(each);
    return {};
  }

  // Keeps the columns as they are described, and none of their values.
  void drop_samples() {
    head_.samples = 0;
    for (GatheredColumn& column : columns_) {
      column.values.clear();
      column.head.data_bytes = 0;
      column.head.items = 0;
    }
  }

  std::size_t plan() {
    end_ = sizeof(BatchHead);
    head_.positions_at = numbers(head_.samples);
    head_.sources_at = numbers(head_.samples);
    head_.sample_ids_at = numbers(head_.samples);
    head_.seeds_at = numbers(head_.samples);
    head_.columns = columns_.size();
    head_.columns_at = take(columns_.size() * sizeof(BatchColumnHead), alignof(BatchColumnHead));
    for (GatheredColumn& column : columns_)
      plan_column(column);
    for (GatheredColumn& column : columns_)
      column.head.data_at = take(column.head.data_bytes, kBatchAlignment);
    head_.bytes = end_;
    return end_;
  }

  void write(std::byte* into) {
    into_ = into;
    std::memcpy(into, &head_, sizeof(head_));
    auto* const positions = at<std::uint64_t>(head_.positions_at);
    auto* const sources = at<std::uint64_t>(head_.sources_at);
    auto* const sample_ids = at<std::uint64_t>(head_.sample_ids_at);
    auto* const seeds = at<std::uint64_t>(head_.seeds_at);
    for (std::size_t n = 0; n < head_.samples; ++n) {
      positions[n] = samples_[n].place.position;
      sources[n] = samples_[n].place.source;
      sample_ids[n] = samples_[n].place.sample;
      seeds[n] = samples_[n].place.seed;
    }
    auto* const heads = at<BatchColumnHead>(head_.columns_at);
    for (std::size_t n = 0; n < columns_.size(); ++n) {
      heads[n] = columns_[n].head;
      write_column(columns_[n]);
    }
  }

 private:
  // Samples mostly have their fields in the same order: the hint is where it should be.
  GatheredColumn& column_of(const SampleValue& value, std::size_t hint) {
    const auto is_it = [&](const GatheredColumn& column) {
      return column.name == value.name && column.type == value.type;
    };
    if (hint < columns_.size() && is_it(columns_[hint])) return columns_[hint];
    const auto found = std::ranges::find_if(columns_, is_it);
    if (found != columns_.end()) return *found;
    return columns_.emplace_back(
        GatheredColumn{.name = value.name,
                       .type = value.type,
                       .values = std::vector<const SampleValue*>(samples_.size())});
  }

  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment) {
    end_ = (end_ + alignment - 1) / alignment * alignment;
    return std::exchange(end_, end_ + bytes);
  }
  std::uint64_t numbers(std::uint64_t count) {
    return take(count * sizeof(std::uint64_t), alignof(std::uint64_t));
  }

  // What its values have in common.
  static void describe(GatheredColumn& column) {
    BatchColumnHead& head = column.head;
    const bool shaped = has_shape(column.type);
    bool alike = shaped;
    const SampleValue* const first = column.values.empty() ? nullptr : column.values.front();
    for (const SampleValue* value : column.values) {
      if (value == nullptr) {
        column.all = false;
        continue;
      }
      head.data_bytes += value->bytes.size();
      for (const Slice& item : value->items)
        head.data_bytes += item.size();
      head.items += value->items.size();
      head.dimensions = std::max<std::uint64_t>(head.dimensions, value->shape.size());
      alike = alike && first != nullptr && value->shape == first->shape &&
              value->bytes.size() == first->bytes.size();
    }
    head.uniform = shaped && column.all && alike ? 1 : 0;
    if (head.uniform != 0 && first != nullptr) column.shape = first->shape;
  }

  void plan_column(GatheredColumn& column) {
    BatchColumnHead& head = column.head;
    head.name_bytes = column.name.size();
    head.name_at = take(head.name_bytes + 1, 1);
    head.type_bytes = column.type.size();
    head.type_at = take(head.type_bytes + 1, 1);
    head.offsets_at = numbers(head_.samples + 1);
    if (!column.all) head.present_at = take(head_.samples, 1);
    if (column.type == "list") head.item_offsets_at = numbers(head.items + 1);
    if (head.uniform != 0) {
      head.shape_at = numbers(head.dimensions);
    } else if (head.dimensions > 0) {
      head.shapes_at = numbers(head.dimensions * head_.samples);
    }
  }

  template <class T>
  T* at(std::uint64_t offset) {
    return reinterpret_cast<T*>(into_ + offset);
  }

  void write_text(std::uint64_t offset, std::string_view text) {
    text.copy(at<char>(offset), text.size());
    *at<char>(offset + text.size()) = '\0';
  }

  void write_column(const GatheredColumn& column) {
    const BatchColumnHead& head = column.head;
    write_text(head.name_at, column.name);
    write_text(head.type_at, column.type);
    const bool is_list = column.type == "list";
    auto* const offsets = at<std::uint64_t>(head.offsets_at);
    auto* const items = is_list ? at<std::uint64_t>(head.item_offsets_at) : nullptr;
    std::uint64_t end = 0;
    std::uint64_t item = 0;
    const auto append = [&](const Slice& bytes) {
      if (!bytes.empty())
        std::memcpy(at<std::byte>(head.data_at + end), bytes.data(), bytes.size());
      end += bytes.size();
    };
    for (std::size_t n = 0; n < column.values.size(); ++n) {
      const SampleValue* const value = column.values[n];
      offsets[n] = is_list ? item : end;
      if (head.present_at != 0) *at<std::uint8_t>(head.present_at + n) = value == nullptr ? 0 : 1;
      if (head.shapes_at != 0) write_shape(head, n, value);
      if (value == nullptr) continue;
      for (const Slice& each : value->items) {
        items[item++] = end;
        append(each);
      }
      append(value->bytes);
    }
    offsets[column.values.size()] = is_list ? item : end;
    if (is_list) items[item] = end;
    if (head.uniform != 0) std::ranges::copy(column.shape, at<std::uint64_t>(head.shape_at));
  }

  void write_shape(const BatchColumnHead& head, std::size_t sample, const SampleValue* value) {
    auto* const shape = at<std::uint64_t>(head.shapes_at) + sample * head.dimensions;
    std::fill_n(shape, head.dimensions, kNoDimension);
    if (value != nullptr) std::ranges::copy(value->shape, shape);
  }

  const std::vector<ReadSample>& samples_;
  BatchHead head_;
  std::vector<GatheredColumn> columns_;
  std::vector<SampleValue> keys_;
  std::uint64_t end_ = 0;
  std::byte* into_ = nullptr;
};

Result<Batch> lay_out(BatchMemoryPool& memory, BatchWriter& writer) {
  Batch batch;
  MR_ASSIGN_OR_RETURN(batch.memory, memory.take(writer.plan()));
  writer.write(batch.memory->data());
  MR_ASSIGN_OR_RETURN(BatchView view, BatchView::parse(batch.memory->bytes()));
  batch.view = std::make_shared<const BatchView>(std::move(view));
  return batch;
}

}  // namespace

Result<Batch> build_batch(BatchMemoryPool& memory, std::uint64_t epoch,
                          const std::vector<ReadSample>& samples, const BatchTimes& times) {
  BatchWriter writer(epoch, samples, times);
  MR_RETURN_IF_ERROR(writer.gather());
  return lay_out(memory, writer);
}

Result<Batch> build_empty_batch(BatchMemoryPool& memory, std::uint64_t epoch,
                                const std::vector<ReadSample>& models, const BatchTimes& times) {
  BatchWriter writer(epoch, models, times);
  MR_RETURN_IF_ERROR(writer.gather());
  writer.drop_samples();
  return lay_out(memory, writer);
}

}  // namespace millrace
