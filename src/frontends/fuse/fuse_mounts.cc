#include "frontends/fuse/fuse_mounts.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "cache/unit.h"
#include "frontends/fuse/fuse_mount.h"
#include "frontends/fuse/mount_facts.h"

namespace millrace {
namespace {

// Between two keepers that are started because the one before has gone, whatever it is that ends
// them.
constexpr Duration kKeeperPause = std::chrono::seconds(1);

Status not_there(const std::string& path) {
  const bool is_bucket = path == "/buckets" || path.starts_with("/buckets/");
  return {StatusCode::kNotFound,
          fmt::format("there is no '{}' to mount: {}", path,
                      is_bucket ? "the setting 'buckets' names what is shown there"
                                : "'millrace dataset ls' lists the datasets, 'millrace version ls "
                                  "NAME' the versions of one")};
}

std::string facts_text(const FuseMountPlan& plan, const FuseView& view) {
  return mount_facts_text({.path = plan.path,
                           .directory = plan.directory,
                           .allow_other = plan.allow_other,
                           .view = view});
}

}  // namespace

FuseMounts::FuseMounts(Parts parts)
    : parts_(std::move(parts)),
      wake_(File::adopt(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      watching_([this] { watch(); }) {}

FuseMounts::~FuseMounts() { stop(parts_.clock.now()); }

Result<FuseView> FuseMounts::view(const RequestContext& context, const FuseMountPlan& plan) {
  const Result<NodeAttributes> found = parts_.files.resolve(context, plan.path);
  if (!found) {
    return failure(found.error() == StatusCode::kNotFound ? not_there(plan.path) : found.error());
  }
  const NodeAttributes& root = *found;
  if (root.kind != NodeKind::kDirectory) {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("'{}' is not a directory; only directories can be mounted", plan.path));
  }
  FuseView view{.root = root.number,
                .is_immutable = place_of(root.number) == NodePlace::kVersion,
                .uid = ::geteuid(),
                .gid = ::getegid()};
  if (plan.opening) {
    view.opening = *plan.opening;
  } else if (view.is_immutable) {
    MR_ASSIGN_OR_RETURN(const TreeUsage usage, parts_.files.usage(context, root.number));
    // Objects up to that size are never files of their own on the cache disk.
    const bool is_small =
        usage.bytes / std::max<std::uint64_t>(usage.nodes, 1) <= kSmallObjectBytesMax;
    if (is_small) view.opening = FuseOpening::kStateless;
  }
  return view;
}

std::unique_ptr<FuseSession> FuseMounts::session(File device, OpenTable opens,
                                                 const FuseView& view) {
  return std::make_unique<FuseSession>(FuseDevice(std::move(device)), std::move(opens), view,
                                       FuseParts{.tree = parts_.files,
                                                 .clock = parts_.clock,
                                                 .late_answers = parts_.late_answers,
                                                 .metrics = parts_.metrics,
                                                 .callers = callers_,
                                                 .timeout = parts_.timeout,
                                                 .ended = [this] { wake(); }});
}

Status FuseMounts::ensure_keeper() {
  if (keeper_ && !keeper_->is_gone()) return {};
  MR_ASSIGN_OR_RETURN(FuseKeeper started, FuseKeeper::start(parts_.keeper_socket, parts_.restart));
  keeper_ = std::make_shared<FuseKeeper>(std::move(started));
  if (!mounts_.empty()) {
    log_warn("the keeper of mounts was killed, and another has taken its place",
             {{"mounts", mounts_.size()}});
  }
  for (auto& [number, mount] : mounts_)
    mount.is_kept = false;
  // What it refuses is no matter of who needs it for another mount; the watching thread says it.
  static_cast<void>(keep_all());
  wake();
  return {};
}

Status FuseMounts::keep(const std::string& number, const std::string& facts, int device,
                        int opens) {
  MR_RETURN_IF_ERROR(ensure_keeper());
  return keeper_->keep(number, facts, device, opens);
}

Status FuseMounts::keep_all() {
  Status first;
  for (auto& [number, mount] : mounts_) {
    if (mount.is_kept) continue;
    FuseConnection& connection = mount.session->connection();
    const Status kept =
        keeper_->keep(number, facts_text(mount.plan, connection.view),
                      connection.device.descriptor(), connection.files.opens_descriptor());
    mount.is_kept = kept.ok();
    if (first.ok()) first = kept;
  }
  return first;
}

bool FuseMounts::is_keeper_missing() {
  if (mounts_.empty()) return false;
  return !keeper_ || keeper_->is_gone() ||
         std::ranges::any_of(mounts_, [](const auto& entry) { return !entry.second.is_kept; });
}

void FuseMounts::wake() const {
  const std::uint64_t one = 1;
  // Can only fail when the counter is full, and then the thread is awake anyway.
  [[maybe_unused]] const auto written = ::write(wake_.descriptor(), &one, sizeof(one));
}

void FuseMounts::watch() {
  TimePoint next_start{};
  std::string said;
  while (true) {
    // Ended outside the lock, and here alone: it waits for workers, who may want the lock.
    std::vector<std::unique_ptr<FuseSession>> over;
    std::shared_ptr<FuseKeeper> keeper;
    bool is_missing = false;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      drop_ended();
      const auto [first, last] = std::ranges::partition(
          detached_, [](const auto& session) { return !session->is_over(); });
      std::ranges::move(first, last, std::back_inserter(over));
      detached_.erase(first, last);
      is_missing = is_keeper_missing();
      if (is_missing && parts_.clock.now() >= next_start) {
        Status kept = ensure_keeper();
        if (kept.ok()) kept = keep_all();
        // Once, however often it is tried.
        if (!kept.ok() && kept.message() != said) {
          log_error("a mount has no keeper, and ends with this process until it has one",
                    {{"error", kept.message()}});
        }
        said = kept.message();
        next_start = parts_.clock.now() + kKeeperPause;
        is_missing = is_keeper_missing();
      }
      keeper = keeper_;
    }
    over.clear();
    const int watched_keeper = keeper && !is_missing ? keeper->descriptor() : -1;
    std::array<pollfd, 2> watched{
        {{wake_.descriptor(), POLLIN, 0}, {watched_keeper, POLLRDHUP, 0}}};
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(kKeeperPause).count();
    ::poll(watched.data(), watched.size(), is_missing ? static_cast<int>(pause) : -1);
    std::uint64_t ignored = 0;
    [[maybe_unused]] const auto got = ::read(wake_.descriptor(), &ignored, sizeof(ignored));
  }
}

Result<FuseMountInfo> FuseMounts::mount(const RequestContext& context, const FuseMountPlan& plan) {
  MR_ASSIGN_OR_RETURN(const FuseView view, this->view(context, plan));
  MR_ASSIGN_OR_RETURN(OpenTable opens, OpenTable::create());
  MutexLock lock(mutex_);
  if (stopping_) return failure(StatusCode::kCancelled, "the gateway stops");
  drop_ended();
  if (const std::optional<ListedMount> there = find_at(plan.directory)) {
    if (plan.unless_mounted && shows_the_same(*there, plan, view)) {
      FuseMountInfo found = info(there->number, mounts_.at(there->number));
      found.was_there = true;
      return found;
    }
    return failure(StatusCode::kConflict,
                   fmt::format("'{}' shows {} already; unmount it first", plan.directory,
                               mounts_.at(there->number).plan.path));
  }
  // Before the file system is anywhere, and before its first request: a daemon that is killed at
  // any point of this leaves no dead mount, and nobody waits for an answer that dies with it. Where
  // fusermount3 puts it in its place, nothing that takes time comes between that and the keeper.
  MR_RETURN_IF_ERROR(ensure_keeper());
  Result<MadeFuse> made = make_fuse({.source = "millrace:" + plan.path,
                                     .directory = plan.directory,
                                     .allow_other = plan.allow_other,
                                     .noexec = plan.noexec});
  if (!made) {
    leave_keeper();
    return failure(std::move(made).error());
  }
  const std::string number = made->number;
  Status kept = keep(number, facts_text(plan, view), made->device.descriptor(), opens.descriptor());
  if (!kept.ok()) return failure(give_up(number, std::move(kept)));
  // One that has the number has just ended, and is in the way here and at the keeper no more.
  detach(number);
  if (Status placed = place_fuse(*made, plan.directory); !placed.ok()) {
    return failure(give_up(number, std::move(placed)));
  }
  Mount mount{plan, session(std::move(made->device), std::move(opens), view), true};
  if (Status started = mount.session->start(); !started.ok()) {
    return failure(give_up(number, std::move(started)));
  }
  raise_readahead(number);
  const auto [place, is_new] = mounts_.emplace(number, std::move(mount));
  log_info("mounted", {{"path", plan.path}, {"directory", plan.directory}});
  return info(number, place->second);
}

Status FuseMounts::give_up(const std::string& number, Status why) {
  static_cast<void>(detach_fuse(number));
  let_go(number);
  leave_keeper();
  return why;
}

Status FuseMounts::take_over() {
  MutexLock lock(mutex_);
  Result<FuseKeeper> found = FuseKeeper::connect(parts_.keeper_socket);
  if (!found) {
    // Where its path is too long for a socket nothing was kept. Who mounts will hear of it.
    const bool has_none =
        found.error() == StatusCode::kNotFound || found.error() == StatusCode::kInvalidArgument;
    return has_none ? Status() : found.error();
  }
  Result<std::vector<KeptMount>> kept = found->kept();
  // It ended just now: it had nothing to keep, or gave it up.
  if (!kept) return kept.error() == StatusCode::kUnavailable ? Status() : kept.error();
  keeper_ = std::make_shared<FuseKeeper>(*std::move(found));
  wake();
  for (KeptMount& mount : *kept) {
    const std::string number = mount.number;
    // One that has ended meanwhile left its number to others.
    if (is_fuse_connected(mount.device.descriptor())) {
      const Status resumed = resume(std::move(mount));
      if (resumed.ok()) continue;
      log_error("a mount cannot be served any more",
                {{"mount", number}, {"error", resumed.to_string()}});
      static_cast<void>(detach_fuse(number));
    }
    let_go(number);
  }
  // One of an older version does not know it, and need not.
  static_cast<void>(keeper_->serve());
  leave_keeper();
  return {};
}

Status FuseMounts::resume(KeptMount kept) {
  MR_ASSIGN_OR_RETURN(const MountFacts facts, parse_mount_facts(kept.facts));
  MR_ASSIGN_OR_RETURN(OpenTable opens, OpenTable::adopt(std::move(kept.opens)));
  Mount mount{{.path = facts.path,
               .directory = facts.directory,
               .opening = facts.view.opening,
               .allow_other = facts.allow_other},
              session(std::move(kept.device), std::move(opens), facts.view),
              true};
  MR_RETURN_IF_ERROR(mount.session->take_over());
  log_info("took a mount over", {{"path", facts.path}, {"directory", facts.directory}});
  mounts_.insert_or_assign(kept.number, std::move(mount));
  return {};
}

std::optional<ListedMount> FuseMounts::find_at(const std::string& directory) {
  for (ListedMount& mount : std::views::reverse(listed_mounts())) {
    if (mount.directory == directory && mounts_.contains(mount.number)) return std::move(mount);
  }
  return std::nullopt;
}

bool FuseMounts::shows_the_same(const ListedMount& there, const FuseMountPlan& plan,
                                const FuseView& view) {
  const Mount& mount = mounts_.at(there.number);
  const FuseView& shown = mount.session->connection().view;
  // Others may always look at root's mounts.
  const bool same_users = mount.plan.allow_other == plan.allow_other || ::geteuid() == 0;
  const std::optional<ListedMount> uppermost = uppermost_mount(plan.directory);
  return mount.plan.path == plan.path && shown.root == view.root && shown.opening == view.opening &&
         same_users && uppermost && uppermost->number == there.number;
}

Status FuseMounts::unmount(const std::string& directory, bool lazy) {
  MutexLock lock(mutex_);
  const std::optional<ListedMount> there = find_at(directory);
  if (!there) {
    return {StatusCode::kNotFound, fmt::format("nothing of ours is mounted on '{}'", directory)};
  }
  MR_RETURN_IF_ERROR(unmount_fuse(*there, lazy));
  if (!places_of(there->number).empty()) return {};
  // Somebody may still see it: who has it open, or has mounts of his own, as containers have.
  detach(there->number);
  let_go(there->number);
  leave_keeper();
  return {};
}

void FuseMounts::detach(const std::string& number) {
  const auto found = mounts_.find(number);
  if (found == mounts_.end()) return;
  detached_.push_back(std::move(found->second.session));
  mounts_.erase(found);
}

void FuseMounts::drop_ended() {
  std::vector<std::string> ended;
  for (const auto& [number, mount] : mounts_) {
    if (mount.session->is_over()) ended.push_back(number);
  }
  for (const std::string& number : ended) {
    detach(number);
    let_go(number);
    leave_keeper();
  }
}

void FuseMounts::leave_keeper() {
  if (!keeper_ || !mounts_.empty()) return;
  // It has nothing to keep any more, and ends when we are gone from it.
  static_cast<void>(keeper_->leave());
  keeper_.reset();
  wake();
}

void FuseMounts::let_go(const std::string& number) {
  if (!keeper_) return;
  const Status status = keeper_->let_go(number);
  // One that has gone is replaced by another, which does not know this mount.
  if (!status.ok() && status != StatusCode::kUnavailable) {
    log_warn("the keeper of mounts does not let go of one", {{"error", status.message()}});
  }
}

FuseMountInfo FuseMounts::info(const std::string& number, const Mount& mount) {
  FuseConnection& connection = mount.session->connection();
  // Nowhere is one that others took out of sight while it is in use.
  const std::vector<ListedMount> places = places_of(number);
  return {.path = mount.plan.path,
          .directory = places.empty() ? mount.plan.directory : places.front().directory,
          .number = number,
          .opening = connection.view.opening,
          .is_immutable = connection.view.is_immutable,
          .passthrough_opens = connection.files.passthrough_opens(),
          .passthrough_files = connection.files.backings()};
}

std::vector<FuseMountInfo> FuseMounts::list() {
  MutexLock lock(mutex_);
  drop_ended();
  std::vector<FuseMountInfo> all;
  for (const auto& [number, mount] : mounts_)
    all.push_back(info(number, mount));
  std::ranges::sort(all, {}, &FuseMountInfo::directory);
  return all;
}

bool FuseMounts::any_changes() {
  MutexLock lock(mutex_);
  return std::ranges::any_of(mounts_, [](const auto& entry) {
    return !entry.second.session->connection().view.is_immutable;
  });
}

void FuseMounts::stop(TimePoint deadline) {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (watching_.joinable()) watching_.join();
  const std::vector<std::unique_ptr<FuseSession>> sessions = unmount_all();
  for (const auto& session : sessions)
    session->stop(deadline);
}

std::vector<std::unique_ptr<FuseSession>> FuseMounts::unmount_all() {
  MutexLock lock(mutex_);
  for (const auto& [number, mount] : mounts_) {
    if (mount.session->is_over()) continue;
    for (const ListedMount& place : places_of(number)) {
      if (unmount_fuse(place, false).ok()) continue;
      log_warn("a mount is in use and goes anyway", {{"directory", place.directory}});
      static_cast<void>(unmount_fuse(place, true));
    }
  }
  std::vector<std::unique_ptr<FuseSession>> sessions = std::exchange(detached_, {});
  for (auto& [number, mount] : mounts_) {
    let_go(number);
    sessions.push_back(std::move(mount.session));
  }
  mounts_.clear();
  // Before the wait for what is under way: a process that is ended in it must not be started again.
  leave_keeper();
  return sessions;
}

}  // namespace millrace
