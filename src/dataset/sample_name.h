#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// The rule of WebDataset, in its only place: files of one directory whose names are equal up to the
// first dot are one sample, and the rest of the name, in lower case, is the field.
//
//   "train/0001.jpg", "train/0001.cls", "train/0001.seg.png"   ->   sample "train/0001"
struct SampleName {
  // The path up to the first dot after the last '/'.
  std::string_view base;
  // What follows that dot.
  std::string_view extension;
};

// Nothing for a name without a dot, or with one as its first character: such files belong to no
// sample. The views are of `path`.
std::optional<SampleName> sample_name(std::string_view path);

// The name of the field: the extension in lower case.
std::string sample_field(const SampleName& name);

// Counts samples: the number of distinct bases (which include the directory) among the files that
// have one. A file without an extension is not counted, nor is one whose name begins with a dot;
// "README.md" is one sample.
//
// Files come in the order of a manifest, in which those of one base follow one another; files that
// belong to no sample may stand between. Thread-compatible.
class SampleCounter {
 public:
  void add(std::string_view path);
  std::uint64_t count() const { return count_; }

 private:
  std::string last_base_;
  std::uint64_t count_ = 0;
};

}  // namespace millrace
