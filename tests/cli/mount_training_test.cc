// A mount read as training jobs do: class folders by worker processes, as PyTorch's ImageFolder and
// DataLoader have it, and Arrow files that are mapped into memory.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"

namespace millrace::cli {
namespace {

class MountTraining : public MountTest {
 protected:
  static std::string source(const std::string& name) {
    const char* const root = std::getenv("MILLRACE_SOURCE_DIR");
    return fmt::format("{}/{}", root == nullptr ? "." : root, name);
  }
};

TEST_F(MountTraining, WorkersOfADataLoaderReadClassFolders) {
  succeed(
      "for c in cat dog fish; do mkdir -p images/$c; for n in $(seq 70); do"
      " head -c $((n * 991)) /dev/urandom > images/$c/$n.jpg; done; done;"
      "millrace publish images pictures@v1; millrace mount pictures@v1 mnt");
  const std::string script = source("tests/cli/image_folder.py");
  const std::string local = succeed(fmt::format("python3 {} images 4 1", script)).out;
  EXPECT_THAT(local, ::testing::StartsWith("210 "));
  // Cold, and twice warm.
  EXPECT_EQ(succeed(fmt::format("python3 {} mnt 4 3", script)).out, local + local + local);
  succeed("millrace umount mnt");
}

TEST_F(MountTraining, ArrowFilesAreMappedAndNotCopied) {
  const std::string python = source("build/python/bin/python3");
  if (!std::filesystem::exists(python)) {
    GTEST_SKIP() << "no Arrow library here: 'tools/setup test' installs it from PyPI, when that is "
                    "reachable, to build/python";
  }
  const std::string script = fmt::format("{} {}", python, source("tests/cli/arrow_file.py"));
  succeed(
      fmt::format("mkdir table; {} write table/a.arrow; millrace publish table rows@v1", script));
  for (const std::string opening : {"passthrough", "stateless"}) {
    succeed(fmt::format("millrace mount --opening {} rows@v1 mnt", opening));
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(succeed(fmt::format("{} read mnt/a.arrow", script)).out,
                "79999800000 sample 399999 mapped\n");
    }
    succeed("millrace umount mnt");
  }
}

}  // namespace
}  // namespace millrace::cli
