#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "dataset/tar_format.h"
#include "dataset/tar_header.h"
#include "dataset/tar_reader.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace millrace;

// Checksums are what a fuzzer does not find by itself. Every block gets one: those of contents do
// not matter.
std::string sealed(std::string_view bytes) {
  std::string archive(bytes);
  for (std::size_t at = 0; at + kTarBlockBytes <= archive.size(); at += kTarBlockBytes) {
    const std::size_t field = at + kTarChecksumField.offset;
    archive.replace(field, 8, "        ");
    unsigned sum = 0;
    for (std::size_t n = at; n < at + kTarBlockBytes; ++n)
      sum += static_cast<unsigned char>(archive[n]);
    archive.replace(field, 6, fmt::format("{:06o}", sum));
  }
  return archive;
}

TarReader::ReadAt reading(const std::string& archive) {
  return [&archive](std::uint64_t offset, MutableByteView into) -> Result<std::size_t> {
    if (offset >= archive.size()) return 0;
    const std::size_t length = std::min<std::size_t>(into.size(), archive.size() - offset);
    std::memcpy(into.data(), archive.data() + offset, length);
    return length;
  };
}

// What was read and can be written is read again as the same.
void write_and_read(const TarMember& member) {
  const auto header = encode_tar_header(member, TarTimes::kNanoseconds);
  if (!header) return;
  fuzz_require(header->size() == tar_header_bytes(member, TarTimes::kNanoseconds).value());
  TarReader reader(reading(*header), kTarUnknownBytes);
  const auto found = reader.next();
  fuzz_require(found.has_value() && found->has_value() && (*found)->member == member);
}

}  // namespace

// A byte that says whether to put right checksums in, then an archive. Whatever it holds, members
// lie inside it and one behind the other, or it is refused as damaged or unsupported.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text = fuzz_text(data + 1, size - 1);
  const std::string archive = data[0] % 2 == 1 ? sealed(text) : std::string(text);
  TarReader reader(reading(archive), archive.size());
  std::uint64_t reached = 0;
  for (;;) {
    const auto next = reader.next();
    if (!next) {
      fuzz_require(next.error() == StatusCode::kCorruption ||
                   next.error() == StatusCode::kUnsupported);
      return 0;
    }
    if (!*next) return 0;
    const TarReadMember& found = **next;
    fuzz_require(found.header_offset >= reached && found.content_offset > found.header_offset);
    reached = found.content_offset + found.member.size;
    fuzz_require(reached <= archive.size() && !found.member.path.empty());
    write_and_read(found.member);
  }
}
