#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/manifest.h"
#include "dataset/store_resolver.h"
#include "dataset/version_ref.h"
#include "objectstore/object_store.h"

namespace millrace {

struct VersionReaderOptions {
  // How much of an object is fetched at once by a reader that goes on where it stopped. A multiple
  // of the cache's unit.
  std::uint64_t window_bytes = 4 * kMiB;
  // One request, its retries included.
  Duration request_timeout = std::chrono::minutes(5);
  // Opens the other stores that registered objects lie in.
  StoreResolver stores = refuse_other_stores;
  // Opens the layout that the version has by now. Asked once, when an object is gone: a repack may
  // have moved its content. Null: a reader lives and dies with its layout.
  std::function<Result<std::unique_ptr<Manifest>>(const RequestContext& context)> newest_layout =
      nullptr;
};

// Reads the files of one version straight from their stores, without a cache: for those who read a
// version once, from end to end.
//
// What is delivered is what the manifest names: every request is conditional on the identity of its
// object, and whole units are fetched and held against their checksums where the manifest has them.
// An object that changed or is gone is kPreconditionFailed, bytes that fail their check are
// kCorruption. A store that cannot be opened or asked keeps its own code, kNotFound aside, which
// becomes kUnavailable. All of them name dataset, version, key and store.
//
// Where the version was repacked meanwhile, files are read on by the layout that it has by then:
// entries are the same in all of them.
//
// Safe from any thread. Store, manifest and clock outlive it. Blocks.
class VersionReader {
 public:
  // `store` is the one that the manifest is in.
  VersionReader(ObjectStore& store, const Manifest& manifest, VersionRef ref,
                VersionReaderOptions options = {}, Clock& clock = system_clock())
      : store_(store),
        manifest_(manifest),
        ref_(std::move(ref)),
        options_(std::move(options)),
        clock_(clock) {}

  // The same with another window.
  VersionReader with_window(std::uint64_t window_bytes) const;

  const Manifest& manifest() const { return manifest_; }
  // Where content is to be looked for now: the manifest, or the one of a later layout.
  const Manifest& layout() const MR_EXCLUDES(mutex_);
  // Another layout than `tried`, in which an object was missing; null when there is none to try.
  // Lives as long as the reader.
  const Manifest* layout_after(const RequestContext& context, const Manifest& tried) const
      MR_EXCLUDES(mutex_);
  const VersionRef& ref() const { return ref_; }
  const VersionReaderOptions& options() const { return options_; }

  // The units `range` starts and ends with are fetched whole; `range` lies in the object, and
  // starts at a unit.
  Result<Slice> fetch(const RequestContext& context, const ManifestObject& object,
                      ByteRange range) const;
  // Asks the store whether the object is still the one that the manifest names.
  Status check_object(const RequestContext& context, const ManifestObject& object) const;

 private:
  RequestContext request(const RequestContext& context) const;
  // Where the object is.
  Result<std::shared_ptr<ObjectStore>> store_of(const ManifestObject& object) const;
  Status explain(const Status& status, const ManifestObject& object,
                 const ObjectStore& store) const;
  Status check_units(const ManifestObject& object, const ObjectStore& store, ByteRange range,
                     ByteView bytes) const;

  ObjectStore& store_;
  const Manifest& manifest_;
  const VersionRef ref_;
  const VersionReaderOptions options_;
  Clock& clock_;

  mutable Mutex mutex_;
  mutable bool asked_ MR_GUARDED_BY(mutex_) = false;
  mutable std::unique_ptr<Manifest> newest_ MR_GUARDED_BY(mutex_);
};

// Files of a version one after the other. Holds on to what was fetched last, so that neighbours in
// a pack come with one request. Memory: one window, or one read where that is larger. Needs one
// thread at a time; the reader outlives it.
class VersionWindow {
 public:
  explicit VersionWindow(const VersionReader& reader) : reader_(reader) {}

  // Fills `into` from `offset` of a file. Returns how much there was: less than asked for only at
  // the end of the file. Fails as VersionReader does, and as the manifest.
  Result<std::size_t> read_at(const RequestContext& context, const ManifestEntry& entry,
                              std::uint64_t offset, MutableByteView into);

 private:
  Result<std::size_t> read_by(const Manifest& layout, const RequestContext& context,
                              ManifestEntry entry, std::uint64_t offset, MutableByteView into);
  Status read_extent(const RequestContext& context, const ManifestEntry& entry,
                     const Extent& extent, std::uint64_t offset, MutableByteView into);
  Status load(const RequestContext& context, const ManifestEntry& entry, const Extent& extent,
              ByteRange wanted);

  const VersionReader& reader_;
  const Manifest* layout_ = nullptr;  // That the window is of.
  // The object of the window, by its number or, for one without, by its entry.
  std::optional<ManifestObject> object_;
  std::uint32_t number_ = 0;
  EntryIndex owner_ = 0;
  std::uint64_t begin_ = 0;
  Slice bytes_;
};

}  // namespace millrace
