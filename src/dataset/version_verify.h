#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/version_reader.h"

namespace millrace {

struct VerifyOptions {
  std::size_t parallel = 16;
  // How many files are looked at, chosen at random; nothing: all.
  std::optional<std::uint64_t> sample = {};
  // Told of bytes that were read; from any thread.
  std::function<void(std::uint64_t bytes)> read = [](std::uint64_t) {};
};

// A file that is not what the version says.
struct VerifyProblem {
  std::string path = {};
  // Names the object.
  std::string reason = {};
};

struct VerifyTotals {
  std::uint64_t files = 0;
  // Of these: read, and held against their SHA-256 or the checksums of their objects.
  std::uint64_t read_files = 0;
  std::uint64_t read_bytes = 0;
  // Nobody knew a hash of the content: identity and size of the object are as they were.
  std::uint64_t compared_files = 0;
  std::uint64_t problems = 0;
};

// Looks whether the files of a version are what they were when it was made: reads them again, or,
// where the manifest has neither hash nor checksums, asks the store for identity and size of their
// objects. `report` is called for each file that is wrong, one at a time. Fails when it could not
// look; what is wrong is no failure. Blocks.
Result<VerifyTotals> verify_version(const RequestContext& context, const VersionReader& reader,
                                    const VerifyOptions& options, Random& random,
                                    const std::function<void(const VerifyProblem&)>& report);

}  // namespace millrace
