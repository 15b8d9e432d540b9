#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "dataset/known_files.h"
#include "dataset/manifest.h"
#include "dataset/manifest_builder.h"
#include "dataset/publish_entries.h"
#include "dataset/publish_journal.h"
#include "platform/digest.h"

namespace millrace {

// Writes the manifest of a publish whose objects are all stored, in one pass over its entries.
// Needs one thread. Everything outlives it.
class PublishManifest {
 public:
  struct Sources {
    const PublishedEntries& entries;
    // The files that became objects of their own, in their order. All others were packed.
    const SpooledPaths& object_paths;
    // The plans of packs, and those of objects, in their order: the journal has what came of them.
    const std::vector<Sha256Digest>& packs;
    const std::vector<Sha256Digest>& objects;
    const PublishJournal& journal;
    // Manifests that content is taken over from, by number.
    std::vector<const Manifest*> bases = {};
    // Told the hash of every file; null: nobody wants to know.
    KnownFilesWriter* known = nullptr;
  };
  static Result<ManifestSummary> write(const Sources& sources, const std::string& path,
                                       const std::string& scratch);

 private:
  PublishManifest(const Sources& sources, std::unique_ptr<ManifestBuilder> builder);
  Status add(const PublishedEntry& entry);
  Status take_over(std::uint32_t base, EntryIndex reused, NewEntry& entry);
  Status find_stored(const SourceEntry& file, NewEntry& entry);
  Status next_pack();
  Result<std::uint32_t> add_object(const StoredContent& content);
  static Status place(const StoredContent& content, std::size_t member, std::uint32_t object,
                      NewEntry& entry);

  const Sources sources_;
  const std::unique_ptr<ManifestBuilder> builder_;
  SpooledPaths::Reader object_paths_;
  std::optional<std::string> next_object_path_;
  std::size_t objects_ = 0;
  std::size_t packs_ = 0;
  std::optional<StoredContent> pack_;  // That the next packed file is in.
  std::uint32_t pack_object_ = 0;
  std::size_t member_ = 0;
  // Objects of the bases that were met, by base and number there.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> base_objects_;
};

}  // namespace millrace
