#include <memory>

#include <fmt/format.h>

#include "app/times.h"
#include "base/random.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/registry_view.h"
#include "cli/version_session.h"
#include "dataset/garbage_collector.h"

namespace millrace::cli {
namespace {

struct GcFlags {
  bool dry_run = false;
  bool no_repack = false;
  bool unsafe_single_writer = false;
  std::string wait = "0s";
  std::string abort_after = "7d";
};

Json reservation_documents(const std::vector<VersionEntry>& reservations) {
  Json documents = Json::array();
  for (const VersionEntry& entry : reservations) {
    documents.push_back({{"version", entry.ref.text()},
                         {"since", format_time(entry.open_work().since)},
                         {"repack", entry.facts.has_value()},
                         {"who", writer_document(entry.who)},
                         {"reason", entry.reason}});
  }
  return documents;
}

Json messages_of(const std::vector<Status>& statuses) {
  Json messages = Json::array();
  for (const Status& status : statuses)
    messages.push_back(status.message());
  return messages;
}

Status print_gc_document(Output& output, const GcFlags& flags, const GarbageReport& report) {
  Json purged = Json::array();
  for (const VersionRef& ref : report.purged)
    purged.push_back(ref.text());
  Json repacked = Json::array();
  for (const VersionRef& ref : report.repacked)
    repacked.push_back(ref.text());
  return output.document({{"type", "totals"},
                          {"dry_run", flags.dry_run},
                          {"purged", purged},
                          {"not_purged", messages_of(report.not_purged)},
                          {"aborted", reservation_documents(report.aborted)},
                          {"open", reservation_documents(report.open)},
                          {"objects", report.objects},
                          {"manifests", report.manifests},
                          {"others", report.others},
                          {"bytes", report.bytes},
                          {"repacked", repacked},
                          {"not_repacked", messages_of(report.not_repacked)},
                          {"repacked_packs", report.repacked_packs},
                          {"repacked_bytes", report.repacked_bytes},
                          {"copied_bytes", report.copied_bytes}});
}

Status print_repacks(Output& output, std::string_view would, const GarbageReport& report) {
  for (const VersionRef& ref : report.repacked)
    MR_RETURN_IF_ERROR(output.line(fmt::format("{}: repacked", ref.text())));
  for (const Status& status : report.not_repacked)
    MR_RETURN_IF_ERROR(output.line(fmt::format("not repacked: {}", status.message())));
  if (report.repacked_packs == 0) return {};
  return output.line(fmt::format("{} {}repacked: {} copied, {} for a later collection to free",
                                 count_text(report.repacked_packs, "pack", "packs"), would,
                                 format_size(report.copied_bytes),
                                 format_size(report.repacked_bytes)));
}

Status print_gc_lines(Session& session, const GcFlags& flags, const GarbageReport& report) {
  Output& output = session.output();
  const std::string_view would = flags.dry_run ? "would be " : "";
  for (const VersionRef& ref : report.purged)
    MR_RETURN_IF_ERROR(output.line(fmt::format("{}: {}purged", ref.text(), would)));
  for (const Status& status : report.not_purged)
    MR_RETURN_IF_ERROR(output.line(fmt::format("not purged: {}", status.message())));
  for (const VersionEntry& entry : report.aborted) {
    MR_RETURN_IF_ERROR(output.line(
        fmt::format("{}: {}aborted, open since {} ({}, {})", entry.ref.text(), would,
                    format_time(entry.open_work().since), entry.reason, entry.who.describe())));
  }
  for (const VersionEntry& entry : report.open) {
    MR_RETURN_IF_ERROR(output.line(fmt::format(
        "{}: being {} since {} ({}, {}); objects of purged versions are kept until it has ended",
        entry.ref.text(), entry.facts ? "repacked" : "made", format_time(entry.open_work().since),
        entry.reason, entry.who.describe())));
  }
  MR_RETURN_IF_ERROR(print_repacks(output, would, report));
  return output.line(fmt::format(
      "{} and {} {}deleted, {}", count_text(report.objects + report.others, "object", "objects"),
      count_text(report.manifests, "manifest", "manifests"), would, format_size(report.bytes)));
}

Result<Duration> duration_flag(std::string_view flag, const std::string& text) {
  auto duration = parse_duration(text);
  if (!duration) return failure(duration.error().with_context(flag));
  return duration;
}

Result<int> collect(Session& session, const GcFlags& flags) {
  MR_ASSIGN_OR_RETURN(const Duration wait, duration_flag("--wait", flags.wait));
  MR_ASSIGN_OR_RETURN(const Duration abort_after,
                      duration_flag("--abort-after", flags.abort_after));
  MR_ASSIGN_OR_RETURN(const auto store, session.store(session.settings().store));
  Output& output = session.output();
  const auto progress = session.progress("collecting");
  Status printed;
  GarbageOptions options{.dry_run = flags.dry_run,
                         .abort_after = abort_after,
                         .repack = !flags.no_repack,
                         .wait = wait,
                         .request_timeout = session.settings().timeout,
                         .manifest_directory = manifest_directory(session)};
  options.deleted = [&](const std::string& key, std::uint64_t bytes) {
    progress->add_objects(1);
    progress->add_bytes(bytes);
    if (!flags.dry_run || !printed.ok()) return;
    progress->clear();
    printed = output.json() ? output.document({{"type", "object"}, {"key", key}, {"bytes", bytes}})
                            : output.line(fmt::format("{:>10}  {}", format_size(bytes), key));
  };
  GarbageCollector collector({.store = *store,
                              .clock = session.clock(),
                              .random = system_random(),
                              .writer = this_process_writer(),
                              .single_writer = flags.unsafe_single_writer},
                             std::move(options));
  MR_ASSIGN_OR_RETURN(const GarbageReport report, collector.run(session.context()));
  progress->clear();
  MR_RETURN_IF_ERROR(printed);
  MR_RETURN_IF_ERROR(output.json() ? print_gc_document(output, flags, report)
                                   : print_gc_lines(session, flags, report));
  return 0;
}

}  // namespace

void register_version_gc(CommandLine& line, CLI::App& version) {
  auto flags = std::make_shared<GcFlags>();
  CLI::App* const command = version.add_subcommand(
      "gc", "Purge removed versions, delete what no version needs, repack what is mostly garbage");
  command->add_flag("-n,--dry-run", flags->dry_run, "Only list what would be deleted");
  command->add_option("--wait", flags->wait, "How long to wait for publishes that are under way")
      ->type_name("DURATION")
      ->capture_default_str();
  command
      ->add_option("--abort-after", flags->abort_after,
                   "Publishes that are under way for longer are given up; they fail if they go on")
      ->type_name("DURATION")
      ->capture_default_str();
  command->add_flag("--no-repack", flags->no_repack,
                    "Leave packs that are less than half alive as they are");
  command->add_flag("--unsafe-single-writer", flags->unsafe_single_writer,
                    "For stores without create-if-absent, when nobody else writes to them");
  line.runs(command, [flags](Session& session) { return collect(session, *flags); });
}

}  // namespace millrace::cli
