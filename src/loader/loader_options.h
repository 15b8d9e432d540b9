#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "loader/batch_loader.h"
#include "loader/loader_job.h"
#include "loader/option_fields.h"

namespace millrace {

// Options as include/millrace.h has them, from JSON. All are kInvalidArgument, naming the field,
// for what is not as it says there.

// Takes "datasets", "order", "seed", "window_rows" and "epoch_samples".
Result<JobChoice> take_job_choice(OptionFields& fields);
// One object for each dataset: {"weight": 2}.
Result<std::vector<MixShare>> parse_shares(const OptionFields::Document& json);

// Where a loader or sampler begins.
struct LoaderStart {
  std::uint64_t epoch = 0;
  std::string state = {};  // Empty: none.
};
// Takes "rank", "world", "ranks_per_node", "replication", "batch" and "last".
Result<RankChoice> take_rank_choice(OptionFields& fields);
LoaderStart take_start(OptionFields& fields);
// Takes "prefetch", "on_error", "failures_max", "sample_timeout" and "watchdog".
Result<LoaderOptions> take_loader_options(OptionFields& fields);
Duration take_seconds(OptionFields& fields, std::string_view name, double otherwise);

}  // namespace millrace
