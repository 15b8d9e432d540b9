#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "dataset/source_tree.h"

namespace millrace {

// Work that makes more work, shared by the threads of a scan: directories to read, ranges to list.
//
// Invariants:
//  1. Every item that was added is taken once, unless the work failed.
//  2. take() answers nothing only when no item waits and none is in hand (so none can come any
//     more), or when the work failed.
//
// Items are taken last in, first out: a tree is walked in depth, so few wait at a time. All methods
// are safe from any thread.
template <class Item>
class SourceWork {
 public:
  // `waiting_max` bounds try_add().
  explicit SourceWork(std::size_t waiting_max) : waiting_max_(waiting_max) {}

  // False, with the item as it was, when enough are waiting.
  bool try_add(Item& item) {
    MutexLock lock(mutex_);
    if (waiting_.size() >= waiting_max_) return false;
    waiting_.push_back(std::move(item));
    changed_.notify_one();
    return true;
  }
  void add(Item item) {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(item));
    changed_.notify_one();
  }

  // Waits for an item. Whoever gets one calls done() after adding what came of it.
  std::optional<Item> take() {
    MutexLock lock(mutex_);
    while (waiting_.empty() && in_hand_ > 0 && status_.ok())
      changed_.wait(mutex_);
    if (waiting_.empty() || !status_.ok()) return std::nullopt;
    std::optional<Item> item(std::move(waiting_.back()));
    waiting_.pop_back();
    ++in_hand_;
    return item;
  }
  // Ends an item; the first failure ends the work.
  void done(const Status& status) {
    MutexLock lock(mutex_);
    --in_hand_;
    if (status_.ok()) status_ = status;
    if (in_hand_ == 0 || !status_.ok()) changed_.notify_all();
  }

  // Handles all items with `handle` on `threads` threads of its own, and returns how that went.
  Status run(const char* name, std::size_t threads, const std::function<Status(Item)>& handle) {
    {
      ThreadPool pool({.name = name, .threads = threads, .queued_tasks_max = threads});
      for (std::size_t n = 0; n < threads; ++n) {
        // resume() and not submit(): it is never refused.
        pool.resume([this, &handle] {
          while (std::optional<Item> item = take())
            done(handle(*std::move(item)));
        });
      }
    }
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  const std::size_t waiting_max_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Item> waiting_ MR_GUARDED_BY(mutex_);
  std::size_t in_hand_ MR_GUARDED_BY(mutex_) = 0;
  Status status_ MR_GUARDED_BY(mutex_);
};

// Gathers the entries of one thread of a scan, so that the sink is called rarely.
// Thread-compatible.
class SourceBatch {
 public:
  explicit SourceBatch(SourceSink& sink) : sink_(sink) { entries_.reserve(kEntries); }

  Status add(SourceEntry entry) {
    entries_.push_back(std::move(entry));
    return entries_.size() < kEntries ? Status() : flush();
  }
  Status report(std::string path, std::string reason) {
    return sink_.report({.path = std::move(path), .reason = std::move(reason)});
  }
  // Gives the rest to the sink.
  Status flush() {
    if (entries_.empty()) return {};
    const Status status = sink_.take(entries_);
    entries_.clear();
    return status;
  }

 private:
  static constexpr std::size_t kEntries = 128;

  SourceSink& sink_;
  std::vector<SourceEntry> entries_;
};

}  // namespace millrace
