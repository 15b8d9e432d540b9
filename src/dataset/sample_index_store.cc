#include "dataset/sample_index_store.h"

#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "platform/digest_text.h"

namespace millrace {
namespace {

constexpr std::string_view kSampleReader = "webdataset";

}  // namespace

ObjectKey sample_index_key(const Sha256Digest& content_digest) {
  return ObjectKey(fmt::format("{}{}/{}", kIndexesPrefix, to_hex(content_digest), kSampleReader));
}

std::optional<Sha256Digest> indexed_content(std::string_view key) {
  if (!key.starts_with(kIndexesPrefix)) return std::nullopt;
  key.remove_prefix(kIndexesPrefix.size());
  if (!key.contains('/')) return std::nullopt;
  return parse_sha256(key.substr(0, key.find('/')));
}

Result<std::unique_ptr<SampleIndex>> SampleIndexStore::open(const RequestContext& context,
                                                            const Sha256Digest& content_digest) {
  const ObjectKey key = sample_index_key(content_digest);
  MR_ASSIGN_OR_RETURN(const ObjectInfo info, store_.head(context, key));
  auto fetch = [&store = store_, key, identity = info.identity](
                   const RequestContext& request, std::uint64_t offset,
                   std::uint64_t length) -> Result<Slice> {
    MR_ASSIGN_OR_RETURN(
        GetResult got,
        store.get(request, {.key = key, .range = ByteRange{offset, length}, .identity = identity}));
    if (got.data.size() == length) return std::move(got.data);
    return failure(StatusCode::kCorruption,
                   fmt::format("'{}' is shorter than it should be", key.value()));
  };
  auto index = SampleIndex::open(context, std::move(fetch), info.size);
  if (!index) return failure(index.error().with_context(fmt::format("'{}'", key.value())));
  if ((*index)->table().content_digest != content_digest) {
    return failure(StatusCode::kCorruption,
                   fmt::format("'{}' is the sample index of another content", key.value()));
  }
  return index;
}

Status SampleIndexStore::upload(const RequestContext& context, const ObjectKey& key,
                                const BuiltSampleIndex& index) {
  const std::vector<std::byte> tables = encode_sample_tables(index.table());
  MR_ASSIGN_OR_RETURN(
      const std::unique_ptr<Upload> upload,
      store_.start_upload(context, key,
                          {.condition = WriteCondition::if_absent(),
                           .size_hint = index.table().stored_bytes() + tables.size()}));
  for (std::size_t number = 0; number < index.table().blocks.size(); ++number) {
    MR_ASSIGN_OR_RETURN(const std::vector<std::byte> block, index.block(number));
    MR_RETURN_IF_ERROR(upload->write(context, Slice::copy_of(ByteView(block))));
  }
  MR_RETURN_IF_ERROR(upload->write(context, Slice::copy_of(ByteView(tables))));
  const auto stored = upload->finish(context);
  return stored ? Status() : stored.error();
}

Status SampleIndexStore::put(const RequestContext& context, const BuiltSampleIndex& index) {
  const ObjectKey key = sample_index_key(index.table().content_digest);
  Status status = upload(context, key, index);
  if (status.ok() || status != StatusCode::kPreconditionFailed) return status;
  // Somebody else made the same index of the same content meanwhile.
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<SampleIndex> there,
                      open(context, index.table().content_digest));
  if (there->table() == index.table()) return {};
  return {StatusCode::kConflict,
          fmt::format("{} has another sample index under '{}' than the shards give: one of them "
                      "was damaged; remove it to have it made again",
                      store_.describe(), key.value())};
}

}  // namespace millrace
