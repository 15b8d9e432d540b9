#pragma once

#include <cstdint>
#include <memory>

#include "base/fetch_account.h"
#include "base/request_context.h"
#include "dataset/version_ref.h"

namespace millrace {

// What one caller reads of one version; what is fetched for it is charged to it too. Safe from any
// thread. Short: it runs inside reads.
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
  // Never null. Kept by the files that the caller has open.
  virtual std::shared_ptr<ReadAccount> account(const VersionRef& version, const Caller& caller) = 0;
};

}  // namespace millrace
