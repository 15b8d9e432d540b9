#include "cli/version_ls_table.h"

#include <fmt/format.h>

#include "base/units.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

// Notes may be pages long; a table shows how they begin.
constexpr std::size_t kNotesShownBytes = 60;

std::string first_line(const std::string& notes) {
  const std::string line = notes.substr(0, notes.find('\n'));
  if (line.size() <= kNotesShownBytes) return line.size() == notes.size() ? line : line + " ...";
  std::size_t end = kNotesShownBytes;
  // Not in the middle of a character: continuation bytes of UTF-8 are 10xxxxxx.
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0U) == 0x80U)
    --end;
  return line.substr(0, end) + " ...";
}

}  // namespace

Status print_versions(Output& output, std::span<const VersionEntry> entries) {
  if (entries.empty()) return {};
  std::vector<std::vector<std::string>> rows = {
      {"VERSION", "STATE", "CREATED", "FILES", "SIZE", "SAMPLES", "NOTES"}};
  for (const VersionEntry& entry : entries) {
    const std::string state(version_state_name(entry.state()));
    if (!entry.facts) {
      // There is nothing to tell yet but who is at it.
      rows.push_back({entry.ref.text(), state, date_text(entry.since), "-", "-", "-",
                      fmt::format("{}: {}", who_text(entry.who), first_line(entry.reason))});
      continue;
    }
    const VersionFacts& facts = *entry.facts;
    rows.push_back({entry.ref.text(), state, date_text(facts.created),
                    std::to_string(facts.totals.files), format_size(facts.totals.bytes),
                    facts.sample_count ? std::to_string(*facts.sample_count) : "-",
                    first_line(facts.annotation.notes)});
  }
  return print_table(output, rows);
}

Status no_such_dataset(const DatasetName& dataset, const ObjectStore& store) {
  return {StatusCode::kNotFound,
          fmt::format("no dataset '{}' in {}: 'millrace dataset ls' lists them", dataset.text(),
                      store.describe())};
}

}  // namespace millrace::cli
