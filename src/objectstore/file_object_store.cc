#include "objectstore/file_object_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checksum.h"
#include "objectstore/file_object_store_keys.h"
#include "objectstore/file_object_store_list.h"

namespace millrace {

using file_object_store::identity_of;
using file_object_store::Lister;
using file_object_store::modified_time;
using file_object_store::path_of_key;
using file_object_store::read_attributes;
using file_object_store::Tree;

Result<std::unique_ptr<FileObjectStore>> FileObjectStore::open(
    const std::string& path, Executor& disk, const FileObjectStoreOptions& options) {
  Result<Tree> tree = Tree::open(path, options.create);
  if (!tree) return failure(tree.error().with_context("file:// store"));
  file_object_store::remove_abandoned_files(*tree, *options.clock, options.abandoned_after);
  return std::unique_ptr<FileObjectStore>(new FileObjectStore(std::move(*tree), disk, options));
}

FileObjectStore::~FileObjectStore() { reads_.close(); }

std::string FileObjectStore::describe() const { return "file://" + tree_.root_path(); }

Status FileObjectStore::changed(const ObjectKey& key, std::string_view how) const {
  return {StatusCode::kPreconditionFailed,
          fmt::format("'{}' in {} has changed: {}", key.value(), describe(), how)};
}

Result<FileObjectStore::OpenObject> FileObjectStore::open_object(const ObjectKey& key) const {
  MR_ASSIGN_OR_RETURN(const std::string path, path_of_key(key));
  Result<File> file = tree_.open_file(path);
  if (!file && file.error().code() == StatusCode::kNotFound) {
    return failure(StatusCode::kNotFound,
                   fmt::format("no object '{}' in {}", key.value(), describe()));
  }
  if (!file) return failure(file.error());
  OpenObject object;
  object.file = std::move(*file);
  MR_ASSIGN_OR_RETURN(object.facts, object.file.stat());
  MR_ASSIGN_OR_RETURN(object.attributes, read_attributes(object.file, object.facts));
  object.info.key = key;
  object.info.size = static_cast<std::uint64_t>(object.facts.st_size);
  object.info.identity = identity_of(object.facts, object.attributes);
  object.info.modified = modified_time(object.facts);
  return object;
}

Result<ObjectInfo> FileObjectStore::head(const RequestContext& context, const ObjectKey& key) {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(context.check(*options_.clock));
  MR_ASSIGN_OR_RETURN(OpenObject object, open_object(key));
  if (object.attributes) object.info.metadata = std::move(object.attributes->metadata);
  return std::move(object.info);
}

Result<ListPage> FileObjectStore::list(const RequestContext& context, const ListRequest& request) {
  return Lister(context, *options_.clock, tree_, request).run();
}

void FileObjectStore::get_range(const RequestContext& context, GetRequest request,
                                Completion<GetResult> done) {
  auto pass = reads_.enter();
  if (!pass) return done.complete(failure(StatusCode::kCancelled, "the store is being closed"));
  // Shared, because a refused task is destroyed by the executor and would take the answer with it.
  auto answer = std::make_shared<Completion<GetResult>>(std::move(done));
  Status submitted = disk_.submit(
      [this, context, request = std::move(request), answer, pass = std::move(pass)]() mutable {
        Result<GetResult> result = read(context, request);
        pass.reset();  // Before the answer: whoever gets it may close the store.
        answer->complete(std::move(result));
      });
  if (!submitted.ok()) answer->complete(failure(std::move(submitted)));
}

Result<ByteRange> FileObjectStore::range_of(const GetRequest& request, std::uint64_t size) const {
  if (!request.range) {
    if (size > request.bytes_max) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("'{}' has {} bytes, more than the {} that the caller takes",
                                 request.key.value(), size, request.bytes_max));
    }
    return ByteRange{0, size};
  }
  if (request.range->offset >= size) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("the range starts at byte {} of '{}', which has {}",
                               request.range->offset, request.key.value(), size));
  }
  return ByteRange{request.range->offset,
                   std::min(request.range->length, size - request.range->offset)};
}

Result<GetResult> FileObjectStore::read(const RequestContext& context,
                                        const GetRequest& request) const {
  MR_RETURN_IF_ERROR(validate_key(request.key));
  MR_RETURN_IF_ERROR(context.check(*options_.clock));
  if (request.range && request.range->empty()) {
    return failure(StatusCode::kInvalidArgument, "a range of length 0 holds nothing to read");
  }
  MR_ASSIGN_OR_RETURN(OpenObject object, open_object(request.key));
  if (request.identity && *request.identity != object.info.identity) {
    return failure(
        changed(request.key, fmt::format("it is now {}, not {}", object.info.identity.value(),
                                         request.identity->value())));
  }
  MR_ASSIGN_OR_RETURN(const ByteRange range, range_of(request, object.info.size));
  MR_ASSIGN_OR_RETURN(Slice data, read_range(context, object, range));
  const bool whole = range.length == object.info.size;
  if (whole && object.attributes && object.attributes->crc32c &&
      *object.attributes->crc32c != crc32c(data.bytes())) {
    return failure(
        StatusCode::kCorruption,
        fmt::format("the bytes of '{}' do not have the checksum {:08x} that was recorded "
                    "when they were written ({})",
                    request.key.value(), *object.attributes->crc32c, object.file.path()));
  }
  return GetResult{std::move(data), std::move(object.info)};
}

Result<Slice> FileObjectStore::read_range(const RequestContext& context, const OpenObject& object,
                                          ByteRange range) const {
  Buffer buffer;
  if (options_.buffers != nullptr && range.length > 0) {
    MR_ASSIGN_OR_RETURN(buffer, options_.buffers->allocate(context, range.length));
  } else {
    buffer = Buffer::allocate(range.length);
  }
  MR_ASSIGN_OR_RETURN(const std::size_t count, object.file.read_at(range.offset, buffer.bytes()));
  MR_ASSIGN_OR_RETURN(const struct stat now, object.file.stat());
  if (count != range.length || now.st_size != object.facts.st_size ||
      file_object_store::modified_ns(now) != file_object_store::modified_ns(object.facts)) {
    return failure(changed(object.info.key, "somebody wrote into the file while it was read"));
  }
  return std::move(buffer).freeze();
}

}  // namespace millrace
