#include "loader/sample_source.h"

#include <cassert>

namespace millrace {

Result<std::vector<SampleValue>> read_sample(const RequestContext& context, SampleFiles& files,
                                             SampleSource& source, std::uint64_t sample) {
  assert(sample < source.samples());
  MR_ASSIGN_OR_RETURN(const SampleLocation location, source.locate(context, sample));
  std::vector<Slice> parts;
  for (const SamplePart& part : location.parts) {
    if (part.range.empty()) {
      parts.emplace_back();
      continue;
    }
    MR_ASSIGN_OR_RETURN(Slice bytes, files.read(context, part.file, part.range));
    parts.push_back(std::move(bytes));
  }
  return source.decode(location, parts);
}

}  // namespace millrace
