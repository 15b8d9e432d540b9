#include <algorithm>
#include <string>
#include <vector>

#include "frontends/nfs4/rpc_record.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace millrace;

constexpr RpcRecordLimits kFuzzedLimits = {.record_bytes_max = 512, .fragments_max = 8};

// Room for a few of the longest records; more bytes would only show the same again.
constexpr std::size_t kStreamBytesMax = 4 * kFuzzedLimits.record_bytes_max;

// Used again for each input, for memory is what costs most here.
struct RecordsSeen {
  std::string bytes;              // Of all records, one behind the other.
  std::vector<std::size_t> ends;  // Of each of them.
  bool refused = false;

  bool operator==(const RecordsSeen&) const = default;
};

// In pieces of `size_max` bytes at most.
void read_records(ByteView bytes, std::size_t size_max, RecordsSeen& seen) {
  seen.bytes.clear();
  seen.ends.clear();
  seen.refused = false;
  RpcRecords records(kFuzzedLimits);
  while (!bytes.empty()) {
    const ByteView all = bytes.first(std::min(bytes.size(), size_max));
    ByteView piece = all;
    const auto record = records.next(piece);
    if (!record) {
      fuzz_require(record.error() == StatusCode::kResourceExhausted);
      seen.refused = true;
      return;
    }
    fuzz_require(piece.empty() || record->has_value());
    bytes = bytes.subspan(all.size() - piece.size());
    if (!record->has_value()) continue;
    fuzz_require(!records.started());
    fuzz_require((*record)->size() <= kFuzzedLimits.record_bytes_max);
    seen.bytes += (*record)->text();
    seen.ends.push_back(seen.bytes.size());
  }
}

}  // namespace

// However a stream is cut, the records in it are the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static RecordsSeen whole;
  static RecordsSeen cut;
  if (size > kStreamBytesMax) return -1;
  const ByteView bytes = as_bytes(fuzz_text(data, size));
  read_records(bytes, std::max<std::size_t>(size, 1), whole);
  for (const std::size_t size_max : {std::size_t{1}, std::size_t{3}, std::size_t{64}}) {
    read_records(bytes, size_max, cut);
    fuzz_require(cut == whole);
  }
  return 0;
}
