#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// What a block holds at most, so that whoever reads one knows how much memory it takes.
inline constexpr std::size_t kSampleBlockSamplesMax = 4096;
inline constexpr std::size_t kSampleBlockBytesMax = 16 * kMiB;  // Before it is compressed.
inline constexpr std::size_t kSampleMembersMax = 65'536;

// Samples of one tar shard that follow one another, and where their members lie in it.
//
// 1. Sample n has the members from its first_member up to that of sample n + 1, as many as its
//    shape has fields, and at least one.
// 2. Members come in the order of the shard and do not overlap. Headers begin at multiples of 512.
// 3. No field of a shape stands in it twice, in whatever case.
struct SampleBlock {
  // What follows the first dot in the names of the members: "jpg", "seg.png". As the archive has
  // it; readers that follow WebDataset take it in lower case (sample_field()).
  using Shape = std::vector<std::string>;
  struct Sample {
    std::string key = {};  // The path without its extension.
    std::uint32_t shape = 0;
    std::uint32_t first_member = 0;
    bool operator==(const Sample&) const = default;
  };
  struct Member {
    std::uint64_t header_offset = 0;  // Of its first header, in the shard.
    std::uint64_t offset = 0;         // Of its content.
    std::uint64_t size = 0;
    bool operator==(const Member&) const = default;
  };
  std::vector<Shape> shapes = {};
  std::vector<Sample> samples = {};
  std::vector<Member> members = {};

  std::size_t member_count(const Sample& sample) const { return shapes[sample.shape].size(); }
  // From the first header of a sample to the last byte of its last member.
  ByteRange range(const Sample& sample) const;
  bool operator==(const SampleBlock&) const = default;
};

// The block as docs/formats/sample_index.md has it, not compressed.
std::vector<std::byte> encode_sample_block(const SampleBlock& block);
// Takes any bytes. kCorruption for what an encoder does not write.
Result<SampleBlock> decode_sample_block(ByteView bytes);

// Gathers the samples of a shard into blocks. Needs one thread at a time.
class SampleBlockWriter {
 public:
  // True when the block should be taken before another sample is added.
  bool is_full() const;
  bool empty() const { return block_.samples.empty(); }
  // kCorruption when a field stands twice in the sample, kUnsupported when the sample is too large.
  // Both name it. `members` are as many as the shape has fields.
  Status add(std::string_view key, const SampleBlock::Shape& shape,
             const std::vector<SampleBlock::Member>& members);
  // Leaves it empty.
  SampleBlock take();

 private:
  Result<std::uint32_t> shape_number(const SampleBlock::Shape& shape);

  SampleBlock block_;
  std::map<SampleBlock::Shape, std::uint32_t> shapes_;
  std::size_t bytes_ = 0;  // No less than what the block takes.
};

}  // namespace millrace
