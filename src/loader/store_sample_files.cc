#include "loader/store_sample_files.h"

#include <fmt/format.h>

#include "dataset/manifest.h"

namespace millrace {

Result<Slice> StoreSampleFiles::read(const RequestContext& context, EntryIndex file,
                                     ByteRange range) {
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest().entry(file));
  // Checked before memory is taken: the range may come from an index.
  if (range.offset > entry.size() || range.length > entry.size() - range.offset) {
    MR_ASSIGN_OR_RETURN(const std::string path, manifest().path_of(file));
    return failure(StatusCode::kCorruption, fmt::format("{}: there is no byte {} in {} bytes", path,
                                                        range.end(), entry.size()));
  }
  Buffer buffer = Buffer::allocate(range.length);
  VersionWindow window(reader_);
  MR_ASSIGN_OR_RETURN(const std::size_t got,
                      window.read_at(context, entry, range.offset, buffer.bytes()));
  buffer.truncate(got);
  return std::move(buffer).freeze();
}

}  // namespace millrace
