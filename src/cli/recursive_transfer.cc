#include "cli/recursive_transfer.h"

#include <atomic>
#include <filesystem>

#include <fmt/format.h>

#include "base/task_group.h"
#include "base/utf8.h"
#include "platform/file_error.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// One copy of a whole tree: walks the source, and hands each name to the group.
class TreeTransfer {
 public:
  TreeTransfer(Session& session, const Endpoint& source, const Endpoint& target,
               const TransferOptions& options, std::size_t parallel, Progress& progress)
      : session_(session),
        source_(source),
        target_(target),
        options_(options),
        progress_(progress),
        group_(session.context(), parallel) {
    // Each of the parallel copies has fewer ranges under way, so that memory stays as it was.
    options_.limits.ranges_in_flight = 2;
  }

  Result<TransferTotals> run() {
    const auto* const local = std::get_if<LocalPath>(&source_);
    Status walked =
        local != nullptr ? walk_directory(local->path) : walk_store(std::get<Location>(source_));
    const Status finished = group_.wait();
    const std::uint64_t copied = objects_.load();
    for (const Status& status : {walked, finished}) {
      if (status.ok()) continue;
      return failure(status.code(),
                     fmt::format("{} (stopped; {} copied before)", status.message(), copied));
    }
    return TransferTotals{copied, skipped_.load(), bytes_.load()};
  }

 private:
  Status walk_directory(const std::string& directory) {
    std::error_code error;
    fs::recursive_directory_iterator entry(directory, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      const fs::path& path = entry->path();
      if (entry->is_directory(error) && !entry->is_symlink(error)) continue;
      if (!entry->is_regular_file(error)) {
        return {StatusCode::kInvalidArgument,
                fmt::format("'{}' is neither a file nor a directory: move it away first",
                            path.string())};
      }
      const std::string name = path.lexically_relative(directory).generic_string();
      if (!is_utf8(name)) {
        return {StatusCode::kInvalidArgument,
                fmt::format("the name of '{}' is not UTF-8: rename it first", path.string())};
      }
      MR_RETURN_IF_ERROR(add(LocalPath{path.string()}, name));
    }
    if (error) return file_error(error.value(), "read the directory", directory);
    return {};
  }

  Status walk_store(const Location& location) {
    MR_ASSIGN_OR_RETURN(const auto store, session_.store(location.store));
    ListRequest request;
    request.prefix = location.directory_prefix();
    bool found = false;
    do {
      MR_ASSIGN_OR_RETURN(const ListPage page, store->list(session_.request(), request));
      for (const ObjectInfo& info : page.objects) {
        found = true;
        const std::string name = info.key.value().substr(request.prefix.size());
        // Some tools mark a directory by an empty object whose name ends in '/'.
        if (name.empty() || name.ends_with('/')) continue;
        MR_RETURN_IF_ERROR(add(Location{location.store, info.key.value()}, name));
      }
      request.continuation = page.continuation;
    } while (!request.continuation.empty());
    if (found || location.is_root()) return {};
    return {StatusCode::kNotFound, fmt::format("nothing below {}", location.to_string())};
  }

  Result<Endpoint> target_of(const std::string& name) const {
    if (const auto* const location = std::get_if<Location>(&target_)) return location->child(name);
    const auto* const local = std::get_if<LocalPath>(&target_);
    // Keys come from others: "a/../../.bashrc" must not leave the directory.
    const fs::path relative = fs::path(name).lexically_normal();
    if (relative.is_absolute() || relative.string().starts_with("..") ||
        relative != fs::path(name)) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("the object '{}' has no name that a file can have: copy it by "
                                 "itself to a name of your choice",
                                 name));
    }
    return LocalPath{(fs::path(local->path) / relative).string()};
  }

  Status add(Endpoint source, const std::string& name) {
    MR_ASSIGN_OR_RETURN(Endpoint target, target_of(name));
    return group_.add([this, source = std::move(source),
                       target = std::move(target)](const RequestContext& context) -> Status {
      auto bytes = transfer(session_, context, source, target, options_, progress_);
      if (!bytes && options_.keep_existing &&
          bytes.error().code() == StatusCode::kPreconditionFailed) {
        skipped_.fetch_add(1);
        return {};
      }
      if (!bytes) return std::move(bytes).error();
      objects_.fetch_add(1);
      bytes_.fetch_add(*bytes);
      progress_.add_objects(1);
      return {};
    });
  }

  Session& session_;
  const Endpoint& source_;
  const Endpoint& target_;
  TransferOptions options_;
  Progress& progress_;
  std::atomic<std::uint64_t> objects_ = 0;
  std::atomic<std::uint64_t> skipped_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  TaskGroup group_;  // Last: its tasks use the members above.
};

}  // namespace

Result<TransferTotals> transfer_tree(Session& session, const Endpoint& source,
                                     const Endpoint& target, const TransferOptions& options,
                                     std::size_t parallel, Progress& progress) {
  if (std::holds_alternative<StandardStream>(source) ||
      std::holds_alternative<StandardStream>(target)) {
    return failure(StatusCode::kInvalidArgument, "-r copies trees: '-' is a stream");
  }
  if (!std::holds_alternative<Location>(source) && !std::holds_alternative<Location>(target)) {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("neither '{}' nor '{}' is in a store: write a URL, or store:{} for a "
                    "path inside --store",
                    describe(source), describe(target), describe(target)));
  }
  const auto* const local = std::get_if<LocalPath>(&source);
  std::error_code error;
  if (local != nullptr && !fs::is_directory(local->path, error)) {
    if (error) return failure(file_error(error.value(), "read the directory", local->path));
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' is no directory: leave out -r", local->path));
  }
  const auto* const from = std::get_if<Location>(&source);
  const auto* const to = std::get_if<Location>(&target);
  if (from != nullptr && to != nullptr && from->store == to->store &&
      to->directory_prefix().starts_with(from->directory_prefix())) {
    // The listing would meet the copies, and copy them again.
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is inside {}: copy to a place outside it", to->to_string(),
                               from->to_string()));
  }
  // Starts what is shared before the threads that use it.
  for (const Endpoint* end : {&source, &target}) {
    const auto* const location = std::get_if<Location>(end);
    if (location == nullptr) continue;
    const auto access = end == &target ? Session::Access::kWrite : Session::Access::kRead;
    if (auto store = session.store(location->store, access); !store) return failure(store.error());
  }
  return TreeTransfer(session, source, target, options, parallel, progress).run();
}

}  // namespace millrace::cli
