#include <memory>

#include <fmt/format.h>

#include "app/times.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

struct LsOptions {
  std::string url = std::string(kStorePrefix);
  bool recursive = false;
  bool details = false;
};

Status print_object(Output& output, const ObjectInfo& info, bool details) {
  if (output.json()) {
    return output.document({{"type", "object"},
                            {"key", info.key.value()},
                            {"size", info.size},
                            {"modified", format_time(info.modified)},
                            {"identity", info.identity.value()}});
  }
  if (!details) return output.line(info.key.value());
  return output.line(fmt::format("{:>10}  {}  {}", format_size(info.size),
                                 format_time(info.modified), info.key.value()));
}

Status print_prefix(Output& output, const std::string& prefix, bool details) {
  if (output.json()) return output.document({{"type", "prefix"}, {"key", prefix}});
  return output.line(details ? fmt::format("{:>10}  {:20}  {}", "-", "", prefix) : prefix);
}

// Objects and folded directories are two sorted lists; people expect one.
Status print_page(Output& output, const ListPage& page, bool details) {
  auto prefix = page.prefixes.begin();
  for (const ObjectInfo& info : page.objects) {
    for (; prefix != page.prefixes.end() && *prefix < info.key.value(); ++prefix) {
      MR_RETURN_IF_ERROR(print_prefix(output, *prefix, details));
    }
    MR_RETURN_IF_ERROR(print_object(output, info, details));
  }
  for (; prefix != page.prefixes.end(); ++prefix) {
    MR_RETURN_IF_ERROR(print_prefix(output, *prefix, details));
  }
  return {};
}

Result<int> list_store(Session& session, const LsOptions& options) {
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(options.url));
  MR_ASSIGN_OR_RETURN(const auto store, session.store(location.store));
  Output& output = session.output();
  std::uint64_t shown = 0;
  // The name itself may be an object, beside everything below it.
  if (!location.is_root() && !location.key.ends_with('/')) {
    auto info = store->head(session.request(), location.object_key());
    if (info) {
      MR_RETURN_IF_ERROR(print_object(output, *info, options.details));
      ++shown;
    } else if (info.error().code() != StatusCode::kNotFound) {
      return failure(std::move(info).error());
    }
  }
  ListRequest request;
  request.prefix = location.directory_prefix();
  request.fold_directories = !options.recursive;
  do {
    MR_ASSIGN_OR_RETURN(const ListPage page, store->list(session.request(), request));
    MR_RETURN_IF_ERROR(print_page(output, page, options.details));
    shown += page.objects.size() + page.prefixes.size();
    request.continuation = page.continuation;
  } while (!request.continuation.empty());
  if (shown == 0 && !location.is_root()) {
    return failure(StatusCode::kNotFound,
                   fmt::format("nothing at or below {}", location.to_string()));
  }
  return 0;
}

}  // namespace

void register_store_ls(CommandLine& line, CLI::App& store) {
  auto options = std::make_shared<LsOptions>();
  CLI::App* const command = store.add_subcommand("ls", "List objects, directories folded");
  command->add_option("url", options->url, "What to list: a URL, or a path inside --store")
      ->type_name("URL");
  command->add_flag("-r,--recursive", options->recursive, "List everything below, unfolded");
  command->add_flag("-l,--long", options->details, "Show size and time of change");
  line.runs(command, [options](Session& session) { return list_store(session, *options); });
}

}  // namespace millrace::cli
