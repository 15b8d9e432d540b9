#include "dataset/pack_builder.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "cache/unit.h"
#include "dataset/pack_stream.h"

namespace millrace {
namespace {

// `bytes` begin at a unit's boundary.
void append_unit_checksums(ByteView bytes, UnitChecksums& checksums) {
  for (std::size_t at = 0; at < bytes.size(); at += kUnitBytes) {
    const std::size_t length = std::min<std::size_t>(kUnitBytes, bytes.size() - at);
    checksums.push_back(crc32c(bytes.subspan(at, length)));
  }
}

Result<Slice> next_pack_bytes(const RequestContext& context, BufferPool& pool, PackStream& stream,
                              std::uint64_t length, UnitChecksums& checksums) {
  MR_ASSIGN_OR_RETURN(Buffer buffer, pool.allocate(context, length));
  MR_RETURN_IF_ERROR(stream.fill(context, buffer.bytes()));
  append_unit_checksums(buffer.bytes(), checksums);
  return std::move(buffer).freeze();
}

}  // namespace

PackBuilder::PackBuilder(ObjectStore& store, BufferPool& pool, Executor* readers,
                         PackBuilderOptions options)
    : store_(store), pool_(pool), readers_(readers), options_(options) {
  assert(options_.chunk_bytes > 0 && options_.chunk_bytes % kUnitBytes == 0);
}

Result<BuiltPack> PackBuilder::build(const RequestContext& context, SourceTree& source,
                                     const PlannedPack& pack, const ObjectKey& key,
                                     const PutOptions& put_options) {
  PackStream stream(source, pack, readers_, options_.reads_max);
  BuiltPack built;
  const auto next = [&](std::uint64_t length) {
    return next_pack_bytes(context, pool_, stream, length, built.checksums);
  };
  if (pack.bytes <= options_.put_bytes_max) {
    MR_ASSIGN_OR_RETURN(Slice bytes, next(pack.bytes));
    MR_ASSIGN_OR_RETURN(built.object, store_.put(context, key, std::move(bytes), put_options));
  } else {
    PutOptions upload_options = put_options;
    upload_options.size_hint = pack.bytes;
    // Aborted by its destructor when anything fails.
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<Upload> upload,
                        store_.start_upload(context, key, upload_options));
    while (stream.offset() < pack.bytes) {
      MR_ASSIGN_OR_RETURN(Slice bytes,
                          next(std::min(options_.chunk_bytes, pack.bytes - stream.offset())));
      MR_RETURN_IF_ERROR(upload->write(context, std::move(bytes)));
    }
    MR_ASSIGN_OR_RETURN(built.object, upload->finish(context));
  }
  if (built.object.size != pack.bytes) {
    return failure(StatusCode::kInternal,
                   fmt::format("'{}' has {} bytes in the store, but {} were sent", key.value(),
                               built.object.size, pack.bytes));
  }
  for (std::size_t n = 0; n < pack.members.size(); ++n) {
    built.members.push_back(
        {.content_offset = pack.members[n].content_offset, .hash = stream.hashes()[n]});
  }
  return built;
}

}  // namespace millrace
