#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace {

// What the long suites of all layers share. Sanitizers make everything many times slower, so the
// suites are smaller under them.
#if defined(MILLRACE_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// MILLRACE_SCALE=full.
bool full_torture();
// How many rounds a suite does: `full` or `small`; of the full ones MILLRACE_SHARE, as "1/8", when
// several runs with seeds of their own share them.
std::uint64_t torture_rounds(std::uint64_t full, std::uint64_t small);
// MILLRACE_SEED, or a random one.
std::uint64_t torture_seed();
// Prints a line, and appends it to the file that MILLRACE_TORTURE_RESULTS names.
void append_torture_result(const std::string& line);
// The line of a suite; `figures` are members of a JSON object. Not in the library, which benchmarks
// without tests link too.
inline void report_torture(const std::string& suite, std::uint64_t seed,
                           const std::string& figures) {
  append_torture_result(fmt::format(R"({{"suite":"{}","seed":{},{},"outcome":"{}"}})", suite, seed,
                                    figures, ::testing::Test::HasFailure() ? "failed" : "passed"));
}

// A directory on a real disk that goes with all in it.
class TortureDirectory {
 public:
  TortureDirectory();
  ~TortureDirectory();
  TortureDirectory(const TortureDirectory&) = delete;
  TortureDirectory& operator=(const TortureDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace millrace
