#include "dataset/store_resolver.h"

namespace millrace {

Result<std::shared_ptr<ObjectStore>> refuse_other_stores(const std::string& /*url*/) {
  return failure(StatusCode::kUnsupported, "no other store can be opened here");
}

}  // namespace millrace
