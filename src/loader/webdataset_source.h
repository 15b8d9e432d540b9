#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "dataset/manifest.h"
#include "dataset/sample_index.h"
#include "loader/last_used.h"
#include "loader/sample_source.h"

namespace millrace {

// Samples in tar files, found by a sample index. Fields are named by what follows the first dot, in
// lower case; the key is the path in the archive before it.
//
// Keeps the blocks of the index that were used last, up to kBlocksKept of some hundred KiB.
class WebDatasetSource final : public SampleSource {
 public:
  static constexpr std::string_view kReader = "webdataset";
  static constexpr std::size_t kBlocksKept = 32;

  // kCorruption when the index is not one of this version: a shard is not there. The manifest
  // outlives the source.
  static Result<std::unique_ptr<WebDatasetSource>> open(const Manifest& manifest,
                                                        std::unique_ptr<SampleIndex> index);

  std::string_view reader() const override { return kReader; }
  std::uint64_t samples() const override { return index_->samples(); }
  const std::vector<SampleStretch>& stretches() const override { return stretches_; }
  Result<SampleLocation> locate(const RequestContext& context, std::uint64_t sample) override;
  Result<std::vector<SampleValue>> decode(const SampleLocation& location,
                                          const std::vector<Slice>& parts) override;

 private:
  using BlockPtr = std::shared_ptr<const SampleBlock>;

  explicit WebDatasetSource(std::unique_ptr<SampleIndex> index) : index_(std::move(index)) {}
  Result<BlockPtr> block(const RequestContext& context, std::uint32_t number);

  const std::unique_ptr<SampleIndex> index_;
  std::vector<SampleStretch> stretches_;
  std::vector<std::uint64_t> shard_bytes_;
  LastUsed<SampleBlock> kept_{kBlocksKept};
};

}  // namespace millrace
