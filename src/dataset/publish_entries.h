#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "dataset/manifest_format.h"
#include "dataset/manifest_spool.h"
#include "dataset/source_tree.h"

namespace millrace {

// What the sorter carries for an entry of the source: all but path and kind.
void encode_source_payload(const SourceEntry& entry, std::vector<std::byte>& out);
// `entry` has path and kind already. kInternal when the payload is none.
Status decode_source_payload(ByteView payload, SourceEntry& entry);

// An entry of the version that is being published, and where its content comes from.
struct PublishedEntry {
  SourceEntry source = {};
  // A file of a base that has the content; nothing: it is stored anew, or has no content.
  std::optional<EntryIndex> reused = {};
  // Which base: see PublishManifest::Sources.
  std::uint32_t base = 0;
};

// The entries of a publish in the order of the manifest, on the disk: they are planned in one pass,
// and written to the manifest in another. Needs one thread at a time.
class PublishedEntries {
 public:
  explicit PublishedEntries(const std::string& directory) : spool_(directory) {}

  Status add(const PublishedEntry& entry);

  // From the first to the last, once all were added. Must not outlive the entries.
  class Reader {
   public:
    explicit Reader(const PublishedEntries& entries) : reader_(entries.spool_, 256 * kKiB) {}
    // Nothing at the end.
    Result<std::optional<PublishedEntry>> next();

   private:
    ManifestSpoolReader reader_;
  };

 private:
  ManifestSpool spool_;
};

// Paths in some order, on the disk.
class SpooledPaths {
 public:
  explicit SpooledPaths(const std::string& directory) : spool_(directory) {}
  Status add(const std::string& path);

  class Reader {
   public:
    explicit Reader(const SpooledPaths& paths) : reader_(paths.spool_, 64 * kKiB) {}
    Result<std::optional<std::string>> next();

   private:
    ManifestSpoolReader reader_;
  };

 private:
  ManifestSpool spool_;
};

}  // namespace millrace
