#include <memory>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "dataset/manifest_diff.h"
#include "dataset/manifest_store.h"

namespace millrace::cli {
namespace {

struct DiffOptions {
  std::string before;
  std::string after;
  bool summary = false;
};

std::string_view change_name(ManifestChange change) {
  switch (change) {
    case ManifestChange::kAdded:
      return "added";
    case ManifestChange::kRemoved:
      return "removed";
    case ManifestChange::kChanged:
      break;
  }
  return "changed";
}

Json side_document(const std::optional<ManifestEntry>& entry) {
  if (!entry) return nullptr;
  return {{"kind", entry_kind_name(entry->kind())},
          {"size", entry->size()},
          {"mode", entry->mode() ? Json(fmt::format("{:04o}", *entry->mode())) : Json(nullptr)},
          {"hash", entry->hash().to_text()}};
}

std::string side_text(const ManifestEntry& entry) {
  if (entry.kind() != EntryKind::kFile) return std::string(entry_kind_name(entry.kind()));
  return format_size(entry.size());
}

// What differs, for people: sizes where they do, else what kind of thing it is.
std::string difference_text(const ManifestDifference& difference) {
  if (!difference.before) return side_text(*difference.after);
  if (!difference.after) return side_text(*difference.before);
  const std::string before = side_text(*difference.before);
  std::string after = side_text(*difference.after);
  if (before != after) return fmt::format("{} -> {}", before, after);
  if (difference.before->mode() != difference.after->mode() &&
      difference.before->hash() == difference.after->hash()) {
    return fmt::format("{}, another mode", after);
  }
  return after;
}

Status print_difference(Output& output, const ManifestDifference& difference) {
  if (output.json()) {
    return output.document({{"type", "difference"},
                            {"change", change_name(difference.change)},
                            {"path", difference.path},
                            {"before", side_document(difference.before)},
                            {"after", side_document(difference.after)}});
  }
  constexpr std::string_view kMarks = "+-~";
  return output.line(fmt::format("{} {}  ({})", kMarks[static_cast<std::size_t>(difference.change)],
                                 difference.path, difference_text(difference)));
}

Json count_document(const ManifestDiffTotals::Count& count) {
  return {{"entries", count.entries}, {"bytes", count.bytes}};
}

Status print_totals(Output& output, const VersionRef& before, const VersionRef& after,
                    const ManifestDiffTotals& totals) {
  if (output.json()) {
    return output.document({{"type", "totals"},
                            {"before", before.text()},
                            {"after", after.text()},
                            {"added", count_document(totals.added)},
                            {"removed", count_document(totals.removed)},
                            {"changed", count_document(totals.changed)}});
  }
  const auto part = [](const ManifestDiffTotals::Count& count, std::string_view what) {
    return fmt::format("{} {} ({})", count.entries, what, format_size(count.bytes));
  };
  return output.line(fmt::format("{} -> {}: {}, {}, {}", before.text(), after.text(),
                                 part(totals.added, "added"), part(totals.removed, "removed"),
                                 part(totals.changed, "changed")));
}

Result<ManifestDiffTotals> compare(Session& session, ManifestStore& manifests,
                                   const VersionFacts& before, const VersionFacts& after,
                                   const ManifestDiffSink& sink) {
  // Equal content needs no manifest, which may have millions of entries.
  if (before.content_digest == after.content_digest) return ManifestDiffTotals{};
  // No deadline: pages are fetched within this context for as long as the comparison takes.
  MR_ASSIGN_OR_RETURN(const auto old_manifest,
                      manifests.open_whole(session.context(), before.layout));
  MR_ASSIGN_OR_RETURN(const auto new_manifest,
                      manifests.open_whole(session.context(), after.layout));
  return diff_manifests(*old_manifest, *new_manifest, sink);
}

Result<int> diff_versions(Session& session, const DiffOptions& options) {
  MR_ASSIGN_OR_RETURN(const VersionRef before_ref, VersionRef::parse(options.before));
  MR_ASSIGN_OR_RETURN(const VersionRef after_ref, VersionRef::parse(options.after));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const VersionEntry before,
                      open.registry.resolve(session.request(), before_ref));
  MR_ASSIGN_OR_RETURN(const VersionEntry after,
                      open.registry.resolve(session.request(), after_ref));
  Output& output = session.output();
  ManifestStore manifests(*open.store, session.settings().cache + "/manifests");
  MR_ASSIGN_OR_RETURN(const ManifestDiffTotals totals,
                      compare(session, manifests, *before.facts, *after.facts,
                              [&](const ManifestDifference& difference) -> Status {
                                if (options.summary) return {};
                                return print_difference(output, difference);
                              }));
  MR_RETURN_IF_ERROR(print_totals(output, before.ref, after.ref, totals));
  return 0;
}

}  // namespace

void register_version_diff(CommandLine& line, CLI::App& version) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* const command = version.add_subcommand(
      "diff", "List what was added (+), removed (-) and changed (~) between two versions");
  command->add_option("before", options->before, "DATASET@VERSION, or DATASET@ALIAS")
      ->type_name("BEFORE")
      ->required();
  command->add_option("after", options->after, "What to compare with it")
      ->type_name("AFTER")
      ->required();
  command->add_flag("--summary", options->summary, "Only the totals");
  line.runs(command, [options](Session& session) { return diff_versions(session, *options); });
}

}  // namespace millrace::cli
