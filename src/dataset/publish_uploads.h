#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/task_group.h"
#include "dataset/pack_builder.h"
#include "dataset/pack_planner.h"
#include "dataset/publish_journal.h"
#include "dataset/publish_point.h"
#include "dataset/source_tree.h"
#include "dataset/version_ref.h"
#include "objectstore/object_store.h"

namespace millrace {

// Below this lie the objects of one reservation: "imagenet/v2/<nonce>/".
std::string reservation_prefix(const VersionRef& ref, std::string_view nonce);
// A pack below such a prefix, and whether a key may be that of one.
ObjectKey pack_key(std::string_view prefix, std::uint64_t number);
bool is_pack_key(std::string_view key);

struct PublishUploadOptions {
  // Everything below it is ours, and nobody wrote there before: reservation_prefix(), or a folder
  // below it.
  std::string prefix;
  std::size_t parallel = 8;
  // One request, its retries included.
  Duration request_timeout = std::chrono::minutes(5);
  // Stores nothing: what the journal does not have is kPreconditionFailed.
  bool only_noted = false;
  // Set when the source is in the same store: then the store copies files that become objects.
  std::function<ObjectInfo(const SourceEntry&)> copied_from = nullptr;
  // Told of bytes as they are stored or found stored; from any thread.
  std::function<void(std::uint64_t bytes)> stored = [](std::uint64_t) {};
  // See PublishOptions.
  std::function<void(PublishPoint)> reached = [](PublishPoint) {};
};

struct PublishUploadTotals {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  // Of these, what an earlier attempt had stored already.
  std::uint64_t resumed_objects = 0;
  std::uint64_t resumed_bytes = 0;
};

// Stores what the planner decides, several objects at a time, each noted in the journal when the
// store has it. add_pack() and add_object() block while enough is under way; they and wait() belong
// to one thread. Everything outlives this.
class PublishUploads final : public PackPlanSink {
 public:
  PublishUploads(const RequestContext& context, ObjectStore& store, BufferPool& pool, Clock& clock,
                 SourceTree& source, PublishJournal& journal, PublishUploadOptions options);

  Status add_pack(PlannedPack pack) override;
  Status add_object(SourceEntry file) override;
  // Waits until everything is stored.
  Status wait() { return tasks_.wait(); }
  // Asks the store again for every object: each must be there as it was stored. After wait().
  // kConflict names one that is not; the journal forgets all of those, and missed_objects() is
  // true.
  Status check_all(const RequestContext& context);
  bool missed_objects() const;

  PublishUploadTotals totals() const;
  // The plans of packs, and those of objects, in their order: the journal has what came of them.
  const std::vector<Sha256Digest>& packs() const { return packs_; }
  const std::vector<Sha256Digest>& objects() const { return objects_; }

 private:
  // A file's own path, and what stands for a path that is no key.
  ObjectKey path_key(const std::string& path) const;
  ObjectKey digest_key(const std::string& path) const;
  RequestContext request(const RequestContext& context) const;
  // True when an earlier attempt has stored it; kPreconditionFailed when it must have, and has not.
  Result<bool> is_stored(const Sha256Digest& plan);
  void count(std::uint64_t bytes, bool resumed);
  Status store_pack(const RequestContext& context, const PlannedPack& pack, std::uint64_t number,
                    const Sha256Digest& plan);
  Status store_object(const RequestContext& context, const SourceEntry& file,
                      const Sha256Digest& plan);
  Result<StoredContent> store_file(const RequestContext& context, const SourceEntry& file,
                                   const ObjectKey& key);
  Result<StoredContent> upload_file(const RequestContext& context, const SourceEntry& file,
                                    const ObjectKey& key);
  Result<StoredContent> copy_file(const RequestContext& context, const SourceEntry& file,
                                  const ObjectKey& key);
  Status check(const RequestContext& context, const Sha256Digest& plan);

  ObjectStore& store_;
  BufferPool& pool_;
  Clock& clock_;
  SourceTree& source_;
  PublishJournal& journal_;
  const PublishUploadOptions options_;
  ThreadPool readers_;
  PackBuilder builder_;

  std::vector<Sha256Digest> packs_;
  std::vector<Sha256Digest> objects_;
  std::atomic<std::uint64_t> objects_done_ = 0;
  std::atomic<std::uint64_t> bytes_done_ = 0;
  std::atomic<std::uint64_t> objects_resumed_ = 0;
  std::atomic<std::uint64_t> bytes_resumed_ = 0;
  mutable Mutex mutex_;
  Status missed_ MR_GUARDED_BY(mutex_);  // The first object that check() missed.
  TaskGroup tasks_;                      // Last: its tasks use the members above.
};

}  // namespace millrace
