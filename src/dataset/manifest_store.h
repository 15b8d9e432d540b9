#pragma once

#include <memory>
#include <string>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/manifest.h"
#include "dataset/registry_facts.h"
#include "objectstore/object_store.h"

namespace millrace {

inline constexpr std::string_view kManifestsPrefix = ".millrace/manifests/";

// Where the manifest of a layout lies in the store: below the nonce that it was made under, as all
// that is stored for a version, so that whoever deletes it hits nobody else's.
ObjectKey manifest_key(const VersionRef& ref, std::string_view nonce,
                       const Sha256Digest& layout_digest);

// The manifests of a store. They lie there under their own digest, so that one is never replaced,
// and is written twice only with the same bytes; pages that were read are kept in a directory.
//
// Stateless but for the directory, which may be shared with other processes. Safe from any thread.
// The store outlives this and every manifest that it opened.
class ManifestStore {
 public:
  // `directory` is made when it is needed.
  ManifestStore(ObjectStore& store, std::string directory)
      : store_(store), directory_(std::move(directory)) {}

  // Stores the manifest at `path`, made for a version under a nonce of its log, and says where; all
  // but the parents is filled. What the store has is looked at again before this succeeds; when it
  // has these very frames already, as after a kill, nothing is sent.
  Result<VersionLayout> put(const RequestContext& context, const std::string& path,
                            const VersionRef& ref, std::string_view nonce);

  // Opens a manifest; what is touched later is fetched within the context of this call, which is
  // why it should have no deadline. Takes at most three requests. kNotFound when it is not in the
  // store, kCorruption when it is another than the layout says.
  Result<std::unique_ptr<Manifest>> open(const RequestContext& context,
                                         const VersionLayout& layout);
  // Opens it with all of it on the disk: for those who read it from end to end.
  Result<std::unique_ptr<Manifest>> open_whole(const RequestContext& context,
                                               const VersionLayout& layout);

 private:
  Result<std::unique_ptr<Manifest>> open(const RequestContext& context, const VersionLayout& layout,
                                         bool whole);

  ObjectStore& store_;
  const std::string directory_;
};

}  // namespace millrace
