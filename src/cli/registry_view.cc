#include "cli/registry_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time_format.h"

namespace millrace::cli {

std::string who_text(const WriterIdentity& who) { return fmt::format("{}@{}", who.user, who.host); }

std::string date_text(WallTime time) { return format_iso8601(time).substr(0, 10); }

std::string count_text(std::uint64_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

Status print_table(Output& output, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    MR_RETURN_IF_ERROR(output.line(line));
  }
  return {};
}

ReadableListing readable_entries(std::vector<VersionListing> listings) {
  ReadableListing readable;
  for (VersionListing& listing : listings) {
    if (listing.entry) {
      readable.entries.push_back(std::move(*listing.entry));
    } else if (readable.damage.ok()) {
      readable.damage = listing.entry.error().with_context(listing.ref.text());
    }
  }
  return readable;
}

}  // namespace millrace::cli
