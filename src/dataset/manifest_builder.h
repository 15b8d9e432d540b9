#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "dataset/entry_sorter.h"
#include "dataset/manifest_writer.h"

namespace millrace {

enum class EntryArrival : std::uint8_t {
  kAnyOrder,  // Sorted here, in a temporary file when there are many. Parents are made.
  kSorted,    // As an EntrySorter gives them, parents and all: nothing is held back.
};

struct ManifestBuilderOptions {
  // The manifest; it appears, whole and durable, when finish() succeeds.
  std::string path;
  // For temporary files, which have no names. Empty: the directory of `path`.
  std::string scratch = {};
  // Of the keys of registered objects without a record.
  std::string prefix = {};
  // The URL of the store that they are in; empty: the store that the manifest goes to.
  std::string prefix_store = {};
  EntryArrival arrival = EntryArrival::kAnyOrder;
  std::size_t run_bytes = 64 * kMiB;
  // For kAnyOrder: told of entries that cannot be taken, in add() and in finish().
  EntryReport report = refuse_entry;
};

// Makes the manifest of a version, in memory that does not depend on the number of entries.
//
// Lifecycle: create, add objects and entries, finish once. After a failure it is useless; no file
// is left. Needs one thread at a time.
class ManifestBuilder {
 public:
  static Result<std::unique_ptr<ManifestBuilder>> create(ManifestBuilderOptions options);

  // Returns the object's number, for extents. Objects come before the entries that use them. With
  // kAnyOrder they may come in any order.
  Result<std::uint32_t> add_object(const NewObject& object) { return writer_->add_object(object); }
  Status add(const NewEntry& entry);
  Result<ManifestSummary> finish();

  // Whether the entries were more than one run.
  bool spilled() const { return sorter_ && sorter_->spilled(); }

 private:
  ManifestBuilder() = default;

  std::unique_ptr<ManifestWriter> writer_;
  std::optional<EntrySorter> sorter_;
};

}  // namespace millrace
