#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/request_context.h"
#include "base/status.h"
#include "vfs/version_tree.h"

namespace millrace {

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

  // Lists what is below the root of `store`. kNotFound when that is nothing; kInvalidArgument names
  // keys that cannot be files.
  Result<std::shared_ptr<VersionTree>> open(const RequestContext& context,
                                            std::shared_ptr<ObjectStore> store) const;

 private:
  const Parts parts_;
};

}  // namespace millrace
