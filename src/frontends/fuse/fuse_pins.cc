#include "frontends/fuse/fuse_pins.h"

#include <utility>

namespace millrace {

void FusePins::add(NodeNumber node, std::shared_ptr<OpenFile> file) {
  if (!is_kept(node)) return;
  MutexLock lock(mutex_);
  Pin& pin = pins_[node.value()];
  if (pin.opens++ == 0) pin.file = std::move(file);
}

void FusePins::remove(NodeNumber node) {
  if (!is_kept(node)) return;
  MutexLock lock(mutex_);
  const auto found = pins_.find(node.value());
  if (found != pins_.end() && --found->second.opens == 0) pins_.erase(found);
}

std::shared_ptr<OpenFile> FusePins::file(NodeNumber node) {
  if (!is_kept(node)) return nullptr;
  MutexLock lock(mutex_);
  const auto found = pins_.find(node.value());
  return found == pins_.end() ? nullptr : found->second.file;
}

std::size_t FusePins::size() const {
  MutexLock lock(mutex_);
  return pins_.size();
}

}  // namespace millrace
