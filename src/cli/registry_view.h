#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/registry_documents.h"
#include "cli/output.h"
#include "dataset/registry.h"

namespace millrace::cli {

// How the registry's things look to people; app/registry_documents.h has them for programs.

// "alice@node7".
std::string who_text(const WriterIdentity& who);
// "2026-01-15".
std::string date_text(WallTime time);
// "3 files", "1 file".
std::string count_text(std::uint64_t count, std::string_view singular, std::string_view plural);

// Rows of one table, each column as wide as its widest cell; the last one is not padded. Nothing
// for no rows.
Status print_table(Output& output, const std::vector<std::vector<std::string>>& rows);

// The entries that can be read. The first that is damaged becomes the status, for the end of a
// command: it neither hides the others nor stays unnoticed.
struct ReadableListing {
  std::vector<VersionEntry> entries;
  Status damage;
};
ReadableListing readable_entries(std::vector<VersionListing> listings);

}  // namespace millrace::cli
