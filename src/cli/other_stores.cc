#include "cli/other_stores.h"

#include <fmt/format.h>

namespace millrace::cli {
namespace {

bool is_same_bucket(const StoreUrl& a, const StoreUrl& b) {
  return a.scheme == b.scheme && a.root == b.root &&
         a.parameter("endpoint") == b.parameter("endpoint");
}

// Whether `inner` lies below `outer`, or is the same.
bool reaches_around(std::string_view outer, std::string_view inner) {
  while (outer.ends_with('/'))
    outer.remove_suffix(1);
  return outer.empty() || inner == outer ||
         (inner.starts_with(outer) && inner[outer.size()] == '/');
}

}  // namespace

StoreResolver other_stores(Session& session) {
  return [&session](const std::string& text) -> Result<std::shared_ptr<ObjectStore>> {
    MR_ASSIGN_OR_RETURN(Application* const application, session.application());
    return application->other_store(text);
  };
}

Result<StoreUrl> registrable_store(const Session& session, const Location& location) {
  const StoreUrl& ours = session.settings().store;
  if (location.store.is_local() && !ours.is_local()) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is on this machine and the registry is not, so that nobody else "
                               "could read it: use publish, which copies",
                               location.to_string()));
  }
  StoreUrl url = location.store.without_prefix();
  if (!is_same_bucket(url, ours)) {
    const bool around =
        url.is_local() && url.scheme == ours.scheme && reaches_around(url.root, ours.root);
    if (!around) return url;
  } else if (url.parameters != ours.parameters) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is in the bucket of the registry: write it without parameters, "
                               "which are those of {}",
                               location.to_string(), ours.to_string()));
  } else if (!reaches_around(location.store.prefix.empty()
                                 ? location.key
                                 : location.store.prefix + "/" + location.key,
                             ours.prefix)) {
    return url;
  }
  return failure(
      StatusCode::kInvalidArgument,
      fmt::format("the store of {}, {}, has the registry itself in it, {}: name what lies "
                  "beside it, a directory with a '/' at its end",
                  location.to_string(), url.to_string(), ours.to_string()));
}

}  // namespace millrace::cli
