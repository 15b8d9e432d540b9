#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/gate.h"
#include "base/random.h"
#include "objectstore/file_object_store_attributes.h"
#include "objectstore/file_object_store_temporary.h"
#include "objectstore/file_object_store_tree.h"
#include "objectstore/object_store.h"

namespace millrace {

struct FileObjectStoreOptions {
  // Makes the directory, with its parents, when it is absent.
  bool create = false;
  // Where the bytes of get_range go; from the heap when null.
  BufferPool* buffers = nullptr;
  Clock* clock = &system_clock();
  Random* random = &system_random();
  // Temporary files of writers that died are removed by open() when they are older than this.
  Duration abandoned_after = std::chrono::hours(24);
};

// A directory as a bucket, for one machine or a shared file system: the embedded default.
//
// An object is a file at its key's path (file_object_store_keys.h), so other tools read and write
// them too; what they write is an object like any other, without metadata and checksum. Only
// regular files are objects: links are neither followed nor listed.
//
// What it promises:
//  1. A write is a temporary file, synced, renamed into place, and the directories synced: readers
//  and
//     whoever comes after a crash see the old object or the new one, whole. An acknowledged
//     write survives a power loss.
//  2. Conditions hold among all threads and processes: every writer holds the key's lock while it
//     looks and renames. Tools that know nothing of the lock can still come between the look and
//     the rename of if_identity; never with if_absent.
//  3. Bytes of a whole object are checked against the CRC-32C recorded at writing. A range is read
//     between two looks at the file, so that an edit in place meanwhile is kPreconditionFailed.
//
// What a directory cannot do: hold "a" and "a/b" at once, or a component of more than 255 bytes
// (kInvalidArgument both), or metadata on file systems without user attributes (kUnsupported).
//
// get_range runs on the executor given at opening, which, like the options' parts, must outlive the
// store. Destruction waits for reads under way, and must not run inside an answer.
class FileObjectStore final : public ObjectStore {
 public:
  // kNotFound when there is no such directory and none is to be made. An existing one is left
  // untouched until the first write.
  static Result<std::unique_ptr<FileObjectStore>> open(const std::string& path, Executor& disk,
                                                       const FileObjectStoreOptions& options = {});
  ~FileObjectStore() override;

  void get_range(const RequestContext& context, GetRequest request,
                 Completion<GetResult> done) override;
  Result<ObjectInfo> head(const RequestContext& context, const ObjectKey& key) override;
  Result<ListPage> list(const RequestContext& context, const ListRequest& request) override;
  Result<ObjectInfo> put(const RequestContext& context, const ObjectKey& key, Slice data,
                         const PutOptions& options) override;
  Result<std::unique_ptr<Upload>> start_upload(const RequestContext& context, const ObjectKey& key,
                                               const PutOptions& options) override;
  Result<ObjectInfo> copy(const RequestContext& context, const ObjectInfo& source,
                          const ObjectKey& target) override;
  Status remove(const RequestContext& context, std::span<const ObjectKey> keys) override;
  std::string describe() const override;

 private:
  class FileUpload;
  // An object that is open, and what it was when it was opened.
  struct OpenObject {
    File file;
    struct stat facts{};
    std::optional<file_object_store::Attributes> attributes;
    ObjectInfo info;
  };

  FileObjectStore(file_object_store::Tree tree, Executor& disk,
                  const FileObjectStoreOptions& options)
      : tree_(std::move(tree)), disk_(disk), options_(options) {}

  Result<OpenObject> open_object(const ObjectKey& key) const;
  Result<GetResult> read(const RequestContext& context, const GetRequest& request) const;
  // The part of the object that the request asks for.
  Result<ByteRange> range_of(const GetRequest& request, std::uint64_t size) const;
  Result<Slice> read_range(const RequestContext& context, const OpenObject& object,
                           ByteRange range) const;
  Status changed(const ObjectKey& key, std::string_view how) const;

  Result<file_object_store::TemporaryFile> start_write(const RequestContext& context,
                                                       const ObjectKey& key,
                                                       const ObjectMetadata& metadata) const;
  // Gives a sealed file its key, if the condition holds, and makes that durable.
  Status publish(const RequestContext& context, file_object_store::TemporaryFile& temporary,
                 const ObjectKey& key, const WriteCondition& condition) const;
  Status check_identity(const ObjectKey& key, const WriteCondition& condition) const;
  // Moves the file to `name` in `directory`. kConflict when the directory went away: try again.
  Status rename_into(const file_object_store::TemporaryFile& temporary, const File& directory,
                     const std::string& name, const ObjectKey& key, bool replace) const;
  Status copy_bytes(const RequestContext& context, const OpenObject& from, const File& to) const;
  // Removes the name alone. True when it was there.
  Result<bool> unlink_object(const RequestContext& context, const ObjectKey& key,
                             const std::string& path) const;

  // Constant after construction.
  const file_object_store::Tree tree_;
  Executor& disk_;
  const FileObjectStoreOptions options_;

  Gate reads_;
};

}  // namespace millrace
