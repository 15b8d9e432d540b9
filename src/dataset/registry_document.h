#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "dataset/version_log.h"
#include "dataset/version_ref.h"

namespace millrace {

inline constexpr std::size_t kRegistryDocumentBytesMax = 64 * 1024 * 1024;

// One version in a registry that people keep as YAML:
//
//   datasets:
//     imagenet:
//       versions:
//         v1:
//           path: s3://prod-datasets/imagenet/v1/
//           size_gb: 180
//           sample_count: 1281167
//           created: 2026-01-15
//           notes: "Standard ILSVRC 2012 splits"
//
// Every field may be missing.
struct DocumentedVersion {
  VersionRef ref;
  std::string path = {};
  // Thousands of millions of bytes, to three decimals.
  std::optional<double> size_gb = {};
  std::optional<std::uint64_t> sample_count = {};
  // A date means its first second, UTC.
  std::optional<WallTime> created = {};
  std::optional<std::string> notes = {};
  // Where it stands in the file, from 1; 0 when it comes from none.
  int line = 0;
};

// A published version as the document tells it.
DocumentedVersion document_version(const VersionEntry& entry, std::string path);

// Takes any bytes. In the order of the file. kInvalidArgument with "file:line: " and what was
// expected for whatever is not of this form, unknown fields included: none is dropped silently.
Result<std::vector<DocumentedVersion>> parse_registry_document(std::string_view text,
                                                               const std::string& file);

// The versions of one dataset stand together: `versions` are in the order of their refs. What it
// writes parses back to the same, times cut to dates.
std::string write_registry_document(std::span<const DocumentedVersion> versions);

// "180", "0.125": as the document writes it.
std::string format_size_gb(double size_gb);

}  // namespace millrace
