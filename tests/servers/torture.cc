#include "tests/servers/torture.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>

#include <fmt/format.h>

namespace millrace {

bool full_torture() {
  const char* text = std::getenv("MILLRACE_SCALE");
  return text != nullptr && std::string_view(text) == "full";
}

std::uint64_t torture_rounds(std::uint64_t full, std::uint64_t small) {
  if (!full_torture()) return small;
  const char* text = std::getenv("MILLRACE_SHARE");
  if (text == nullptr) return full;
  char* end = nullptr;
  const std::uint64_t parts = std::strtoull(text, &end, 10);
  const std::uint64_t of = *end == '/' ? std::strtoull(end + 1, &end, 10) : 0;
  if (*end != '\0' || parts == 0 || of < parts) {
    fmt::print(stderr, "MILLRACE_SHARE is '{}', and not as '1/8'\n", text);
    std::exit(2);
  }
  return (full * parts + of - 1) / of;
}

std::uint64_t torture_seed() {
  const char* text = std::getenv("MILLRACE_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

void append_torture_result(const std::string& line) {
  fmt::print("{}\n", line);
  if (const char* path = std::getenv("MILLRACE_TORTURE_RESULTS")) {
    std::ofstream(path, std::ios::app) << line << "\n";
  }
}

TortureDirectory::TortureDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "mr-torture-XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

TortureDirectory::~TortureDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace millrace
