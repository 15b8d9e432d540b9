#include <string>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "cache/object_map_format.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace millrace;

// Checksums are what a fuzzer does not find by itself.
void seal_map_header(std::string& header) {
  if (header.size() < kMapHeaderAlignment) return;
  auto* const bytes = reinterpret_cast<std::byte*>(header.data());
  const auto header_bytes = load_little_endian<std::uint32_t>(bytes + 16);
  if (header_bytes < kMapHeaderAlignment || header_bytes > header.size()) return;
  store_little_endian(bytes + 12, std::uint32_t{0});
  store_little_endian(bytes + 12, crc32c(as_bytes(header).first(header_bytes)));
}

}  // namespace

// A byte that says whether to put a right checksum in, then a header, padded to whole pages, and
// behind it the bytes of records. A header that passes says what an encoder would write; a record
// that passes is of its unit and of no other.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > kMapHeaderBytesMax) return 0;
  std::string map(fuzz_text(data + 1, size - 1));
  map.resize((map.size() + kMapHeaderAlignment - 1) / kMapHeaderAlignment * kMapHeaderAlignment);
  if (data[0] % 2 == 1) seal_map_header(map);
  const Result<MapHeader> header = decode_map_header(as_bytes(map));
  ObjectDigest digest;
  if (header) {
    fuzz_require(header->records_offset <= map.size());
    digest = header->version.digest();
    const Result<std::string> again = encode_map_header(header->version);
    fuzz_require(again.has_value());
    const Result<MapHeader> same = decode_map_header(as_bytes(*again));
    fuzz_require(same.has_value() && same->version.digest() == digest);
  } else {
    fuzz_require(header.error() == StatusCode::kCorruption ||
                 header.error() == StatusCode::kUnsupported);
  }
  for (std::size_t at = 0; at + kMapRecordBytes <= map.size(); at += kMapRecordBytes) {
    const auto unit = static_cast<std::uint32_t>(at / kMapRecordBytes);
    const ByteView bytes = as_bytes(map).subspan(at, kMapRecordBytes);
    const DecodedMapRecord record = decode_map_record(digest, unit, bytes);
    if (record.state != MapRecordState::kSound) continue;
    const MapRecord again = encode_map_record(digest, unit, record.checksum);
    fuzz_require(as_text(again) == as_text(bytes));
    fuzz_require(decode_map_record(digest, unit + 1, bytes).state == MapRecordState::kDamaged);
  }
  return 0;
}
