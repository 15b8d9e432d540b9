#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "base/status_names.h"
#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_start.h"
#include "cli/document_cells.h"
#include "cli/registry_view.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

struct PreloadFlags {
  std::string version;
  std::vector<std::string> paths;
  std::string lease;
  std::string rate;
  bool wait = false;
  bool what_fits = false;
};

// "200MiB/s", or without the "/s".
Result<std::uint64_t> parse_rate(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  auto bytes = parse_size(text);
  if (!bytes) return failure(bytes.error().with_context("--rate"));
  return bytes;
}

Result<Json> preload_body(Session& session, const PreloadFlags& flags) {
  Json body = {{"version", flags.version}, {"paths", flags.paths}, {"what_fits", flags.what_fits}};
  if (!flags.lease.empty()) {
    const auto lease = parse_duration(flags.lease);
    if (!lease) return failure(lease.error().with_context("--lease"));
    body["lease_seconds"] = static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::seconds>(*lease).count()));
  }
  if (!flags.rate.empty()) {
    MR_ASSIGN_OR_RETURN(const std::uint64_t rate, parse_rate(flags.rate));
    body["bytes_per_second_max"] = rate;
  }
  if (const auto run = session.environment()("MILLRACE_RUN")) body["run"] = *run;
  return body;
}

std::string preload_summary(const Json& preload) {
  const Json fit = preload.value("fit", Json::object());
  std::string text = fmt::format("preload {} of {}: {}, {} ({} of them cached)",
                                 text_cell(preload, "preload"), text_cell(preload, "version"),
                                 count_text(number_of(preload, "files"), "file", "files"),
                                 size_cell(preload, "bytes_total"), size_cell(fit, "cached_bytes"));
  if (number_of(fit, "short_bytes") > 0) {
    return text + fmt::format("; {} do not fit and are left out", size_cell(fit, "short_bytes"));
  }
  return text + fmt::format("; all of it fits into the cache of {}", size_cell(fit, "limit_bytes"));
}

// Enough for a daemon that is killed now and then; one that cannot stay up is not asked for ever.
constexpr int kAsksMax = 5;

// One that is stopped takes its socket away, one that is killed leaves it; and the next one needs a
// moment between taking that away and listening.
bool was_stopped(Session& session) {
  constexpr Duration kMoment = std::chrono::milliseconds(200);
  std::error_code ignored;
  const std::string& socket = session.settings().socket;
  if (std::filesystem::exists(socket, ignored)) return false;
  session.clock().sleep_until(session.clock().now() + kMoment, &session.context().cancellation());
  return !std::filesystem::exists(socket, ignored);
}

// What was asked for goes on in the next daemon, and so does waiting for it.
Result<Json> ask_also_the_next_daemon(Session& session, const std::string& path) {
  for (int ask = 1;; ++ask) {
    auto answer = ControlClient(session).send(session.context(), HttpMethod::kGet, path);
    if (answer || ask == kAsksMax) return answer;
    const bool is_gone = answer.error().code() == StatusCode::kUnavailable ||
                         ControlClient::is_no_daemon(answer.error());
    if (!is_gone) return answer;
    if (was_stopped(session)) {
      return failure(StatusCode::kNotFound,
                     "the daemon was stopped; the preload goes on with the next one: ask for it "
                     "again to wait for it");
    }
    MR_RETURN_IF_ERROR(ensure_daemon(session, DaemonUp::kListens));
  }
}

// Until it has ended. The line on a terminal says how far it is; a signal ends only the waiting.
Result<Json> wait_for_preload(Session& session, Json preload) {
  const std::string path =
      "/v1/preloads/" + ControlClient::component(text_cell(preload, "preload"));
  const auto progress = session.progress(text_cell(preload, "version"));
  progress->add_total(number_of(preload, "bytes_total"));
  // Short while somebody looks at the line.
  const std::string_view wait = session.output().terminal() ? "?wait=500ms" : "?wait=1m";
  while (!preload["ended"].is_string()) {
    MR_ASSIGN_OR_RETURN(preload, ask_also_the_next_daemon(session, path + std::string(wait)));
    progress->show({.done_bytes = number_of(preload, "bytes_done"),
                    .bytes_per_second = number_of(preload, "bytes_per_second"),
                    .time_left = seconds_of(preload, "seconds_left")});
  }
  return preload;
}

Result<int> ended_preload(Session& session, const Json& preload) {
  if (session.output().json()) MR_RETURN_IF_ERROR(session.output().document(preload));
  const std::string state = text_cell(preload, "state");
  const std::string id = text_cell(preload, "preload");
  if (state == "ready") {
    if (session.output().json()) return 0;
    const std::string until = text_cell(preload, "leased_until");
    MR_RETURN_IF_ERROR(
        session.output().line(fmt::format("{} is ready{}", text_cell(preload, "version"),
                                          until == "-" ? "" : ", and stays until " + until)));
    return 0;
  }
  if (state == "cancelled") {
    return failure(StatusCode::kConflict, fmt::format("the preload {} was cancelled", id));
  }
  const auto code = parse_status_code(text_cell(preload, "code"));
  return failure(code.value_or(StatusCode::kIoError),
                 fmt::format("the preload {} has failed: {}", id, text_cell(preload, "problem")));
}

Result<int> start_preload(Session& session, const PreloadFlags& flags) {
  if (flags.version.empty()) {
    return failure(StatusCode::kInvalidArgument,
                   "what to preload is missing, as in 'millrace preload imagenet@v2'; 'preload ls' "
                   "and 'preload cancel' are about those that were asked for");
  }
  MR_ASSIGN_OR_RETURN(const Json body, preload_body(session, flags));
  MR_RETURN_IF_ERROR(ensure_daemon(session));
  MR_ASSIGN_OR_RETURN(
      const Json started,
      ControlClient(session).send(session.context(), HttpMethod::kPost, "/v1/preloads", body));
  session.note(preload_summary(started));
  if (flags.wait) {
    MR_ASSIGN_OR_RETURN(const Json ended, wait_for_preload(session, started));
    return ended_preload(session, ended);
  }
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(started));
  } else {
    MR_RETURN_IF_ERROR(session.output().line(text_cell(started, "preload")));
  }
  return 0;
}

}  // namespace

void register_preload(CommandLine& line, CLI::App& root) {
  auto flags = std::make_shared<PreloadFlags>();
  CLI::App* const command = root.add_subcommand(
      "preload", "Bring a version into the cache before it is read; ls, cancel: earlier ones");
  command->add_option("version", flags->version, "DATASET@VERSION or DATASET@ALIAS")
      ->type_name("REF");
  command
      ->add_option("--paths", flags->paths,
                   "Only files whose path matches, as 'train/**/*.jpg'; repeat for more")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  command
      ->add_option("--lease", flags->lease, "Nothing of it is evicted for so long once it is ready")
      ->type_name("DURATION");
  command->add_option("--rate", flags->rate, "Fetch no faster, as 200MiB/s")->type_name("RATE");
  command->add_flag("--wait", flags->wait, "Return when it is ready");
  command->add_flag("--what-fits", flags->what_fits,
                    "If it does not fit, take the part that does instead of refusing");
  command->require_subcommand(0, 1);
  // Not CommandLine::runs(): the callback of a command comes after that of its subcommand.
  command->callback([&line, command, flags] {
    if (!command->get_subcommands().empty()) return;
    line.chosen = [flags](Session& session) { return start_preload(session, *flags); };
  });
}

}  // namespace millrace::cli
