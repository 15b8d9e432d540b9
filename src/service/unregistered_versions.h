#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/request_context.h"
#include "base/status.h"
#include "vfs/version_tree.h"

namespace millrace {

// What is below the root of `store` now, as a manifest without a name on this machine. `directory`
// is for the listing while it is made; it is made when absent. kNotFound when there is nothing;
// kInvalidArgument names keys that cannot be files. Blocks.
Result<std::unique_ptr<Manifest>> list_unregistered(const RequestContext& context,
                                                    ObjectStore& store,
                                                    const std::string& directory, Random& random,
                                                    Clock& clock);
// What such a version is called in messages.
VersionRef unregistered_ref();

// Makes versions of objects that nobody registered: a directory, or what is below a prefix of a
// bucket, as it is at the time of the listing. Nothing is written but a manifest without a name on
// this machine, so such a version lives as long as who opened it; objects are pinned, so one
// that is changed later fails its readers.
//
// Safe from any thread; what it is made with outlives it and every version. Blocks.
class UnregisteredVersions {
 public:
  struct Parts {
    VersionReads reads;
    std::string directory;  // For the listing while it is made. Made when absent.
    Random& random;
    Clock& clock;
  };
  explicit UnregisteredVersions(Parts parts) : parts_(std::move(parts)) {}

  // Fails as list_unregistered().
  Result<std::shared_ptr<VersionTree>> open(const RequestContext& context,
                                            std::shared_ptr<ObjectStore> store) const;

 private:
  const Parts parts_;
};

}  // namespace millrace
