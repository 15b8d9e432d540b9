#pragma once

#include <memory>
#include <string>

#include "objectstore/open_store.h"
#include "objectstore/retry_control.h"

namespace millrace {

// The S3 back end for a URL, with endpoint, region and credentials looked up where AWS's own tools
// look: the URL's parameters first, then the environment, then the profile. Sends nothing. Retries
// of upload parts count against `retries`.
Result<std::shared_ptr<ObjectStore>> open_s3_store(const StoreUrl& url,
                                                   const StoreEnvironment& environment,
                                                   std::shared_ptr<RetryControl> retries);

// Fetches the credentials that such a store would use and says what and whence they are, without
// any secret: for `doctor`. Blocks; may ask the network.
Result<std::string> describe_s3_credentials(const RequestContext& context, const StoreUrl& url,
                                            const StoreEnvironment& environment);

}  // namespace millrace
