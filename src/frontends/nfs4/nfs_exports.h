#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "frontends/nfs4/nfs_export.h"

namespace millrace {

// A name in a directory above the exports. Valid as long as its table.
struct NfsExportName {
  std::string_view name;
  const NfsExport* target = nullptr;  // Null: a directory that only leads to exports.
};

// The exports at one moment, and the directories above them. Never changes.
//
// Invariants:
// 1. No export's path is that of another, or inside it; ids differ.
// 2. The directories are all proper prefixes of the exports' paths, and "/" always.
class NfsExportTable {
 public:
  explicit NfsExportTable(std::vector<NfsExport> exports);

  const std::vector<NfsExport>& exports() const { return exports_; }  // Sorted by path.
  // Null when there is none.
  const NfsExport* find(std::uint32_t id) const;
  const NfsExport* find(std::string_view path) const;
  // The names in a directory above the exports, sorted; null when it is none. "/" is the root.
  const std::vector<NfsExportName>* names(std::string_view directory) const;

 private:
  const std::vector<NfsExport> exports_;
  std::map<std::uint32_t, const NfsExport*> by_id_;
  std::map<std::string, std::vector<NfsExportName>, std::less<>> names_;
};

// What is exported, which can change while clients read. Safe from any thread; readers keep the
// table that they got for as long as one request takes.
class NfsExports {
 public:
  // The exports go together (check_nfs_exports).
  explicit NfsExports(std::vector<NfsExport> exports)
      : table_(std::make_shared<const NfsExportTable>(std::move(exports))) {}

  std::shared_ptr<const NfsExportTable> table() const MR_EXCLUDES(mutex_);
  // kInvalidArgument when it does not go with the others, kConflict when its path is taken.
  Status add(NfsExport added) MR_EXCLUDES(mutex_);
  // kNotFound when there is none. Clients that have it mounted find its handles stale.
  Status remove(std::string_view path) MR_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const NfsExportTable> table_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
