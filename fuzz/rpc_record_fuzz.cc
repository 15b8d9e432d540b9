#include <algorithm>
#include <string>
#include <vector>

#include "frontends/nfs4/rpc_record.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace millrace;

constexpr RpcRecordLimits kFuzzedLimits = {.record_bytes_max = 512, .fragments_max = 8};

struct RecordsSeen {
  std::vector<std::string> records;
  bool refused = false;

  bool operator==(const RecordsSeen&) const = default;
};

// In pieces of `size_max` bytes at most.
RecordsSeen read_records(ByteView bytes, std::size_t size_max) {
  RecordsSeen seen;
  RpcRecords records(kFuzzedLimits);
  while (!bytes.empty()) {
    const ByteView all = bytes.first(std::min(bytes.size(), size_max));
    ByteView piece = all;
    const auto record = records.next(piece);
    if (!record) {
      fuzz_require(record.error() == StatusCode::kResourceExhausted);
      seen.refused = true;
      return seen;
    }
    fuzz_require(piece.empty() || record->has_value());
    bytes = bytes.subspan(all.size() - piece.size());
    if (!record->has_value()) continue;
    fuzz_require(!records.started());
    seen.records.emplace_back((*record)->text());
    fuzz_require(seen.records.back().size() <= kFuzzedLimits.record_bytes_max);
  }
  return seen;
}

}  // namespace

// However a stream is cut, the records in it are the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes = as_bytes(fuzz_text(data, size));
  const RecordsSeen whole = read_records(bytes, std::max<std::size_t>(size, 1));
  for (const std::size_t size_max : {std::size_t{1}, std::size_t{3}, std::size_t{64}})
    fuzz_require(read_records(bytes, size_max) == whole);
  return 0;
}
