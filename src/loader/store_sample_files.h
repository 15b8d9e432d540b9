#pragma once

#include "dataset/version_reader.h"
#include "loader/sample_source.h"

namespace millrace {

// The files of a version straight from their stores, for those who read little of it: an index, a
// few samples. The reader outlives it. Safe from any thread.
class StoreSampleFiles final : public SampleFiles {
 public:
  explicit StoreSampleFiles(const VersionReader& reader) : reader_(reader) {}

  const Manifest& manifest() const override { return reader_.manifest(); }
  Result<Slice> read(const RequestContext& context, EntryIndex file, ByteRange range) override;

 private:
  const VersionReader& reader_;
};

}  // namespace millrace
