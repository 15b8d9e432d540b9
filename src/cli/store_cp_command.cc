#include <chrono>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/recursive_transfer.h"
#include "cli/session.h"
#include "cli/transfer.h"

namespace millrace::cli {
namespace {

struct CpOptions {
  std::string source;
  std::string target;
  bool recursive = false;
  bool no_clobber = false;
  std::size_t parallel = 8;
};

std::string source_name(const Endpoint& source) {
  if (const auto* const local = std::get_if<LocalPath>(&source)) {
    return std::filesystem::path(local->path).filename().string();
  }
  const auto* const location = std::get_if<Location>(&source);
  return location != nullptr ? location->name() : "";
}

// "cp a dir/" means "cp a dir/a", as everywhere.
Result<Endpoint> complete_target(const Endpoint& source, Endpoint target) {
  const std::string name = source_name(source);
  const auto nameless = [&] {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("what comes from a stream has no name: name the object, as in {}/name",
                    describe(target)));
  };
  if (auto* const location = std::get_if<Location>(&target)) {
    if (!location->is_root() && !location->key.ends_with('/')) return target;
    if (name.empty()) return nameless();
    return location->child(name);
  }
  if (auto* const local = std::get_if<LocalPath>(&target)) {
    std::error_code error;
    if (!local->path.ends_with('/') && !std::filesystem::is_directory(local->path, error)) {
      return target;
    }
    return LocalPath{(std::filesystem::path(local->path) / name).string()};
  }
  return target;
}

Result<int> report(Session& session, const Endpoint& source, const Endpoint& target,
                   const TransferTotals& totals, TimePoint started) {
  const Duration took = session.clock().now() - started;
  if (std::holds_alternative<StandardStream>(target)) return 0;
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(
        session.output().document({{"source", describe(source)},
                                   {"target", describe(target)},
                                   {"objects", totals.objects},
                                   {"skipped", totals.skipped},
                                   {"bytes", totals.bytes},
                                   {"seconds", std::chrono::duration<double>(took).count()}}));
    return 0;
  }
  const std::string skipped =
      totals.skipped > 0 ? fmt::format(", {} were there already", totals.skipped) : "";
  session.note(fmt::format("copied {} {}, {}, in {}{}", totals.objects,
                           totals.objects == 1 ? "object" : "objects", format_size(totals.bytes),
                           format_duration(std::chrono::ceil<std::chrono::milliseconds>(took)),
                           skipped));
  return 0;
}

Result<int> copy_objects(Session& session, const CpOptions& options) {
  const TimePoint started = session.clock().now();
  MR_ASSIGN_OR_RETURN(const Endpoint source, parse_endpoint(session, options.source));
  MR_ASSIGN_OR_RETURN(Endpoint target, parse_endpoint(session, options.target));
  const TransferOptions transfer_options{options.no_clobber, {}};
  const auto progress = session.progress("copying");
  if (options.recursive) {
    MR_ASSIGN_OR_RETURN(
        const TransferTotals totals,
        transfer_tree(session, source, target, transfer_options, options.parallel, *progress));
    progress->clear();
    return report(session, source, target, totals, started);
  }
  const auto* const location = std::get_if<Location>(&source);
  if (location != nullptr && (location->is_root() || location->key.ends_with('/'))) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is no single object: add -r to copy everything below it",
                               location->to_string()));
  }
  MR_ASSIGN_OR_RETURN(target, complete_target(source, std::move(target)));
  MR_ASSIGN_OR_RETURN(const std::uint64_t bytes, transfer(session, session.context(), source,
                                                          target, transfer_options, *progress));
  progress->clear();
  return report(session, source, target, {1, 0, bytes}, started);
}

}  // namespace

void register_store_cp(CommandLine& line, CLI::App& store) {
  auto options = std::make_shared<CpOptions>();
  CLI::App* const command =
      store.add_subcommand("cp", "Copy between files and stores, or between stores");
  command
      ->add_option("source", options->source,
                   "A local file, a URL, store:path (inside --store), or - for standard input")
      ->type_name("SRC")
      ->required();
  command
      ->add_option("target", options->target,
                   "A local file, a URL, store:path, or - for standard output; with a '/' at its "
                   "end: into that directory")
      ->type_name("DST")
      ->required();
  command->add_flag("-r,--recursive", options->recursive,
                    "Copy everything below SRC to the same names below DST");
  command->add_flag("-n,--no-clobber", options->no_clobber,
                    "Never replace: one that exists is an error, with -r it is skipped");
  command->add_option("-j,--parallel", options->parallel, "With -r: objects copied at one time")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  line.runs(command, [options](Session& session) { return copy_objects(session, *options); });
}

}  // namespace millrace::cli
