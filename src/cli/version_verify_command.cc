#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "base/random.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/registry_view.h"
#include "cli/version_session.h"
#include "dataset/version_verify.h"

namespace millrace::cli {
namespace {

struct VerifyFlags {
  std::string ref;
  std::string sample;
  std::size_t parallel = 16;
};

// "5%" of all files, or how many.
Result<std::optional<std::uint64_t>> parse_sample(const std::string& text, std::uint64_t files) {
  if (text.empty()) return std::nullopt;
  if (text.ends_with('%')) {
    MR_ASSIGN_OR_RETURN(const Percentage part, parse_percentage(text));
    // At least one: 1% of ten files is no reason to look at none.
    const std::uint64_t count = part.of(files);
    return part.percent > 0 && count == 0 ? 1 : count;
  }
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size()) return count;
  return failure(
      StatusCode::kInvalidArgument,
      fmt::format("--sample '{}' is neither a number of files nor a percentage ('5%')", text));
}

Status print_problem(Output& output, const VerifyProblem& problem) {
  if (output.json()) {
    return output.document(
        {{"type", "problem"}, {"path", problem.path}, {"reason", problem.reason}});
  }
  return output.line(fmt::format("{}: {}", problem.path, problem.reason));
}

Status print_verified(Session& session, const VersionRef& ref, const VerifyTotals& totals) {
  if (session.output().json()) {
    return session.output().document({{"type", "totals"},
                                      {"version", ref.text()},
                                      {"files", totals.files},
                                      {"read_files", totals.read_files},
                                      {"read_bytes", totals.read_bytes},
                                      {"compared_files", totals.compared_files},
                                      {"problems", totals.problems}});
  }
  MR_RETURN_IF_ERROR(session.output().line(fmt::format(
      "{}: {} checked, {} read, {} wrong", ref.text(), count_text(totals.files, "file", "files"),
      format_size(totals.read_bytes), totals.problems)));
  if (totals.compared_files > 0) {
    session.note(fmt::format(
        "no hashes are known of {}: only identity and size of the objects were compared "
        "('register --hash' records hashes)",
        count_text(totals.compared_files, "file", "files")));
  }
  return {};
}

Result<int> verify_files(Session& session, const VerifyFlags& flags) {
  MR_ASSIGN_OR_RETURN(const OpenVersion version, open_version(session, flags.ref));
  const ManifestTotals& all = version.manifest->totals();
  MR_ASSIGN_OR_RETURN(const auto sample, parse_sample(flags.sample, all.files));
  const auto progress = session.progress("verifying");
  if (!sample) progress->add_total(all.logical_bytes);
  const VersionReader reader = version.reader(session);
  Status printed;
  MR_ASSIGN_OR_RETURN(
      const VerifyTotals totals,
      verify_version(session.context(), reader,
                     {.parallel = flags.parallel,
                      .sample = sample,
                      .read = [&](std::uint64_t bytes) { progress->add_bytes(bytes); }},
                     system_random(), [&](const VerifyProblem& problem) {
                       progress->clear();
                       if (printed.ok()) printed = print_problem(session.output(), problem);
                     }));
  progress->clear();
  MR_RETURN_IF_ERROR(printed);
  MR_RETURN_IF_ERROR(print_verified(session, version.entry.ref, totals));
  return totals.problems == 0 ? kExitOk : exit_code(StatusCode::kCorruption);
}

}  // namespace

void register_version_verify(CommandLine& line, CLI::App& version) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* const command = version.add_subcommand(
      "verify", "Read a version again and compare it with its hashes and checksums");
  add_version_option(*command, flags->ref);
  command
      ->add_option("--sample", flags->sample, "Only so many files, chosen at random: 5%, or 1000")
      ->type_name("N%|COUNT");
  command->add_option("-j,--parallel", flags->parallel, "Files that are read at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  line.runs(command, [flags](Session& session) { return verify_files(session, *flags); });
}

}  // namespace millrace::cli
