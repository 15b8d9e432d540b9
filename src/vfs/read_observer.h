#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/fetch_account.h"
#include "base/request_context.h"

namespace millrace {

// What one caller reads of one version or bucket; what is fetched for it is charged to it too. Safe
// from any thread. Short: it runs inside reads.
class ReadAccount : public FetchAccount {
 public:
  // A read was answered with so many bytes.
  virtual void add_read(std::uint64_t bytes) = 0;
  // A file of so many bytes was handed out whole: nobody sees what is read of it from then on.
  virtual void add_handed_out(std::uint64_t bytes) = 0;
};

// Is told who reads what. Safe from any thread.
class ReadObserver {
 public:
  virtual ~ReadObserver() = default;
  // `what` is a version, "pets@v1", or a bucket as it is shown, "/buckets/train". Never null. Kept
  // by the files that the caller has open.
  virtual std::shared_ptr<ReadAccount> account(std::string_view what, const Caller& caller) = 0;
};

}  // namespace millrace
