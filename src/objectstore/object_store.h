#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/completion.h"
#include "base/request_context.h"
#include "base/status.h"
#include "objectstore/object.h"

namespace millrace {

struct GetRequest {
  ObjectKey key = {};
  // Nothing: the whole object, checked against the store's checksum where it gives one. A range
  // that passes the end is cut there; one that starts at or after the end is kInvalidArgument.
  std::optional<ByteRange> range = {};
  // When set, the object must still be this one: kPreconditionFailed otherwise.
  std::optional<ObjectIdentity> identity = {};
  // Without a range: an object larger than this is refused with kInvalidArgument, so that no answer
  // can take more memory than its caller planned for.
  std::uint64_t bytes_max = 64 * kMiB;
};

struct GetResult {
  Slice data;
  // Size and identity of the whole object that the data is part of; metadata is empty.
  ObjectInfo info;
};

struct ListRequest {
  std::string prefix = {};
  // Folds keys that go on past the next '/' after the prefix into one entry of `prefixes`.
  bool fold_directories = false;
  // Only keys greater than this, for the first page.
  std::string start_after = {};
  // From the page before; empty for the first page.
  std::string continuation = {};
  // A page may be shorter and still have a successor.
  std::uint32_t entries_max = 1000;
};

struct ListPage {
  // Ascending by the bytes of the key.
  std::vector<ObjectInfo> objects;
  // Ascending, each ends in '/'.
  std::vector<std::string> prefixes;
  // Empty on the last page.
  std::string continuation;
};

// A demand on what the key holds at the instant of a write.
struct WriteCondition {
  enum class Kind : std::uint8_t { kNone, kIfAbsent, kIfIdentity };
  Kind kind = Kind::kNone;
  ObjectIdentity identity = {};

  static WriteCondition none() { return {}; }
  static WriteCondition if_absent() { return {Kind::kIfAbsent, {}}; }
  static WriteCondition if_identity(ObjectIdentity id) {
    return {Kind::kIfIdentity, std::move(id)};
  }
};

struct PutOptions {
  WriteCondition condition = {};
  ObjectMetadata metadata = {};
  // For uploads: about how large the object will be, 0 if unknown. Stores that limit the number of
  // parts choose their size by it.
  std::uint64_t size_hint = 0;
};

// An object being written in pieces. Invisible until finish() succeeds; then whole.
//
// Lifecycle: write() any number of times, then finish() or abort(), from one thread at a time.
// Destruction without finish() aborts. Pieces may be of any size: the implementation cuts them into
// the parts that its store wants and sends several at once.
class Upload {
 public:
  virtual ~Upload() = default;

  // Takes the next bytes. May block while earlier ones are being sent, so memory stays bounded;
  // bytes may still be on their way when it returns, and the context then goes on governing them.
  // After a failure the upload can only be aborted.
  virtual Status write(const RequestContext& context, Slice data) = 0;

  // Makes the object visible. kPreconditionFailed when the condition of the options did not hold.
  // When the outcome is in doubt (the answer was lost) it finds out before it answers; if it
  // cannot, the failure is kUnavailable and the object may or may not be there.
  virtual Result<ObjectInfo> finish(const RequestContext& context) = 0;

  // Gives up and frees what was stored so far. Success when nothing is left behind.
  virtual Status abort(const RequestContext& context) = 0;
};

// Objects: immutable byte strings under keys, replaced whole. One instance is one bucket, directory
// or the like.
//
// Every call ends by its context's deadline. All methods are safe from any thread; all but
// get_range block and must not run on an event loop. Implementations make one attempt;
// RetryingObjectStore makes it several.
//
// Failures common to all: kUnavailable, kThrottled, kDeadlineExceeded, kCancelled,
// kUnauthenticated, kPermissionDenied, kInvalidArgument (bad key), kCorruption (a check failed,
// nothing was delivered), kNotFound.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Delivers exactly the range, cut at the object's end, of one version of the object.
  virtual void get_range(const RequestContext& context, GetRequest request,
                         Completion<GetResult> done) = 0;

  // What is known about one object, metadata included.
  virtual Result<ObjectInfo> head(const RequestContext& context, const ObjectKey& key) = 0;

  // One page of keys. A prefix that matches nothing is an empty page.
  virtual Result<ListPage> list(const RequestContext& context, const ListRequest& request) = 0;

  // Stores a small object whole. On success it is durable, and the info has its new identity.
  // kPreconditionFailed when the condition did not hold, kConflict when a concurrent writer makes
  // the outcome of the condition unclear (repeat from reading). The store may have taken the write
  // although the call failed with kUnavailable or kDeadlineExceeded.
  virtual Result<ObjectInfo> put(const RequestContext& context, const ObjectKey& key, Slice data,
                                 const PutOptions& options) = 0;

  // Begins a large object. The store must outlive the upload.
  virtual Result<std::unique_ptr<Upload>> start_upload(const RequestContext& context,
                                                       const ObjectKey& key,
                                                       const PutOptions& options) = 0;

  // Copies inside the store, without the bytes passing through here, with the source's metadata.
  // The source must still be `source.identity` if that is not empty: kPreconditionFailed otherwise,
  // and then the target may hold something else on a store that does not honour the condition.
  virtual Result<ObjectInfo> copy(const RequestContext& context, const ObjectInfo& source,
                                  const ObjectKey& target) = 0;

  // Removes all the keys, those that are absent included. On failure some may be gone; the message
  // names the first that could not be removed. Repeating is safe.
  virtual Status remove(const RequestContext& context, std::span<const ObjectKey> keys) = 0;

  // Where this is, for messages: "s3://bucket/prefix at http://host:9000". Holds no secret.
  virtual std::string describe() const = 0;

  // The blocking form of get_range.
  Result<GetResult> get(const RequestContext& context, GetRequest request);
};

// The rules of ObjectKey and ObjectMetadata, checked before anything is sent. The message says
// which rule is broken.
Status validate_key(const ObjectKey& key);
Status validate_metadata(const ObjectMetadata& metadata);

}  // namespace millrace
