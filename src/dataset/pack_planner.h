#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/source_tree.h"
#include "dataset/tar_format.h"

namespace millrace {

struct PackOptions {
  // A file above this is an object of its own, unless its sample is packed whole.
  std::uint64_t file_bytes_max = kMiB;
  // About how large a pack is, as a tar. A single sample may make it twice as large.
  std::uint64_t target_bytes = 64 * kMiB;
};

// The tar header of a file in a pack. Times are in whole seconds there: the manifest has the rest,
// and a pax header for each would cost 1 KiB per file.
inline constexpr TarTimes kPackTimes = TarTimes::kSeconds;
TarMember pack_tar_member(const SourceEntry& file);

struct PlannedMember {
  SourceEntry file = {};
  // Where its content stands in the pack.
  std::uint64_t content_offset = 0;
};

// A pack before it is written: every byte's place is known.
struct PlannedPack {
  std::vector<PlannedMember> members = {};
  // The size of the whole tar.
  std::uint64_t bytes = 0;
};

// Takes what the planner decides, in the order of the files. A failure ends the plan.
class PackPlanSink {
 public:
  virtual ~PackPlanSink() = default;
  virtual Status add_pack(PlannedPack pack) = 0;
  // A file that is an object of its own.
  virtual Status add_object(SourceEntry file) = 0;
};

// Decides which files go into which pack.
//
// Invariants:
//  1. Every file that is added goes into one pack or becomes one object.
//  2. The files of a sample (dataset/sample_name.h) are in one pack, or each is an object, whatever
//     their sizes: a sample of at most twice the target is packed whole, a larger one becomes
//     objects. But a "sample" of more than kSampleFilesMax files that does not fit into a pack is
//     none, it is a series ("frame.000001.png"): its files are decided one by one.
//  3. A file that is alone is packed if it has at most file_bytes_max.
//  4. Packs are filled in order. One is closed when the next sample would take it above the target,
//     so none is above twice the target, and only one that holds a single sample above the target.
//  5. Empty files are packed like others: readers of the tar find every label.
//  6. Memory is bounded by one pack and one sample, not by the number of files.
//
// Files come in the order of a manifest, in which those of one sample follow one another.
// Thread-compatible.
class PackPlanner {
 public:
  static constexpr std::size_t kSampleFilesMax = 64;

  // `sink` outlives the planner.
  PackPlanner(PackOptions options, PackPlanSink& sink);

  // Only files. kInvalidArgument for a name that a tar cannot hold; failures of the sink.
  Status add(SourceEntry file);
  // Decides what is left. Nothing may be added afterwards.
  Status finish();

 private:
  struct Candidate {
    SourceEntry file = {};
    std::uint64_t header_bytes = 0;

    // With the zeros that fill its last block.
    std::uint64_t tar_bytes() const { return header_bytes + tar_padded(file.size); }
  };
  bool continues_sample(const std::string& path) const;
  bool sample_fits_pack() const;
  Status decide_sample();
  Status decide_alone(Candidate candidate);
  Status pack(std::vector<Candidate> sample);
  Status close_pack();

  const PackOptions options_;
  PackPlanSink& sink_;

  // The sample that may still grow, its bytes in a tar, and its base; empty for a file of none.
  std::vector<Candidate> sample_;
  std::uint64_t sample_bytes_ = 0;
  std::string sample_base_;
  // The present sample turned out to be a series.
  bool is_series_ = false;
  PlannedPack pack_;
};

}  // namespace millrace
