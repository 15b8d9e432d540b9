#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "frontends/nfs4/nfs_exports.h"
#include "platform/disk.h"

namespace millrace {

// What is exported: by the settings, and by those who said so while a daemon ran, which is kept in
// a file (docs/formats/exports.md).
//
// All methods are safe from any thread; add and remove block.
class ExportList {
 public:
  // `offered` is the safest transport that clients can have. What was added before and does not go
  // with the settings now is logged, and left out. kInvalidArgument for an export of the settings
  // that nobody could use; fails as the disk does; kCorruption, or kUnsupported for a later format.
  // The disk outlives it.
  static Result<std::unique_ptr<ExportList>> open(Disk& disk, std::string file,
                                                  std::vector<NfsExport> settings,
                                                  RpcTransport offered = RpcTransport::kPlain);

  // Durable on success. As NfsExports says, and kInvalidArgument for one that nobody could use.
  Status add(NfsExport added) MR_EXCLUDES(mutex_);
  // Durable on success. kNotFound when there is none, kConflict for one of the settings.
  Status remove(std::string_view path) MR_EXCLUDES(mutex_);
  bool is_setting(std::string_view path) const;

  NfsExports& exports() { return exports_; }

 private:
  ExportList(Disk& disk, std::string file, std::vector<NfsExport> settings, RpcTransport offered)
      : disk_(disk),
        file_(std::move(file)),
        settings_(std::move(settings)),
        offered_(offered),
        exports_(settings_) {}
  Status load();
  Status save() MR_REQUIRES(mutex_);

  Disk& disk_;
  const std::string file_;
  const std::vector<NfsExport> settings_;
  const RpcTransport offered_;
  NfsExports exports_;
  Mutex mutex_;  // One change at a time, with its file.
};

}  // namespace millrace
