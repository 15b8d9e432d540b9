#include <memory>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/registry_view.h"
#include "cli/version_session.h"
#include "dataset/version_extract.h"

namespace millrace::cli {
namespace {

struct ExtractFlags {
  std::string ref;
  std::string directory;
  std::size_t parallel = 16;
};

Result<int> extract_files(Session& session, const ExtractFlags& flags) {
  MR_ASSIGN_OR_RETURN(const OpenVersion version, open_version(session, flags.ref));
  const auto progress = session.progress("extracting");
  progress->add_total(version.manifest->totals().logical_bytes);
  const VersionReader reader = version.reader(session);
  MR_ASSIGN_OR_RETURN(
      const ExtractTotals totals,
      extract_version(session.context(), reader, flags.directory,
                      {.parallel = flags.parallel,
                       .written = [&](std::uint64_t bytes) { progress->add_bytes(bytes); }}));
  progress->clear();
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document({{"version", version.entry.ref.text()},
                                                  {"directory", flags.directory},
                                                  {"files", totals.files},
                                                  {"directories", totals.directories},
                                                  {"symlinks", totals.symlinks},
                                                  {"bytes", totals.bytes}}));
  }
  session.note(fmt::format("{}: {}, {} in {}", version.entry.ref.text(),
                           count_text(totals.files, "file", "files"), format_size(totals.bytes),
                           flags.directory));
  return 0;
}

}  // namespace

void register_version_extract(CommandLine& line, CLI::App& version) {
  auto flags = std::make_shared<ExtractFlags>();
  CLI::App* const command =
      version.add_subcommand("extract", "Write the files of a version into a directory");
  add_version_option(*command, flags->ref);
  command->add_option("directory", flags->directory, "A directory that is new or empty")
      ->type_name("DIR")
      ->required();
  command->add_option("-j,--parallel", flags->parallel, "Files that are written at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  line.runs(command, [flags](Session& session) { return extract_files(session, *flags); });
}

}  // namespace millrace::cli
