#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

std::string size_at(const Json& document, const char* name) {
  return format_size(document.value(name, std::uint64_t{0}));
}

std::string store_text(const Json& store) {
  const std::string url = store.value("url", "");
  if (!store.value("asked", false)) return url + " (being asked)";
  if (store.value("answers", false)) return url + " (answers)";
  return fmt::format("{} (does not answer since {}: {})", url, store.value("since", ""),
                     store.value("error", ""));
}

std::string cache_text(const Json& cache) {
  return fmt::format("{}: {} of {} used{}, {} leased{}", cache.value("directory", ""),
                     size_at(cache, "used_bytes"), size_at(cache, "limit_bytes"),
                     cache.value("counted", true) ? "" : " (still counting)",
                     size_at(cache, "leased_bytes"),
                     cache.value("encrypted", false) ? ", encrypted" : "");
}

// "mounts 2, sessions 1": what it counts, whatever that is.
std::string front_end_text(const Json& front_end) {
  std::vector<std::string> counts;
  for (const auto& [name, value] : front_end.items()) {
    if (name == "name" || value.is_null()) continue;
    counts.push_back(
        fmt::format("{} {}", name, value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return fmt::format("{}", fmt::join(counts, ", "));
}

Result<int> show_status(Session& session) {
  MR_ASSIGN_OR_RETURN(const Json status, ControlClient(session).get("/v1/status"));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(status));
    return 0;
  }
  const Json none = Json::object();
  const Json memory = status.value("memory", none);
  std::vector<std::vector<std::string>> rows = {
      {"daemon:", fmt::format("millrace {}, process {}, since {}", status.value("version", ""),
                              status.value("pid", 0), status.value("started", ""))},
      {"socket:", status.value("socket", "")},
      {"store:", store_text(status.value("store", none))},
      {"cache:", cache_text(status.value("cache", none))},
      {"memory:", fmt::format("{} of {} in buffers, {} resident", size_at(memory, "buffer_bytes"),
                              size_at(memory, "limit_bytes"), size_at(memory, "resident_bytes"))}};
  for (const Json& front_end : status.value("front_ends", Json::array())) {
    rows.push_back({front_end.value("name", "") + ":", front_end_text(front_end)});
  }
  MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  return 0;
}

}  // namespace

void register_status(CommandLine& line, CLI::App& root) {
  CLI::App* const command =
      root.add_subcommand("status", "Show the daemon of this machine: store, cache, memory");
  line.runs(command, show_status);
}

}  // namespace millrace::cli
