#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "frontends/fuse/fuse_keeper.h"
#include "frontends/fuse/fuse_session.h"
#include "frontends/fuse/mount_table.h"
#include "vfs/file_system.h"

namespace millrace {

// What somebody wants mounted.
struct FuseMountPlan {
  std::string path;       // In the tree: "/datasets/imagenet/v2"; "/" is all of it.
  std::string directory;  // Where.
  // Nothing: by what is mounted. Versions of small files are opened without asking us.
  std::optional<FuseOpening> opening;
  bool allow_other = false;
  bool noexec = false;  // No program on it can be run.
  // The same that is there already, with the same options, is no conflict.
  bool unless_mounted = false;
};

struct FuseMountInfo {
  std::string path;
  std::string directory;  // Where it is now.
  std::string number;     // Of the file system (mount_table.h).
  FuseOpening opening = FuseOpening::kPassthrough;
  bool is_immutable = false;
  bool was_there = false;               // As it was wanted: nothing was mounted.
  std::uint64_t passthrough_opens = 0;  // Since this process serves it.
  std::size_t passthrough_files = 0;    // Now.
};

// The mounts of a daemon, from their making to their end, over its own end too: a keeper holds them
// while there is none. A thread watches what comes from outside: a keeper that is killed is
// replaced at once, and mounts that somebody else ended are dropped. A mount is known by the number
// of its file system, so that it is found wherever its directory is moved to.
//
// Lifecycle: take_over() once, before all else; stop() unmounts all. Safe from any thread.
class FuseMounts {
 public:
  struct Parts {
    FileSystem& files;
    const Clock& clock;
    Executor& late_answers;
    Metrics& metrics;
    Duration timeout{};  // Of a request.
    std::string keeper_socket;
    // What starts a daemon as this one.
    std::vector<std::string> restart;
  };
  explicit FuseMounts(Parts parts);
  ~FuseMounts();

  // Goes on with what a killed daemon has left. Mounts that cannot be served any more are logged
  // and given up.
  Status take_over() MR_EXCLUDES(mutex_);

  // kNotFound when nothing is at the path; kConflict when something of ours, or of another daemon,
  // is at the directory, unless the plan takes that.
  Result<FuseMountInfo> mount(const RequestContext& context, const FuseMountPlan& plan)
      MR_EXCLUDES(mutex_);
  // kNotFound when no mount of ours is there now; kConflict while it is in use. One that somebody
  // bound to other directories too ends with the last of them. Who has mounts of his own, as
  // containers have, reads on for as long as this process lives.
  Status unmount(const std::string& directory, bool lazy) MR_EXCLUDES(mutex_);
  std::vector<FuseMountInfo> list() MR_EXCLUDES(mutex_);
  // Some mount shows more than the inside of a version.
  bool any_changes() MR_EXCLUDES(mutex_);

  // Unmounts all; what is in use goes out of sight at once, and its readers get errors.
  void stop(TimePoint deadline) MR_EXCLUDES(mutex_);

 private:
  struct Mount {
    FuseMountPlan plan;
    std::unique_ptr<FuseSession> session;
    bool is_kept = false;  // The keeper has it.
  };

  Result<FuseView> view(const RequestContext& context, const FuseMountPlan& plan);
  std::unique_ptr<FuseSession> session(File device, OpenTable opens, const FuseView& view);
  // Starts one where there is none, and gives it all mounts that it takes.
  Status ensure_keeper() MR_REQUIRES(mutex_);
  // Gives a mount to the keeper.
  Status keep(const std::string& number, const std::string& facts, int device, int opens)
      MR_REQUIRES(mutex_);
  // Gives the keeper what it has not, also when it has refused that before. The first failure; one
  // mount that is refused leaves the others theirs.
  Status keep_all() MR_REQUIRES(mutex_);
  // A mount would end with this process.
  bool is_keeper_missing() MR_REQUIRES(mutex_);
  void watch() MR_EXCLUDES(mutex_);
  // Has the watching thread look again.
  void wake() const;
  // Of a mount that cannot be served after all. Returns why.
  Status give_up(const std::string& number, Status why) MR_REQUIRES(mutex_);
  Status resume(KeptMount kept) MR_REQUIRES(mutex_);
  // Drops what was unmounted by others.
  void drop_ended() MR_REQUIRES(mutex_);
  // One that is not to be seen here any more; nothing when there is none.
  void detach(const std::string& number) MR_REQUIRES(mutex_);
  bool shows_the_same(const ListedMount& there, const FuseMountPlan& plan, const FuseView& view)
      MR_REQUIRES(mutex_);
  // What is left to stop, which nobody else knows of any more.
  std::vector<std::unique_ptr<FuseSession>> unmount_all() MR_EXCLUDES(mutex_);
  // One of ours that is mounted on the directory now.
  std::optional<ListedMount> find_at(const std::string& directory) MR_REQUIRES(mutex_);
  void let_go(const std::string& number) MR_REQUIRES(mutex_);
  // After the last mount.
  void leave_keeper() MR_REQUIRES(mutex_);
  static FuseMountInfo info(const std::string& number, const Mount& mount);

  const Parts parts_;
  FuseCallers callers_;
  const File wake_;  // An eventfd.
  Mutex mutex_;
  bool stopping_ MR_GUARDED_BY(mutex_) = false;
  // Shared with the thread that watches it.
  std::shared_ptr<FuseKeeper> keeper_ MR_GUARDED_BY(mutex_);
  std::map<std::string, Mount> mounts_ MR_GUARDED_BY(mutex_);  // By number.
  // Out of sight, and served until the last reader is gone; the watching thread ends them then.
  // They do not outlive this process.
  std::vector<std::unique_ptr<FuseSession>> detached_ MR_GUARDED_BY(mutex_);
  std::thread watching_;
};

}  // namespace millrace
