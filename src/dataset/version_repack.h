#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/manifest_store.h"
#include "dataset/publish_manifest.h"
#include "dataset/registry.h"

namespace millrace {

struct RepackOptions {
  // Local, for pages of manifests and for temporary files.
  std::string manifest_directory;
  // One request, its retries included.
  Duration request_timeout = std::chrono::minutes(5);
};

// Moves what versions need out of packs, so that the packs become garbage. Content is verified on
// the way, as whoever reads a version does, and by the SHA-256 of every file.
//
// Invariants:
//  1. What is stored for a version lies below the nonce of a repack in its log, which began before
//     anything was read for it.
//  2. The new layout names objects of the old one, its own, and those of versions that were moved
//     before and are found to have that layout still. (docs/garbage_collection.md, P1 to P4.)
//  3. A file that several versions share is copied once, for the first of them.
//  4. Memory: some 64 bytes for each file that was moved.
//
// Lifecycle: one for each set of packs; versions one after the other. What `access` refers to
// outlives it. Needs one thread at a time. Blocks.
class VersionRepacker {
 public:
  VersionRepacker(const RegistryAccess& access, RepackOptions options,
                  const std::vector<std::string>& packs);
  ~VersionRepacker();
  VersionRepacker(const VersionRepacker&) = delete;
  VersionRepacker& operator=(const VersionRepacker&) = delete;

  // Which of the packs a manifest names, by the number of the object there.
  using PackNumbers = std::unordered_map<std::uint32_t, std::uint32_t>;
  Result<PackNumbers> packs_of(const Manifest& manifest) const;

  struct Repacked {
    VersionLayout layout = {};
    std::uint64_t copied_bytes = 0;
  };
  // Lays a version out anew that has this layout. After a failure it has the layout that it had,
  // unless the message says that the outcome is not known: kConflict when the version changed or
  // somebody else repacks it, failures of the store, and kCorruption and kPreconditionFailed when
  // content is not what it was.
  Result<Repacked> repack(const RequestContext& context, const VersionRef& ref,
                          const VersionLayout& layout);

 private:
  class Copies;
  // A version that was moved: others may take its copies over.
  struct Base {
    VersionRef ref;
    Sha256Digest layout_digest{};
    std::unique_ptr<Manifest> manifest;
  };
  // A file that was moved: which version has it now, and where.
  struct Moved {
    std::uint32_t base = 0;
    EntryIndex entry = 0;
  };
  // A pack and an offset in it.
  using Member = std::uint64_t;
  // The files of one sample, before it is known whether any of them is moved.
  struct SampleFile;
  // One version on its way.
  struct Work;

  RequestContext request(const RequestContext& context) const;
  Result<Repacked> lay_out(const RequestContext& context, const VersionEntry& begun);
  Status find_usable_bases(Work& work);
  Status plan(Work& work);
  Status plan_sample(Work& work);
  Result<SampleFile> sample_file(Work& work, const ManifestEntry& entry, std::string path) const;
  Result<VersionLayout> store_manifest(Work& work, const std::string& path);

  const RegistryAccess& access_;
  const Registry registry_;
  const RepackOptions options_;
  const std::string scratch_;
  std::map<std::string, std::uint32_t, std::less<>> packs_;
  BufferPool buffers_;
  ManifestStore manifests_;
  std::vector<Base> bases_;
  std::unordered_map<Member, Moved> moved_;
};

}  // namespace millrace
