#include <filesystem>
#include <memory>
#include <variant>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/registry_view.h"
#include "cli/transfer.h"
#include "cli/version_session.h"
#include "dataset/version_export.h"
#include "platform/file_error.h"

namespace millrace::cli {
namespace {

struct ExportFlags {
  std::string ref;
  std::string target;
  std::string shard = "64MiB";
  std::size_t parallel = 4;
};

// A place to put shards below. Without a scheme it is a local directory, as for 'store cp'.
Result<Location> shard_place(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const Endpoint endpoint, parse_endpoint(session, text));
  if (const auto* const location = std::get_if<Location>(&endpoint)) return *location;
  const auto* const local = std::get_if<LocalPath>(&endpoint);
  if (local == nullptr) {
    return failure(StatusCode::kInvalidArgument,
                   "shards cannot go into a stream: name a directory or a URL");
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(local->path, error);
  if (error) return failure(file_error(error.value(), "find", local->path));
  return session.locate(absolute.lexically_normal().string() + "/");
}

Result<int> export_shards(Session& session, const ExportFlags& flags) {
  const auto shard_bytes = parse_size(flags.shard);
  if (!shard_bytes || *shard_bytes < kMiB) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("--shard '{}' is no size from 1MiB on", flags.shard));
  }
  MR_ASSIGN_OR_RETURN(const OpenVersion version, open_version(session, flags.ref));
  MR_ASSIGN_OR_RETURN(const Location location, shard_place(session, flags.target));
  MR_ASSIGN_OR_RETURN(const auto target, session.store(location.store, Session::Access::kWrite));
  MR_ASSIGN_OR_RETURN(Application* const application, session.application());
  const auto progress = session.progress("exporting");
  progress->add_total(version.manifest->totals().logical_bytes);
  const VersionReader reader = version.reader(session);
  MR_ASSIGN_OR_RETURN(
      const ExportTotals totals,
      export_version(session.context(), reader, *target, application->buffers(),
                     {.prefix = location.directory_prefix(),
                      .shard_bytes = *shard_bytes,
                      .parallel = flags.parallel,
                      .stored = [&](std::uint64_t bytes) { progress->add_bytes(bytes); }}));
  progress->clear();
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(
        session.output().document({{"version", version.entry.ref.text()},
                                   {"url", location.to_string()},
                                   {"shards", totals.shards},
                                   {"files", totals.files},
                                   {"bytes", totals.bytes},
                                   {"left_out_symlinks", totals.left_out_symlinks}}));
  }
  session.note(fmt::format(
      "{}: {} in {}, {}", version.entry.ref.text(), count_text(totals.files, "file", "files"),
      count_text(totals.shards, "shard", "shards"), format_size(totals.bytes)));
  if (totals.left_out_symlinks > 0) {
    session.note(fmt::format("left out {}: shards hold files only",
                             count_text(totals.left_out_symlinks, "symlink", "symlinks")));
  }
  return 0;
}

}  // namespace

void register_version_export(CommandLine& line, CLI::App& version) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* const command = version.add_subcommand(
      "export", "Write the files of a version as tar shards, every sample whole");
  add_version_option(*command, flags->ref);
  command->add_option("--tar", flags->target, "Where to: a directory or URL with nothing in it")
      ->type_name("DIR_OR_URL")
      ->required();
  command->add_option("--shard", flags->shard, "About how large a shard is")
      ->type_name("SIZE")
      ->capture_default_str();
  command->add_option("-j,--parallel", flags->parallel, "Shards that are written at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  line.runs(command, [flags](Session& session) { return export_shards(session, *flags); });
}

}  // namespace millrace::cli
