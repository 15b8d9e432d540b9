#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/completion.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "cache/block_cache.h"
#include "platform/disk.h"
#include "service/preload.h"
#include "service/preload_journal.h"
#include "service/preload_run.h"
#include "vfs/datasets_tree.h"
#include "vfs/read_observer.h"

namespace millrace {

// The preloads of a gateway: what is to be cached before somebody reads it, and to stay.
//
// One runs at a time, in the order of asking; readers' fetches come before its own. One whose store
// is away waits for it; where others wait too, it soon goes behind them. Preloads are on the disk:
// those that had not ended when the process did, however that was, go on when this is opened again,
// and what is cached is not fetched again.
//
// Invariants:
//  1. A preload that was accepted fits, and has its lease, if it wants one, before anything is
//     fetched, and until it ends, however long that takes. What was promised to one is not promised
//     to the next.
//  2. What a preload fetches is held until it is ready, also without a lease; then only while it is
//     its turn.
//  3. Who waits is answered once, when the preload ends or his time is up.
//
// All methods are safe from any thread; all but wait() block. What it is made with outlives it.
class Preloads {
 public:
  struct Parts {
    DatasetsTree& datasets;
    BlockCache& cache;
    Disk& disk;
    Clock& clock;
    Random& random;
    std::string directory;  // For its files.
    ReadObserver* observer = nullptr;
  };
  static Result<std::unique_ptr<Preloads>> open(Parts parts, PreloadOptions options = {});
  // Stops what runs, to go on at the next start. Those who wait are told kCancelled.
  ~Preloads();

  // Accepts it, and says what it will do. One that wants the same files of the same version, and is
  // under way or leased, is joined: its lease then lasts as long as the longer of both wishes.
  // kResourceExhausted with the figures when it does not fit; kNotFound when the version, or a
  // pattern's files, are not there.
  Result<PreloadInfo> start(const RequestContext& context, PreloadRequest request)
      MR_EXCLUDES(mutex_);
  // Newest first.
  std::vector<PreloadInfo> list() MR_EXCLUDES(mutex_);
  // kNotFound when there is none, or it was long ago.
  Result<PreloadInfo> find(const PreloadId& id) MR_EXCLUDES(mutex_);
  // Ends it and its lease. Success also when it has ended: then only the lease goes.
  Result<PreloadInfo> cancel(const RequestContext& context, const PreloadId& id)
      MR_EXCLUDES(mutex_);
  // Answers with how it stands: when it has ended, at the context's deadline, or when that is
  // cancelled. Does not block.
  void wait(const RequestContext& context, const PreloadId& id, Completion<PreloadInfo> done)
      MR_EXCLUDES(mutex_);

 private:
  struct Waiting {
    // Without the lock.
    void answer(Result<PreloadInfo> how);

    Completion<PreloadInfo> done;
    std::unique_ptr<Clock::Timer> timer;
    RequestContext context;
    Cancellation::CallbackId subscription = 0;
  };
  struct Preload {
    PreloadInfo info;
    std::shared_ptr<Cancellation> cancellation;
    std::shared_ptr<PreloadProgress> progress;
    std::map<std::uint64_t, Waiting> waiting;
    // Its lease is renewed by the clock; not any more once it lasts as long as was asked for.
    bool is_renewed = true;
  };
  using Table = std::map<PreloadId, Preload>;

  Preloads(Parts parts, PreloadOptions options, PreloadJournal journal);
  Status load() MR_EXCLUDES(mutex_);
  // A kill may leave the lease of a preload that nobody has heard of yet.
  Status release_orphans() MR_EXCLUDES(mutex_);
  // Now and then, whatever the fetches wait for.
  void renew_leases() MR_EXCLUDES(mutex_);
  void arm_renewal() MR_EXCLUDES(mutex_);
  // Puts it into the queue of the one thread that runs them.
  void enqueue(const PreloadId& id);

  Status check_request(const PreloadRequest& request) const;
  Result<std::optional<PreloadInfo>> join(const RequestContext& context,
                                          const PreloadRequest& request,
                                          const std::shared_ptr<VersionTree>& tree)
      MR_EXCLUDES(mutex_);
  // Those that want the same, and are under way or may still have a lease.
  std::vector<PreloadInfo> same_as(const PreloadRequest& request) MR_EXCLUDES(mutex_);
  // Whether what was ready is still cached: a unit that was found damaged is not.
  Result<bool> is_all_there(const RequestContext& context, const PreloadInfo& preload,
                            const std::shared_ptr<VersionTree>& tree) const;
  void take_up_again(PreloadInfo& preload) MR_EXCLUDES(mutex_);
  void lengthen(PreloadInfo& preload, Duration lease) MR_EXCLUDES(mutex_);
  Status add(PreloadInfo preload) MR_EXCLUDES(mutex_);

  // What the thread does.
  void run(const PreloadId& id) MR_EXCLUDES(mutex_);
  // Waits out failures that may pass, and returns one only when others are to go first.
  Status work_patiently(const RequestContext& context, const PreloadInfo& preload,
                        PreloadProgress& progress) MR_EXCLUDES(mutex_);
  Status work(const RequestContext& context, const PreloadInfo& preload, PreloadProgress& progress);
  // Whether it has waited long enough for its store, and others could run.
  bool gives_way(const PreloadId& id, const PreloadProgress& progress) MR_EXCLUDES(mutex_);
  // Puts it behind the others. False when it has ended, or all of this does.
  bool give_way(const PreloadId& id, const Status& why) MR_EXCLUDES(mutex_);
  // Nothing when it is not to run (any more).
  std::optional<PreloadInfo> begin(const PreloadId& id, std::shared_ptr<PreloadProgress>& progress,
                                   std::shared_ptr<Cancellation>& cancellation) MR_EXCLUDES(mutex_);
  void end(const PreloadId& id, const Status& status) MR_EXCLUDES(mutex_);
  bool keeps_lease(const PreloadId& id, const Status& status) MR_EXCLUDES(mutex_);
  void release_lease(const PreloadId& id);
  // What was asked for by now, and from now on is not renewed.
  std::optional<Duration> final_lease(const PreloadId& id) MR_EXCLUDES(mutex_);
  // It is, since the preload goes on.
  void renew_on(const PreloadId& id) MR_EXCLUDES(mutex_);

  PreloadInfo described(const Preload& preload) const;
  void add_leases(std::vector<PreloadInfo>& preloads);
  void answer_now(const PreloadId& id, std::uint64_t waiter) MR_EXCLUDES(mutex_);
  std::uint64_t next_waiter() MR_EXCLUDES(mutex_);
  // Takes `done`, or returns its answer when there is nothing to wait for.
  std::optional<Result<PreloadInfo>> add_waiter(const RequestContext& context, const PreloadId& id,
                                                std::uint64_t waiter,
                                                Cancellation::CallbackId subscription,
                                                Completion<PreloadInfo>& done) MR_EXCLUDES(mutex_);
  void save(const PreloadInfo& preload) MR_REQUIRES(mutex_);
  void forget_old_ones() MR_REQUIRES(mutex_);

  const Parts parts_;
  const PreloadOptions options_;
  // Held over all of a start, so that two do not both find room for one.
  Mutex starting_;

  Mutex mutex_;
  PreloadJournal journal_ MR_GUARDED_BY(mutex_);
  Table preloads_ MR_GUARDED_BY(mutex_);
  std::uint64_t last_waiter_ MR_GUARDED_BY(mutex_) = 0;
  bool stopping_ MR_GUARDED_BY(mutex_) = false;

  std::unique_ptr<Clock::Timer> renewal_ MR_GUARDED_BY(mutex_);

  Gate timers_;  // Of those who wait.
  // Last: they use the members above.
  ThreadPool thread_;
  ThreadPool renewals_;
};

}  // namespace millrace
