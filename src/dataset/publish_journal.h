#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "dataset/content_hash.h"
#include "dataset/pack_planner.h"
#include "objectstore/object.h"
#include "platform/digest.h"
#include "platform/file.h"

namespace millrace {

// An object that a publish has stored, and the files whose content it holds.
struct StoredContent {
  struct Member {
    std::uint64_t content_offset = 0;
    ContentHash hash = {};
  };
  ObjectKey key = {};
  ObjectIdentity identity = {};
  std::uint64_t size = 0;
  // One for each unit; none when the bytes did not pass through here.
  std::vector<std::uint32_t> checksums = {};
  // In the order of the plan.
  std::vector<Member> members = {};
};

// What a publish has done, in a local file, so that one that was killed goes on where it was and
// uploads nothing twice.
//
// A record is an object together with a digest of what it was made from: names, sizes, times and
// tokens of its files. A record counts when that is what the plan says again; a file that changed
// since makes another digest. Records that were torn by a kill are cut off. Nothing is synced: what
// a power loss takes is uploaded again, to the same key.
//
// Safe from any thread but for open().
class PublishJournal {
 public:
  // Opens or makes the file. It belongs to one process at a time: kConflict, with its name, when
  // another one publishes the same. What is not a journal of `title` (which store, version and
  // source it is about) is begun anew.
  static Result<std::unique_ptr<PublishJournal>> open(const std::string& path,
                                                      const std::string& title);

  // The nonce of the reservation; the same every time.
  const std::string& nonce() const { return nonce_; }
  // Forgets everything, and takes another nonce: the reservation was lost.
  Status restart(const std::string& nonce);

  // What was stored for this plan; nothing when it was not, or not quite.
  Result<std::optional<StoredContent>> find(const Sha256Digest& plan) const;
  Status add(const Sha256Digest& plan, const StoredContent& content);
  // The store does not have it any more: it is to be stored again.
  Status forget(const Sha256Digest& plan);

  // The work is done.
  Status remove();

 private:
  PublishJournal(File file, std::string title) : file_(std::move(file)), title_(std::move(title)) {}
  Status load();
  Status append(ByteView payload, std::uint64_t& at) MR_REQUIRES(mutex_);

  const File file_;
  const std::string title_;
  std::string nonce_;

  mutable Mutex mutex_;
  std::uint64_t end_ MR_GUARDED_BY(mutex_) = 0;
  std::map<Sha256Digest, std::uint64_t> records_ MR_GUARDED_BY(mutex_);
};

// Of the files that go into one object, in their order.
Sha256Digest plan_digest(const std::vector<const SourceEntry*>& files);

}  // namespace millrace
