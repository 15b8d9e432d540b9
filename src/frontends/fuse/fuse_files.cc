#include "frontends/fuse/fuse_files.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/at_hand.h"
#include "base/log.h"
#include "cache/unit.h"
#include "frontends/fuse/fuse_kernel.h"

namespace millrace {
namespace {

// Grows, since what is waited for may take minutes. Ends at once when it is called off.
class Pause {
 public:
  explicit Pause(const Cancellation& cancellation)
      : cancellation_(cancellation), subscribed_(cancellation.subscribe([this] { end(); })) {}
  ~Pause() { cancellation_.unsubscribe(subscribed_); }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

  void wait() MR_EXCLUDES(mutex_) {
    const auto deadline = std::chrono::steady_clock::now() + length_;
    length_ = std::min(length_ * 2, kLengthMax);
    MutexLock lock(mutex_);
    while (!ended_ && ended_now_.wait_until(mutex_, deadline)) {
    }
  }

 private:
  static constexpr Duration kLengthMax = std::chrono::seconds(10);

  void end() MR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ended_ = true;
    ended_now_.notify_all();
  }

  const Cancellation& cancellation_;
  Duration length_ = std::chrono::milliseconds(50);
  Mutex mutex_;
  CondVar ended_now_;
  bool ended_ MR_GUARDED_BY(mutex_) = false;
  const Cancellation::CallbackId subscribed_;  // Last: the callback may run at once.
};

}  // namespace

FuseFiles::FuseFiles(Tree& tree, const FuseDevice& device, OpenTable table, bool passthrough)
    : files_(tree), device_(device), passthrough_(passthrough), table_(std::move(table)) {}

// The records stay for whoever serves the mount next.
FuseFiles::~FuseFiles() = default;

Result<FuseOpened> FuseFiles::open(const RequestContext& context, NodeNumber node,
                                   std::uint64_t unique) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<OpenFile> file, this->file(context, node));
  MR_RETURN_IF_ERROR(AtHandOnly::may_note());
  // Small objects have no file of their own. All others are tracked, handed over or not: whoever
  // serves the mount next must know in which mode they are open.
  if (file->size() <= kSmallObjectBytesMax) return FuseOpened{};
  {
    MutexLock lock(mutex_);
    if ((unique & fuse_kernel::kResent) != 0) {
      unique &= ~fuse_kernel::kResent;
      // Somebody opened it for this request before, and was killed before the answer.
      if (const std::optional<std::uint64_t> handle = table_.find(unique)) {
        const auto found = tracked_.find(node.value());
        return FuseOpened{*handle, found == tracked_.end() ? 0 : found->second.backing};
      }
    }
    const auto found = tracked_.find(node.value());
    if (found != tracked_.end()) return add(context, *file, node, unique);
  }
  std::unique_ptr<CompleteObject> whole;
  if (passthrough_) whole = file->complete(context).value_or(nullptr);
  MR_RETURN_IF_ERROR(AtHandOnly::may_note());  // Again: that it was refused looks like "not whole".
  MutexLock lock(mutex_);
  const auto [place, is_first] = tracked_.try_emplace(node.value());
  if (is_first && whole) hand_over(place->second, std::move(whole));
  return add(context, *file, node, unique);
}

void FuseFiles::hand_over(Tracked& tracked, std::unique_ptr<CompleteObject> whole) {
  const Result<std::int32_t> id = device_.open_backing(whole->descriptor());
  if (!id) {
    // Else it fails for good: the kernel or the cache's file system cannot, or we may not.
    if (id.error() == StatusCode::kResourceExhausted) return;
    if (!passthrough_.exchange(false)) return;
    log_warn("files are not handed to the kernel; reads go through this process",
             {{"error", id.error().message()}});
    return;
  }
  table_.note_backing(*id);
  tracked.backing = *id;
  tracked.whole = std::move(whole);
}

Result<FuseOpened> FuseFiles::add(const RequestContext& context, OpenFile& file, NodeNumber node,
                                  std::uint64_t unique) {
  Tracked& tracked = tracked_.at(node.value());
  Result<std::uint64_t> handle =
      table_.add({.unique = unique, .node = node, .backing = tracked.backing});
  if (!handle) {
    if (tracked.opens == 0) close(node, tracked);
    return failure(std::move(handle).error());
  }
  ++tracked.opens;
  if (tracked.backing != 0) {
    ++passthrough_opens_;
    file.count_handed_out(context);
  }
  return FuseOpened{*handle, tracked.backing};
}

void FuseFiles::release(std::uint64_t handle) {
  if (handle == 0) return;
  MutexLock lock(mutex_);
  const std::optional<OpenTable::Record> record = table_.remove(handle);
  if (!record) return;
  const auto found = tracked_.find(record->node.value());
  if (found == tracked_.end()) return;
  if (--found->second.opens == 0) close(record->node, found->second);
}

void FuseFiles::close(NodeNumber node, Tracked& tracked) {
  if (tracked.backing != 0) device_.close_backing(tracked.backing);
  tracked_.erase(node.value());
}

std::vector<NodeNumber> FuseFiles::handed_over() {
  MutexLock lock(mutex_);
  std::vector<NodeNumber> nodes;
  for (const auto& [node, tracked] : tracked_) {
    if (tracked.backing != 0) nodes.emplace_back(node);
  }
  return nodes;
}

void FuseFiles::resume() {
  std::vector<OpenTable::Record> records;
  MutexLock lock(mutex_);
  table_.visit([&records](const OpenTable::Record& record) { records.push_back(record); });
  for (const OpenTable::Record& record : records) {
    Tracked& tracked = tracked_[record.node.value()];
    ++tracked.opens;
    tracked.backing = record.backing;
  }
  close_lost_backings();
}

void FuseFiles::hold_again(const RequestContext& context) {
  Pause pause(context.cancellation());
  std::vector<NodeNumber> nodes = handed_over();
  while (!nodes.empty() && !context.cancellation().requested()) {
    std::erase_if(nodes, [&](NodeNumber node) { return !is_checked_later(context, node); });
    if (!nodes.empty()) pause.wait();
  }
}

bool FuseFiles::is_checked_later(const RequestContext& context, NodeNumber node) {
  {
    MutexLock lock(mutex_);
    if (!tracked_.contains(node.value())) return false;  // It was closed.
  }
  const Result<std::shared_ptr<OpenFile>> file = this->file(context, node);
  if (!file) return file.error() == StatusCode::kUnavailable;
  Result<std::unique_ptr<CompleteObject>> whole = (*file)->complete(context);
  // Otherwise it was evicted; the kernel's copy lives on.
  if (!whole) return whole.error() == StatusCode::kUnavailable;
  MutexLock lock(mutex_);
  const auto found = tracked_.find(node.value());
  if (found != tracked_.end() && found->second.backing != 0) {
    found->second.whole = *std::move(whole);
  }
  return false;
}

void FuseFiles::close_lost_backings() {
  std::set<std::int32_t> lost = {table_.removed_backing()};
  // Ids are given out in order, so one that was not noted any more is behind the last.
  const std::int32_t last = table_.last_backing();
  for (std::int32_t id = last; id <= last + kLostBackingsMax; ++id)
    lost.insert(id);
  lost.erase(0);
  for (const auto& [node, tracked] : tracked_)
    lost.erase(tracked.backing);
  for (const std::int32_t id : lost)
    device_.close_backing(id);
}

}  // namespace millrace
