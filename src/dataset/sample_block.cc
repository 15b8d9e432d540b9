#include "dataset/sample_block.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "dataset/tar_format.h"

namespace millrace {
namespace {

constexpr unsigned kVarintBits = 7;
constexpr std::size_t kVarintBytesMax = 10;
// No offset in a shard is larger, so that sums of two never wrap around.
constexpr std::uint64_t kShardOffsetMax = std::uint64_t{1} << 62;

// Numbers of 7 bits a byte, lowest first; the highest bit says that another byte follows.
class VarintWriter {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= kVarintBits)
      bytes_.push_back(static_cast<std::byte>(value | 0x80));
    bytes_.push_back(static_cast<std::byte>(value));
  }
  void text(std::string_view text) {
    bytes_.insert(bytes_.end(), as_bytes(text).begin(), as_bytes(text).end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// After the first thing that is not there everything is zero and empty, and ok() is false.
class VarintReader {
 public:
  explicit VarintReader(ByteView bytes) : rest_(bytes) {}

  // At most `max`.
  std::uint64_t number(std::uint64_t max) {
    std::uint64_t value = 0;
    for (std::size_t n = 0; n < kVarintBytesMax && n < rest_.size(); ++n) {
      const auto byte = static_cast<std::uint8_t>(rest_[n]);
      value |= std::uint64_t{byte & 0x7fU} << (kVarintBits * n);
      if (byte >= 0x80) continue;
      // The tenth byte has one bit, and no number has zeros behind its last.
      const bool shortest = n == 0 || byte != 0;
      if (value > max || !shortest || (n + 1 == kVarintBytesMax && byte > 1)) break;
      rest_ = rest_.subspan(n + 1);
      return value;
    }
    fail();
    return 0;
  }
  std::string_view text(std::size_t bytes) {
    if (bytes > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view text = as_text(rest_.first(bytes));
    rest_ = rest_.subspan(bytes);
    return text;
  }
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return rest_.size(); }

 private:
  ByteView rest_;
  bool ok_ = true;
};

std::optional<std::string> twice(SampleBlock::Shape shape) {
  for (std::string& field : shape)
    field = lower_case(field);
  std::ranges::sort(shape);
  const auto same = std::ranges::adjacent_find(shape);
  return same == shape.end() ? std::nullopt : std::optional(*same);
}

std::size_t shared_beginning(std::string_view a, std::string_view b) {
  const auto [end, unused] = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(end - a.begin());
}

void read_shapes(VarintReader& reader, std::size_t samples, SampleBlock& block) {
  // Each is used, so there are no more of them than samples.
  const std::uint64_t shapes = reader.number(samples);
  if (shapes == 0) reader.fail();
  for (std::uint64_t n = 0; n < shapes && reader.ok(); ++n) {
    SampleBlock::Shape& shape = block.shapes.emplace_back();
    const std::uint64_t fields = reader.number(kSampleMembersMax);
    if (fields == 0) reader.fail();
    for (std::uint64_t field = 0; field < fields && reader.ok(); ++field)
      shape.emplace_back(reader.text(reader.number(kTarPathBytesMax)));
    if (twice(shape)) reader.fail();
  }
}

void read_samples(VarintReader& reader, std::size_t samples, SampleBlock& block) {
  std::uint64_t members = 0;
  std::uint32_t shapes_seen = 0;
  for (std::size_t n = 0; n < samples && reader.ok(); ++n) {
    // A shape comes into use in the order of the shapes.
    const std::uint64_t shape =
        reader.number(std::min<std::uint64_t>(shapes_seen, block.shapes.size() - 1));
    if (!reader.ok()) return;
    if (shape == shapes_seen) ++shapes_seen;
    block.samples.push_back({.shape = static_cast<std::uint32_t>(shape),
                             .first_member = static_cast<std::uint32_t>(members)});
    members += block.shapes[shape].size();
    // Each takes three numbers: no more memory is taken than the block has bytes for.
    if (members > reader.left() / 3) return reader.fail();
  }
  if (shapes_seen != block.shapes.size()) return reader.fail();
  block.members.resize(members);
}

void read_keys(VarintReader& reader, SampleBlock& block) {
  std::string_view before;
  for (SampleBlock::Sample& sample : block.samples) {
    const std::uint64_t shared = reader.number(before.size());
    const std::uint64_t rest = reader.number(kTarPathBytesMax - shared);
    sample.key = std::string(before.substr(0, shared)) + std::string(reader.text(rest));
    if (sample.key.empty()) reader.fail();
    if (!reader.ok()) return;
    before = sample.key;
  }
}

void read_members(VarintReader& reader, std::uint64_t begin, SampleBlock& block) {
  constexpr std::uint64_t kBlocksMax = kShardOffsetMax / kTarBlockBytes;
  std::vector<std::uint64_t> skips(block.members.size());
  std::vector<std::uint64_t> headers(block.members.size());
  for (std::uint64_t& skip : skips)
    skip = reader.number(kBlocksMax);
  for (std::uint64_t& header : headers)
    header = reader.number(kBlocksMax);
  std::uint64_t at = begin;
  for (std::size_t n = 0; n < block.members.size() && reader.ok(); ++n) {
    SampleBlock::Member& member = block.members[n];
    member.header_offset = at + skips[n] * kTarBlockBytes;
    member.offset = member.header_offset + headers[n] * kTarBlockBytes;
    member.size = reader.number(kShardOffsetMax);
    at = member.offset + tar_padded(member.size);
    if (headers[n] == 0 || member.offset > kShardOffsetMax || at > kShardOffsetMax) reader.fail();
  }
}

}  // namespace

ByteRange SampleBlock::range(const Sample& sample) const {
  const Member& first = members[sample.first_member];
  const Member& last = members[sample.first_member + member_count(sample) - 1];
  return {first.header_offset, last.offset + last.size - first.header_offset};
}

std::vector<std::byte> encode_sample_block(const SampleBlock& block) {
  VarintWriter writer;
  writer.number(block.samples.size());
  const std::uint64_t begin = block.members.empty() ? 0 : block.members.front().header_offset;
  writer.number(begin / kTarBlockBytes);
  writer.number(block.shapes.size());
  for (const SampleBlock::Shape& shape : block.shapes) {
    writer.number(shape.size());
    for (const std::string& field : shape) {
      writer.number(field.size());
      writer.text(field);
    }
  }
  // Column by column: what is alike stands together and compresses to nothing.
  for (const SampleBlock::Sample& sample : block.samples)
    writer.number(sample.shape);
  std::string_view before;
  for (const SampleBlock::Sample& sample : block.samples) {
    const std::size_t shared = shared_beginning(before, sample.key);
    writer.number(shared);
    writer.number(sample.key.size() - shared);
    writer.text(std::string_view(sample.key).substr(shared));
    before = sample.key;
  }
  std::uint64_t at = begin;
  for (const SampleBlock::Member& member : block.members) {
    writer.number((member.header_offset - at) / kTarBlockBytes);
    at = member.offset + tar_padded(member.size);
  }
  for (const SampleBlock::Member& member : block.members)
    writer.number((member.offset - member.header_offset) / kTarBlockBytes);
  for (const SampleBlock::Member& member : block.members)
    writer.number(member.size);
  return writer.take();
}

Result<SampleBlock> decode_sample_block(ByteView bytes) {
  VarintReader reader(bytes.first(std::min(bytes.size(), kSampleBlockBytesMax)));
  SampleBlock block;
  const std::uint64_t samples = reader.number(kSampleBlockSamplesMax);
  const std::uint64_t begin = reader.number(kShardOffsetMax / kTarBlockBytes) * kTarBlockBytes;
  if (samples == 0) reader.fail();
  read_shapes(reader, samples, block);
  read_samples(reader, samples, block);
  read_keys(reader, block);
  read_members(reader, begin, block);
  if (reader.ok() && reader.left() == 0 && bytes.size() <= kSampleBlockBytesMax) return block;
  return failure(StatusCode::kCorruption, "it holds numbers that no block of samples has");
}

bool SampleBlockWriter::is_full() const {
  return block_.samples.size() == kSampleBlockSamplesMax || bytes_ >= kMiB;
}

Result<std::uint32_t> SampleBlockWriter::shape_number(const SampleBlock::Shape& shape) {
  // Mostly the samples of a shard are all alike.
  if (!block_.samples.empty() && block_.shapes[block_.samples.back().shape] == shape) {
    return block_.samples.back().shape;
  }
  if (const auto known = shapes_.find(shape); known != shapes_.end()) return known->second;
  if (const auto field = twice(shape)) {
    return failure(StatusCode::kCorruption, fmt::format("it has '.{}' twice", *field));
  }
  const auto number = static_cast<std::uint32_t>(block_.shapes.size());
  block_.shapes.push_back(shape);
  shapes_.emplace(shape, number);
  for (const std::string& field : shape)
    bytes_ += field.size() + 2;
  return number;
}

Status SampleBlockWriter::add(std::string_view key, const SampleBlock::Shape& shape,
                              const std::vector<SampleBlock::Member>& members) {
  const auto where = [&] {
    return fmt::format("the sample '{}' at byte {}", key, members.front().header_offset);
  };
  const auto number = shape_number(shape);
  if (!number) return number.error().with_context(where());
  bytes_ += key.size() + (members.size() + 2) * 3 * kVarintBytesMax;
  if (bytes_ > kSampleBlockBytesMax || members.size() > kSampleMembersMax) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("it has {} members with names of too many bytes", members.size()))
        .with_context(where());
  }
  block_.samples.push_back({.key = std::string(key),
                            .shape = *number,
                            .first_member = static_cast<std::uint32_t>(block_.members.size())});
  block_.members.insert(block_.members.end(), members.begin(), members.end());
  return {};
}

SampleBlock SampleBlockWriter::take() {
  bytes_ = 0;
  shapes_.clear();
  return std::exchange(block_, {});
}

}  // namespace millrace
