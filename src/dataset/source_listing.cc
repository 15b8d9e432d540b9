#include "dataset/source_listing.h"

#include <utility>

#include <fmt/format.h>

#include "base/file_name.h"

namespace millrace {

SourceListing::SourceListing(const RequestContext& context, const Clock& clock, ObjectStore& store,
                             const std::string& prefix, std::uint32_t page_entries_max,
                             SourceSink& sink)
    : context_(context),
      clock_(clock),
      store_(store),
      prefix_(prefix),
      page_entries_max_(page_entries_max),
      batch_(sink) {}

Status SourceListing::run(const SourceKeyRange& range) {
  ListRequest request{
      .prefix = prefix_, .start_after = range.after, .entries_max = page_entries_max_};
  std::string last = range.after;
  for (bool ended = false; !ended;) {
    MR_RETURN_IF_ERROR(context_.check(clock_));
    MR_ASSIGN_OR_RETURN(ListPage page, store_.list(context_, request));
    for (ObjectInfo& object : page.objects) {
      const std::string& key = object.key.value();
      if (!key.starts_with(prefix_) || (!last.empty() && key <= last)) {
        return Status(StatusCode::kInternal,
                      fmt::format("{} listed '{}' after '{}' below the prefix '{}'",
                                  store_.describe(), key, last, prefix_));
      }
      ended = !range.through.empty() && key > range.through;
      if (ended) break;
      last = key;
      MR_RETURN_IF_ERROR(add(std::move(object)));
    }
    request.continuation = std::move(page.continuation);
    ended = ended || request.continuation.empty();
  }
  MR_RETURN_IF_ERROR(settle_rest(!range.through.empty()));
  return batch_.flush();
}

Status SourceListing::add(ObjectInfo object) {
  MR_RETURN_IF_ERROR(settle_before(object.key.value()));
  std::string path = object.key.value().substr(prefix_.size());
  const bool ends_in_slash = path.empty() || path.ends_with('/');
  if (!ends_in_slash) {
    if (auto reason = entry_path_fault(path)) {
      return batch_.report(std::move(path), *std::move(reason));
    }
    held_.push_back({.object = std::move(object)});
    return {};
  }
  if (object.size > 0) {
    return batch_.report(
        std::move(path),
        fmt::format("it ends in '/' and has {} bytes, so it is neither a directory "
                    "nor a file",
                    object.size));
  }
  std::string directory = path.substr(0, path.size() - (path.empty() ? 0 : 1));
  // "" is the root, but "/" is a directory without a name.
  auto reason = path == "/" ? file_name_fault(directory) : entry_path_fault(directory);
  if (reason) return batch_.report(std::move(path), *std::move(reason));
  return batch_.add({.path = std::move(directory),
                     .kind = EntryKind::kDirectory,
                     .mtime_ns = object.modified.time_since_epoch().count()});
}

Status SourceListing::settle_before(std::string_view key) {
  while (!held_.empty() && !key.starts_with(held_.back().object.key.value())) {
    Held held = std::move(held_.back());
    held_.pop_back();
    MR_RETURN_IF_ERROR(settle(std::move(held)));
  }
  for (Held& held : held_) {
    if (key[held.object.key.value().size()] == '/') held.is_directory_too = true;
  }
  return {};
}

Status SourceListing::settle(Held held) {
  std::string path = held.object.key.value().substr(prefix_.size());
  if (held.is_directory_too) {
    return batch_.report(std::move(path), "it is an object and also a directory of other objects");
  }
  return batch_.add({.path = std::move(path),
                     .kind = EntryKind::kFile,
                     .mtime_ns = held.object.modified.time_since_epoch().count(),
                     .size = held.object.size,
                     .token = held.object.identity.value()});
}

Status SourceListing::settle_rest(bool more_keys_follow) {
  while (!held_.empty()) {
    Held held = std::move(held_.back());
    held_.pop_back();
    if (more_keys_follow && !held.is_directory_too) {
      MR_ASSIGN_OR_RETURN(held.is_directory_too, has_keys_below(held.object.key.value()));
    }
    MR_RETURN_IF_ERROR(settle(std::move(held)));
  }
  return {};
}

Result<bool> SourceListing::has_keys_below(const std::string& key) {
  const ListRequest request{.prefix = key + "/", .entries_max = 1};
  MR_ASSIGN_OR_RETURN(const ListPage page, store_.list(context_, request));
  return !page.objects.empty();
}

}  // namespace millrace
