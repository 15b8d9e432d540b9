#pragma once

#include "base/clock.h"
#include "base/executor.h"
#include "frontends/nfs4/nfs_exports.h"
#include "frontends/nfs4/nfs_file_handle.h"
#include "frontends/nfs4/nfs_read_budget.h"
#include "frontends/nfs4/nfs_state.h"
#include "frontends/nfs4/nfs_whole_files.h"
#include "metrics/metrics.h"
#include "vfs/file_system.h"
#include "vfs/recent_files.h"

namespace millrace {

// All that answers are made from. Outlives the calls; safe from any thread.
struct NfsService {
  FileSystem& files;
  NfsExports& exports;
  NfsState& state;
  Metrics& metrics;
  Clock& clock;
  Executor& work;  // Where what may block is done.
  const NfsHandles handles;
  const WallTime started;
  const Duration request_timeout;
  NfsReadBudget reads;
  RecentFiles recent{files};
  NfsWholeFiles wholes{clock, work};
};

}  // namespace millrace
