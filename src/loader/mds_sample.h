#pragma once

#include <vector>

#include "base/buffer.h"
#include "base/status.h"
#include "loader/mds_index.h"
#include "loader/sample_source.h"

namespace millrace {

// The columns of one sample of an MDS shard, from its bytes. Takes any bytes: kCorruption, naming
// the column, for what no writer writes; kUnsupported for an encoding that is not known. Values
// share the memory of `sample`.
Result<std::vector<SampleValue>> decode_mds_sample(const std::vector<MdsColumn>& columns,
                                                   const Slice& sample);

}  // namespace millrace
