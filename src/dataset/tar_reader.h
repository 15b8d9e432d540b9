#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/tar_format.h"
#include "dataset/tar_pax.h"

namespace millrace {

// A member of an archive and where it is.
struct TarReadMember {
  TarMember member = {};
  // Where the first header of the member begins, extended ones included.
  std::uint64_t header_offset = 0;
  // Where its content begins; member.size bytes stand there.
  std::uint64_t content_offset = 0;
};

// For an archive whose length is not known. Then whoever reads notices that it ends inside a
// member.
inline constexpr std::uint64_t kTarUnknownBytes = INT64_MAX;

// Lists the members of a tar archive: ustar, pax and GNU's own format, and the one before them.
// Contents are skipped, never read.
//
// An archive is foreign bytes: every length is checked against the archive's, headers against their
// checksums, and what is wrong is kCorruption that says where. Names are given as they are, for the
// caller to judge ("../x" is a name). kUnsupported for sparse members, for parts of archives over
// several volumes, and for names that are too long.
//
// Thread-compatible.
class TarReader {
 public:
  // Fills `into` from the offset and returns how much there was: less than asked for only at the
  // end. Offsets never go back, so a stream that can skip will do.
  using ReadAt = std::function<Result<std::size_t>(std::uint64_t offset, MutableByteView into)>;

  TarReader(ReadAt read_at, std::uint64_t archive_bytes);

  // The next member; nothing at the end. After a failure, the same failure again.
  Result<std::optional<TarReadMember>> next();

  // Once the end was reached: whether the archive says so itself. One that stops after a whole
  // member is read like others, but may be the beginning of a longer one.
  bool has_end_marker() const { return has_end_marker_; }

 private:
  using Block = std::array<std::byte, kTarBlockBytes>;

  Result<std::optional<TarReadMember>> read_next();
  // Nothing at the end of the archive.
  Result<std::optional<Block>> read_header();
  // The bytes of an extended header, which end the blocks read so far.
  Result<std::string> read_extension(std::uint64_t size);
  Status read_attributes(char type, const Block& block, TarAttributes& local);
  Result<TarReadMember> read_member(char type, const Block& block, const TarAttributes& local,
                                    std::uint64_t header_offset);
  Status damaged(std::string_view why) const;
  Status at_offset(const Status& status) const;

  const ReadAt read_at_;
  const std::uint64_t archive_bytes_;
  // Where the header that is being read begins; then, where the next one will.
  std::uint64_t offset_ = 0;
  TarAttributes global_;
  Status failed_;
  bool ended_ = false;
  bool has_end_marker_ = false;
};

}  // namespace millrace
