#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "dataset/pack_builder.h"
#include "dataset/source_tree.h"
#include "dataset/version_reader.h"

namespace millrace {

// A version as a source, for those who make something else of its files. Every file is what the
// manifest says, or reading it fails: nothing changes while it is read.
//
// Reads of all files share one window, so that neighbours come with one request, and wait for one
// another: who reads in parallel makes several. The token of an entry is its index. Safe from any
// thread; the reader outlives it.
class VersionSource final : public SourceTree {
 public:
  explicit VersionSource(const VersionReader& reader) : reader_(reader), window_(reader) {}

  // On the calling thread, in the order of the manifest.
  Status scan(const RequestContext& context, SourceSink& sink) override;
  // kInvalidArgument for an entry that no scan of this version gave.
  Result<std::unique_ptr<SourceFile>> open(const RequestContext& context,
                                           const SourceEntry& entry) override;
  std::string describe() const override { return reader_.ref().text(); }

  // What scan() gives for an entry.
  static Result<SourceEntry> source_entry(const Manifest& manifest, const ManifestEntry& entry,
                                          std::string path);
  // The entry that a token stands for; its path must be this one.
  static Result<ManifestEntry> manifest_entry(const Manifest& manifest, const SourceEntry& entry);

 private:
  friend class VersionSourceFile;
  Result<std::size_t> read(const RequestContext& context, const ManifestEntry& entry,
                           std::uint64_t offset, MutableByteView into) MR_EXCLUDES(mutex_);

  const VersionReader& reader_;
  Mutex mutex_;
  VersionWindow window_ MR_GUARDED_BY(mutex_);
};

// Whether the members of a pack that was made of files of this version have the content that the
// manifest says: kCorruption, with version and path, when not.
Status check_pack_content(const VersionReader& reader, const PlannedPack& pack,
                          const BuiltPack& built);

}  // namespace millrace
