#include "frontends/fuse/fuse_pins.h"

#include <utility>

namespace millrace {

std::uint64_t FusePins::add(NodeNumber node, std::shared_ptr<OpenFile> file, std::uint64_t handle,
                            std::uint64_t unique) {
  if (!is_kept(node)) return handle;
  // No other request of the mount has this number, before or after a restart.
  if (handle == 0) handle = kOwnHandle | unique;
  MutexLock lock(mutex_);
  Pin& pin = pins_[node.value()];
  if (pin.handles.empty()) pin.file = std::move(file);
  pin.handles.insert(handle);
  return handle;
}

void FusePins::remove(NodeNumber node, std::uint64_t handle) {
  if (!is_kept(node)) return;
  MutexLock lock(mutex_);
  const auto found = pins_.find(node.value());
  if (found == pins_.end()) return;
  found->second.handles.erase(handle);
  if (found->second.handles.empty()) pins_.erase(found);
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
