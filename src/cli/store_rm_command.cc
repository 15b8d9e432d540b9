#include <array>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

struct RmOptions {
  std::string url;
  bool recursive = false;
  bool yes = false;
};

Result<int> report(Session& session, const Location& location, std::uint64_t removed) {
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(
        session.output().document({{"url", location.to_string()}, {"removed", removed}}));
  } else {
    session.note(fmt::format("removed {} {}", removed, removed == 1 ? "object" : "objects"));
  }
  return 0;
}

Result<int> remove_one(Session& session, const Location& location, ObjectStore& store) {
  // Stores remove what is not there without a word; a person who mistyped wants to know.
  auto info = store.head(session.request(), location.object_key());
  if (!info && info.error().code() == StatusCode::kNotFound) {
    ListRequest below;
    below.prefix = location.directory_prefix();
    below.entries_max = 1;
    const auto page = store.list(session.request(), below);
    if (page && !page->objects.empty()) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("{} is no object but has objects below it: add -r to remove them "
                                 "all",
                                 location.to_string()));
    }
  }
  if (!info) return failure(std::move(info).error());
  const std::array keys = {location.object_key()};
  MR_RETURN_IF_ERROR(store.remove(session.request(), keys));
  return report(session, location, 1);
}

Result<int> remove_below(Session& session, const Location& location, ObjectStore& store) {
  const auto progress = session.progress("removing");
  std::uint64_t removed = 0;
  ListRequest request;
  request.prefix = location.directory_prefix();
  do {
    MR_ASSIGN_OR_RETURN(const ListPage page, store.list(session.request(), request));
    std::vector<ObjectKey> keys;
    for (const ObjectInfo& info : page.objects)
      keys.push_back(info.key);
    if (!keys.empty()) MR_RETURN_IF_ERROR(store.remove(session.request(), keys));
    removed += keys.size();
    progress->add_objects(keys.size());
    request.continuation = page.continuation;
  } while (!request.continuation.empty());
  progress->clear();
  if (!location.is_root() && !location.key.ends_with('/')) {
    const std::array keys = {location.object_key()};
    if (store.head(session.request(), location.object_key())) {
      MR_RETURN_IF_ERROR(store.remove(session.request(), keys));
      ++removed;
    }
  }
  if (removed == 0 && !location.is_root()) {
    return failure(StatusCode::kNotFound,
                   fmt::format("nothing at or below {}", location.to_string()));
  }
  return report(session, location, removed);
}

Result<int> remove_objects(Session& session, const RmOptions& options) {
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(options.url));
  if (location.is_root() && !options.recursive) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is a whole store: name an object in it", location.to_string()));
  }
  if (location.is_root() && !options.yes) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("this would remove everything in {}: add --yes if you mean it",
                               location.to_string()));
  }
  MR_ASSIGN_OR_RETURN(const auto store, session.store(location.store));
  if (!options.yes && Session::can_ask()) {
    const std::string what = options.recursive ? "everything at and below " : "";
    if (!session.confirm(fmt::format("Remove {}{}?", what, location.to_string()))) {
      return failure(StatusCode::kCancelled, "nothing was removed");
    }
  }
  return options.recursive ? remove_below(session, location, *store)
                           : remove_one(session, location, *store);
}

}  // namespace

void register_store_rm(CommandLine& line, CLI::App& store) {
  auto options = std::make_shared<RmOptions>();
  CLI::App* const command = store.add_subcommand("rm", "Remove objects");
  command->add_option("url", options->url, "What to remove: a URL, or a path inside --store")
      ->type_name("URL")
      ->required();
  command->add_flag("-r,--recursive", options->recursive, "Remove everything below, too");
  command->add_flag("-y,--yes", options->yes, "Do not ask");
  line.runs(command, [options](Session& session) { return remove_objects(session, *options); });
}

}  // namespace millrace::cli
