#include "tests/cache/cache_model.h"

#include <gtest/gtest.h>

#include "tests/servers/torture.h"

namespace millrace {
namespace {

constexpr std::uint64_t kModelReads = kSanitized ? 20'000 : 100'000;

TEST(CacheModel, ManyThreadsReadWhatTheMapSays) { run_cache_model(torture_seed(), kModelReads); }

}  // namespace
}  // namespace millrace
