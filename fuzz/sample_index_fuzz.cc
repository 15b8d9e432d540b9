#include <cstring>
#include <memory>
#include <string>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "dataset/sample_index.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace millrace;

constexpr std::size_t kTablesChecksumAt = 12;
constexpr std::size_t kTrailerChecksumAt = 92;

// A block that is taken is followed without leaving it, and written again as the same.
void read_block(ByteView bytes) {
  const auto block = decode_sample_block(bytes);
  if (!block) {
    fuzz_require(block.error() == StatusCode::kCorruption);
    return;
  }
  std::uint64_t reached = 0;
  for (const SampleBlock::Sample& sample : block->samples) {
    const ByteRange range = block->range(sample);
    fuzz_require(range.offset >= reached && !sample.key.empty());
    reached = range.end();
  }
  const auto again = decode_sample_block(encode_sample_block(*block));
  fuzz_require(again.has_value() && *again == *block);
}

// Checksums are what a fuzzer does not find by itself.
void seal_index(std::string& index) {
  if (index.size() < kSampleTrailerBytes) return;
  auto* const trailer =
      reinterpret_cast<std::byte*>(index.data()) + index.size() - kSampleTrailerBytes;
  const std::size_t before = index.size() - kSampleTrailerBytes;
  const auto shards = load_little_endian<std::uint64_t>(trailer + 16) % 64;
  const auto blocks = load_little_endian<std::uint64_t>(trailer + 24) % 64;
  const std::size_t tables =
      std::min(before, shards * kSampleShardBytes + blocks * kSampleBlockPlaceBytes);
  std::memcpy(trailer, "MRSAMPLE\1\0\0\0", 12);
  store_little_endian(trailer + 16, shards);
  store_little_endian(trailer + 24, blocks);
  store_little_endian(trailer + kTablesChecksumAt, crc32c({trailer - tables, tables}));
  store_little_endian(trailer + kTrailerChecksumAt, crc32c({trailer, kTrailerChecksumAt}));
}

void open_index(const std::string& bytes) {
  const RequestContext context = RequestContext::background();
  const auto fetch = [&](const RequestContext&, std::uint64_t offset,
                         std::uint64_t length) -> Result<Slice> {
    fuzz_require(offset <= bytes.size() && length <= bytes.size() - offset);
    return Slice::copy_of(std::string_view(bytes).substr(offset, length));
  };
  const auto index = SampleIndex::open(context, fetch, bytes.size());
  if (!index) {
    fuzz_require(index.error() == StatusCode::kCorruption ||
                 index.error() == StatusCode::kUnsupported);
    return;
  }
  const SampleIndexTable& table = (*index)->table();
  for (std::uint32_t block = 0; block < table.blocks.size(); ++block)
    (void)(*index)->block(context, block);
  for (std::uint64_t sample = 0; sample < std::min<std::uint64_t>((*index)->samples(), 100);
       ++sample) {
    const SamplePlace place = (*index)->locate(sample);
    fuzz_require(place.shard < table.shards.size() && place.block < table.blocks.size() &&
                 place.at < table.blocks[place.block].samples);
  }
}

}  // namespace

// A byte that says what to do (1: a block that is not compressed, else an index; 2: leave checksums
// wrong), then its bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text = fuzz_text(data + 1, size - 1);
  if (data[0] % 2 == 1) {
    read_block(as_bytes(text));
    return 0;
  }
  std::string index(text);
  if (data[0] / 2 % 2 == 0) seal_index(index);
  open_index(index);
  return 0;
}
