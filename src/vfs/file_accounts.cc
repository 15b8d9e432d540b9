#include "vfs/file_accounts.h"

#include <utility>

namespace millrace {

FileAccounts::FileAccounts(ReadObserver* observer, std::string what,
                           std::shared_ptr<const Caller> opener) {
  if (observer == nullptr || opener == nullptr) return;
  observer_ = observer;
  what_ = std::move(what);
  opener_ = std::move(opener);
  opener_account_ = observer_->account(what_, *opener_);
}

std::shared_ptr<ReadAccount> FileAccounts::of(const RequestContext& context) const {
  if (observer_ == nullptr || context.caller() == opener_) return opener_account_;
  return observer_->account(what_, *context.caller());
}

}  // namespace millrace
