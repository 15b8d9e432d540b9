#include "dataset/pack_planner.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "dataset/sample_name.h"
#include "dataset/tar_header.h"

namespace millrace {

TarMember pack_tar_member(const SourceEntry& file) {
  return {.path = file.path,
          .kind = TarKind::kFile,
          .mode = file.mode.value_or(0644),
          .mtime_ns = file.mtime_ns,
          .size = file.size};
}

PackPlanner::PackPlanner(PackOptions options, PackPlanSink& sink)
    : options_(options), sink_(sink) {}

bool PackPlanner::continues_sample(const std::string& path) const {
  const auto name = sample_name(path);
  return name && name->base == sample_base_;
}

bool PackPlanner::sample_fits_pack() const {
  return sample_bytes_ + kTarEndBytes <= 2 * options_.target_bytes;
}

Status PackPlanner::add(SourceEntry file) {
  assert(file.kind == EntryKind::kFile);
  MR_ASSIGN_OR_RETURN(const std::uint64_t header_bytes,
                      tar_header_bytes(pack_tar_member(file), kPackTimes));
  if (!continues_sample(file.path)) {
    MR_RETURN_IF_ERROR(decide_sample());
    const auto name = sample_name(file.path);
    sample_base_ = name ? name->base : std::string_view();
    is_series_ = false;
  }
  Candidate candidate{.file = std::move(file), .header_bytes = header_bytes};
  if (is_series_) return decide_alone(std::move(candidate));
  // Cut where it fits no pack anyway, so that no sum of sizes from outside overflows.
  sample_bytes_ = std::min(sample_bytes_ + candidate.tar_bytes(), kTarMemberBytesMax);
  sample_.push_back(std::move(candidate));
  is_series_ = sample_.size() > kSampleFilesMax && !sample_fits_pack();
  return is_series_ ? decide_sample() : Status();
}

Status PackPlanner::decide_sample() {
  const bool fits = sample_fits_pack();
  std::vector<Candidate> sample = std::exchange(sample_, {});
  sample_bytes_ = 0;
  if (sample.size() > 1 && fits) return pack(std::move(sample));
  const bool one_by_one = sample.size() == 1 || is_series_;
  for (Candidate& candidate : sample) {
    MR_RETURN_IF_ERROR(one_by_one ? decide_alone(std::move(candidate))
                                  : sink_.add_object(std::move(candidate.file)));
  }
  return {};
}

Status PackPlanner::decide_alone(Candidate candidate) {
  const bool is_small = candidate.file.size <= options_.file_bytes_max &&
                        candidate.tar_bytes() + kTarEndBytes <= 2 * options_.target_bytes;
  if (!is_small) return sink_.add_object(std::move(candidate.file));
  std::vector<Candidate> sample;
  sample.push_back(std::move(candidate));
  return pack(std::move(sample));
}

Status PackPlanner::pack(std::vector<Candidate> sample) {
  std::uint64_t bytes = 0;
  for (const Candidate& candidate : sample)
    bytes += candidate.tar_bytes();
  if (pack_.bytes + bytes + kTarEndBytes > options_.target_bytes) MR_RETURN_IF_ERROR(close_pack());
  for (Candidate& candidate : sample) {
    const std::uint64_t end = pack_.bytes + candidate.tar_bytes();
    pack_.members.push_back({.file = std::move(candidate.file),
                             .content_offset = pack_.bytes + candidate.header_bytes});
    pack_.bytes = end;
  }
  return {};
}

Status PackPlanner::close_pack() {
  if (pack_.members.empty()) return {};
  PlannedPack pack = std::exchange(pack_, {});
  pack.bytes += kTarEndBytes;
  return sink_.add_pack(std::move(pack));
}

Status PackPlanner::finish() {
  MR_RETURN_IF_ERROR(decide_sample());
  return close_pack();
}

}  // namespace millrace
