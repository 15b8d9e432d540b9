#pragma once

#include <memory>
#include <string>

#include "base/request_context.h"
#include "vfs/read_observer.h"

namespace millrace {

// Whom the reads of an open file count for. Nearly all are the opener's, whose account is kept; the
// others' are asked for each time. Safe from any thread.
class FileAccounts {
 public:
  // Of nobody.
  FileAccounts() = default;
  // `observer` may be null, and outlives this otherwise; `what` is as it takes it. `opener` is null
  // when nothing will be read.
  FileAccounts(ReadObserver* observer, std::string what, std::shared_ptr<const Caller> opener);

  // Null when nobody counts.
  std::shared_ptr<ReadAccount> of(const RequestContext& context) const;

 private:
  ReadObserver* observer_ = nullptr;
  std::string what_;
  std::shared_ptr<const Caller> opener_;
  std::shared_ptr<ReadAccount> opener_account_;
};

}  // namespace millrace
