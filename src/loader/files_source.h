#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataset/manifest.h"
#include "loader/sample_source.h"

namespace millrace {

struct FilesSourceOptions {
  // A directory of the version: samples are the files below it. Empty: all.
  std::string directory = {};
  // Files of one directory whose names are equal up to the first dot are one sample. Files whose
  // names have no such dot are left out then.
  bool grouped = false;
};

// Files as samples. The key is the path, without what follows the first dot where files are
// grouped.
//
// One file is one sample: fields "data" and "label", the number of its class. Classes are the
// directories right below the source's, in the order of their names, as ImageFolder has them; a
// file that lies in none has label -1. Grouped files have one field each, named by what follows the
// dot, in lower case. Hidden files (".name") are no samples.
//
// Made by one pass over the manifest, which takes no content. Memory is by directories where all
// samples of a directory have equally many files, else by changes of that number.
class FilesSource final : public SampleSource {
 public:
  static constexpr std::string_view kReader = "files";
  static constexpr std::string_view kGroupedReader = "grouped";

  // kNotFound when there is no such directory, kInvalidArgument when there is no sample in it; else
  // the manifest's failures. The manifest outlives the source.
  static Result<std::unique_ptr<FilesSource>> open(const Manifest& manifest,
                                                   const FilesSourceOptions& options);

  std::string_view reader() const override { return options_.grouped ? kGroupedReader : kReader; }
  std::uint64_t samples() const override { return samples_; }
  const std::vector<SampleStretch>& stretches() const override { return stretches_; }
  Result<SampleLocation> locate(const RequestContext& context, std::uint64_t sample) override;
  Result<std::vector<SampleValue>> decode(const SampleLocation& location,
                                          const std::vector<Slice>& parts) override;

  // The class of a sample, or -1.
  std::int32_t label(std::uint64_t sample) const { return run_of(sample).label; }
  // Names of the classes, by number.
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  // Samples that follow one another without a gap, with equally many files.
  struct Run {
    std::uint64_t first_sample = 0;
    EntryIndex first_file = 0;
    std::uint32_t files = 1;  // Of each sample.
    std::int32_t label = -1;
  };
  // The sample whose files are being listed.
  struct Pending {
    std::string base = {};
    EntryIndex first_file = 0;
    std::uint32_t files = 0;
    std::uint64_t bytes = 0;
  };

  FilesSource(const Manifest& manifest, FilesSourceOptions options)
      : manifest_(manifest), options_(std::move(options)) {}
  Status list_all();
  Status list_directory(EntryIndex directory, std::int32_t label);
  void add_file(EntryIndex index, std::uint64_t bytes, std::string_view name);
  void end_sample();
  const Run& run_of(std::uint64_t sample) const;

  const Manifest& manifest_;
  const FilesSourceOptions options_;
  std::uint64_t samples_ = 0;
  std::vector<Run> runs_;
  std::vector<SampleStretch> stretches_;
  std::vector<std::string> classes_;
  // While listing.
  Pending pending_;
  std::int32_t label_ = -1;
};

}  // namespace millrace
