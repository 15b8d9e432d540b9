#include <array>
#include <string>

#include "base/checked_line.h"
#include "fuzz/fuzz_input.h"
#include "loader/decompression.h"
#include "loader/loader_state.h"
#include "loader/mds_index.h"
#include "loader/mds_sample.h"

namespace {

using namespace millrace;

void require_refusal(const Status& status) {
  fuzz_require(status == StatusCode::kCorruption || status == StatusCode::kUnsupported);
}

// Checksums are what a fuzzer does not find by itself.
void read_state(std::string_view json) {
  const auto state = decode_loader_state("millrace-loader-state 1\n" + checked_line(json));
  if (!state) return require_refusal(state.error());
  const auto again = decode_loader_state(encode_loader_state(*state));
  fuzz_require(again.has_value() && *again == *state);
}

void read_mds_index(std::string_view text) {
  const auto index = parse_mds_index(text);
  if (!index) return require_refusal(index.error());
  for (const MdsShard& shard : index->shards)
    fuzz_require(shard.columns < index->columns.size());
}

void read_mds_sample(std::uint8_t encoding, ByteView bytes) {
  constexpr std::array kEncodings = {"str",     "int",       "str_decimal",      "pil",
                                     "ndarray", "jpegarray", "list[jpeg]",       "ndarray:int16",
                                     "json",    "float16",   "ndarray:int8:2,2", "bytes"};
  const std::vector<MdsColumn> columns = {
      {.name = "a", .encoding = kEncodings[encoding % kEncodings.size()], .size = {}},
      {.name = "b", .encoding = "bytes", .size = 2}};
  const auto values = decode_mds_sample(columns, Slice::copy_of(bytes));
  if (!values) return require_refusal(values.error());
  fuzz_require(values->size() == columns.size());
}

void read_compressed(std::uint8_t algorithm, ByteView bytes) {
  constexpr std::array kAlgorithms = {"zstd", "gz", "bz2", "snappy", "br"};
  for (const std::uint64_t length : {0, 1, 100, 4096}) {
    const auto raw = decompress(kAlgorithms[algorithm % kAlgorithms.size()], bytes, length);
    if (!raw) require_refusal(raw.error());
    if (raw) fuzz_require(raw->size() == length);
  }
}

}  // namespace

// A byte that says which format, one for its variant, then the bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data + 2), size - 2);
  switch (data[0] % 4) {
    case 0:
      read_state(as_text(bytes));
      break;
    case 1:
      read_mds_index(as_text(bytes));
      break;
    case 2:
      read_mds_sample(data[1], bytes);
      break;
    default:
      read_compressed(data[1], bytes);
      break;
  }
  return 0;
}
