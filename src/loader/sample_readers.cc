#include "loader/sample_readers.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace millrace {

namespace {

constexpr std::array<const SampleReader*, 4> kSampleReaders = {
    &kMdsReader, &kWebDatasetReader, &kFilesReader,
    &kGroupedReader,  // Only by name: nothing tells pairs of files from single ones.
};

}  // namespace

std::span<const SampleReader* const> sample_readers() { return kSampleReaders; }

Result<std::unique_ptr<SampleSource>> open_samples(const RequestContext& context,
                                                   const SampleEnvironment& environment,
                                                   std::string_view reader,
                                                   const std::string& directory) {
  std::vector<std::string_view> names;
  for (const SampleReader* known : kSampleReaders) {
    names.push_back(known->name);
    if (known->name == reader) return known->open(context, environment, directory);
    if (reader != "auto") continue;
    MR_ASSIGN_OR_RETURN(const bool recognised, known->recognises(context, environment, directory));
    if (recognised) return known->open(context, environment, directory);
  }
  return failure(
      StatusCode::kInvalidArgument,
      fmt::format("there is no reader '{}'; there are auto, {}", reader, fmt::join(names, ", ")));
}

}  // namespace millrace
