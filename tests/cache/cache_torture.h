#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// Sanitizers make everything many times slower, so the suites are smaller under them.
#if defined(MILLRACE_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// MILLRACE_SCALE=full.
bool full_torture();
// MILLRACE_SEED, or a random one.
std::uint64_t torture_seed();
// Prints a line for the suite, and appends it to the file that MILLRACE_TORTURE_RESULTS names.
// `figures` are members of a JSON object.
void report_torture(const std::string& suite, std::uint64_t seed, const std::string& figures);

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
