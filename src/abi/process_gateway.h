#pragma once

#include <memory>
#include <vector>

#include "app/settings.h"
#include "base/request_context.h"
#include "base/status.h"
#include "loader/batch_engine.h"
#include "loader/loader_job.h"

namespace millrace {

// Opens datasets in this process, with a cache that is this process's own: beside that of the
// daemon ("<cache>.process-1"), used again by later processes, never by two at a time. Datasets of
// one process with the same settings share it. Blocks; safe from any thread.
Result<std::shared_ptr<BatchEngine>> open_in_process(const RequestContext& context,
                                                     const LoadedSettings& settings,
                                                     const std::vector<SourceChoice>& sources);

}  // namespace millrace
