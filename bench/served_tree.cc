#include "bench/served_tree.h"

#include <filesystem>

#include "base/bytes.h"
#include "bench/bench_store.h"
#include "bench/generated_store.h"
#include "platform/file.h"

namespace millrace::bench {
namespace {

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/millrace";
}

}  // namespace

ServedTree::ServedTree(const std::function<void(const std::string& root)>& fill)
    : gateway_(own_program(), scratch_.path() + "/home") {
  std::filesystem::create_directories(root_);
  fill(root_);
  gateway_.millrace({"publish", root_, "bench@v1"});
  gateway_.start();
  gateway_.millrace({"preload", "bench@v1", "--wait"});
}

void write_generated(const std::string& path, std::uint64_t bytes) {
  const File file = require(File::open(path, O_RDWR | O_CREAT | O_TRUNC));
  Buffer piece = Buffer::allocate(kMiB);
  for (std::uint64_t at = 0; at < bytes; at += kMiB) {
    GeneratedStore::generate(at, piece.bytes());
    require(file.write_at(at, piece.bytes()));
  }
}

}  // namespace millrace::bench
