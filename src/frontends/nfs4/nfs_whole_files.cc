#include "frontends/nfs4/nfs_whole_files.h"

#include <utility>

namespace millrace {

NfsWholeFiles::~NfsWholeFiles() { looks_.close(); }

std::shared_ptr<const CompleteObject> NfsWholeFiles::find(NodeNumber node) {
  MutexLock lock(mutex_);
  const auto found = known_.find(node);
  if (found == known_.end() || found->second.file == nullptr) return nullptr;
  found->second.used = clock_.now();
  return found->second.file;
}

bool NfsWholeFiles::begin_look(NodeNumber node) {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.now();
  const auto found = known_.find(node);
  if (found == known_.end()) {
    if (known_.size() >= kFilesMax) return false;
    known_.emplace(node, Known{.file = nullptr, .used = now});
    return true;
  }
  if (found->second.file != nullptr || now - found->second.used < kLookInterval) return false;
  found->second.used = now;
  return true;
}

void NfsWholeFiles::end_look(NodeNumber node, std::shared_ptr<const CompleteObject> file) {
  MutexLock lock(mutex_);
  known_[node] = {.file = std::move(file), .used = clock_.now()};
}

void NfsWholeFiles::look(NodeNumber node, std::shared_ptr<OpenFile> file,
                         const RequestContext& context) {
  if (!begin_look(node)) return;
  std::optional<Gate::Pass> pass = looks_.enter();
  if (!pass) return;
  // Nobody waits for it, so it goes on when its client does not.
  work_.resume([this, node, file = std::move(file), kept = std::move(*pass),
                asked = RequestContext(context.deadline(), context.caller())] {
    Result<std::unique_ptr<CompleteObject>> whole = file->complete(asked);
    if (!whole) return;
    file->count_handed_out(asked);
    end_look(node, std::move(*whole));
  });
}

void NfsWholeFiles::sweep() {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.now();
  std::erase_if(known_, [now](const auto& entry) { return now - entry.second.used > kUnusedMax; });
}

std::size_t NfsWholeFiles::size() const {
  MutexLock lock(mutex_);
  return known_.size();
}

}  // namespace millrace
