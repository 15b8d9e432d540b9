#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "cache/segment_store.h"
#include "fuzz/fuzz_input.h"
#include "platform/memory_disk.h"

namespace {

using namespace millrace;

constexpr const char* kIndexPath = "/cache/segments/00000000.idx";
constexpr const char* kDataPath = "/cache/segments/00000000.seg";

void write_file(Disk& disk, const char* path, std::string_view content) {
  auto file = disk.open(path, OpenMode::kCreate);
  fuzz_require(file.has_value() && (*file)->write_at(0, as_bytes(content)).ok());
}

// Checksums are what a fuzzer does not find by itself.
std::string sealed(std::string_view bytes) {
  std::string index(bytes);
  for (std::size_t at = 0; at + kSegmentEntryBytes <= index.size(); at += kSegmentEntryBytes) {
    const ByteView block = as_bytes(index).subspan(at, kSegmentEntryBytes);
    const std::uint32_t checksum = crc32c(block.first(kSegmentEntryBytes - sizeof checksum));
    index.replace(at + kSegmentEntryBytes - sizeof checksum, sizeof checksum,
                  reinterpret_cast<const char*>(&checksum), sizeof checksum);
  }
  return index;
}

struct Opened {
  Result<std::unique_ptr<SegmentStore>> store;
  std::vector<SegmentDamage> damage;
};

void open(Disk& disk, Opened& opened) {
  opened.damage.clear();
  opened.store = SegmentStore::open(disk, "/cache", {}, [&opened](const SegmentDamage& found) {
    opened.damage.push_back(found);
  });
}

}  // namespace

// A byte that says whether to put right checksums in, then an index. Whatever it says, a store
// opens over it or refuses a later format, finds no record but the one that is there, and what was
// damaged is so only once.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text = fuzz_text(data + 1, size - 1);
  const ObjectVersion version(StoreId("s"), ObjectKey("k"), ObjectIdentity("i"), 4);
  const std::uint32_t unit = crc32c(as_bytes("data"));
  std::string record(as_text(encode_segment_record_header(version, 4, {&unit, 1}).value()));
  record += "data";

  MemoryDisk disk;
  fuzz_require(disk.make_directories("/cache/segments").ok());
  write_file(disk, kIndexPath, data[0] % 2 == 1 ? sealed(text) : std::string(text));
  write_file(disk, kDataPath, record);
  Opened opened;
  open(disk, opened);
  if (!opened.store) {
    fuzz_require(opened.store.error() == StatusCode::kUnsupported);
    return 0;
  }
  std::vector<ObjectDigest> digests;
  (*opened.store)->for_each([&](const ObjectDigest& digest) {
    digests.push_back(digest);
    return true;
  });
  open(disk, opened);
  fuzz_require(opened.store.has_value() && opened.damage.empty());
  fuzz_require((*opened.store)->usage().records == digests.size());
  for (const ObjectDigest& digest : digests) {
    const auto found = (*opened.store)->version_of(digest);
    fuzz_require(found ? found->digest() == version.digest()
                       : found.error() == StatusCode::kCorruption);
    fuzz_require((*opened.store)->remove(digest).ok());
  }
  fuzz_require((*opened.store)->usage().bytes == 0);
  open(disk, opened);
  fuzz_require(opened.store.has_value() && (*opened.store)->usage().records == 0);
  return 0;
}
