#include "bench/generated_store.h"

#include <cstring>

namespace millrace::bench {
namespace {

std::unexpected<Status> read_only() {
  return failure(StatusCode::kUnsupported, "generated objects can only be read");
}

}  // namespace

void GeneratedStore::generate(std::uint64_t offset, MutableByteView into) {
  for (std::size_t at = 0; at < into.size(); at += 8) {
    const std::uint64_t word = (offset + at + 1) * 0x9e3779b97f4a7c15U;
    std::memcpy(into.data() + at, &word, std::min<std::size_t>(8, into.size() - at));
  }
}

void GeneratedStore::get_range(const RequestContext& context, GetRequest request,
                               Completion<GetResult> done) {
  Result<Buffer> buffer = pool_.allocate(context, request.range.value().length);
  if (!buffer) return done.complete(failure(buffer.error()));
  generate(request.range->offset, buffer->bytes());
  GetResult result;
  result.data = std::move(*buffer).freeze();
  result.info = {.key = request.key, .identity = ObjectIdentity(std::string(kIdentity))};
  done.complete(std::move(result));
}

Result<ObjectInfo> GeneratedStore::head(const RequestContext&, const ObjectKey&) {
  return read_only();
}
Result<ListPage> GeneratedStore::list(const RequestContext&, const ListRequest&) {
  return read_only();
}
Result<ObjectInfo> GeneratedStore::put(const RequestContext&, const ObjectKey&, Slice,
                                       const PutOptions&) {
  return read_only();
}
Result<std::unique_ptr<Upload>> GeneratedStore::start_upload(const RequestContext&,
                                                             const ObjectKey&, const PutOptions&) {
  return read_only();
}
Result<ObjectInfo> GeneratedStore::copy(const RequestContext&, const ObjectInfo&,
                                        const ObjectKey&) {
  return read_only();
}
Status GeneratedStore::remove(const RequestContext&, std::span<const ObjectKey>) {
  return read_only().error();
}

}  // namespace millrace::bench
