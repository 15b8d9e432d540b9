#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/completion.h"
#include "base/fetch_account.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/planned_reads.h"
#include "dataset/manifest_format.h"
#include "loader/block_layout.h"

namespace millrace {

class Manifest;

// The seam to content: the files of one version, from a cache or from the store itself. Blocks;
// safe from any thread.
class SampleFiles {
 public:
  virtual ~SampleFiles() = default;
  virtual const Manifest& manifest() const = 0;
  // Exactly these bytes of a file, which has them. Fails as who reads them does.
  virtual Result<Slice> read(const RequestContext& context, EntryIndex file, ByteRange range) = 0;
  // The same, answered by the context's deadline; may block where nothing better is known.
  virtual void start_read(const RequestContext& context, EntryIndex file, ByteRange range,
                          Completion<Slice> done) {
    done.complete(read(context, file, range));
  }
  // Says that the bytes will be read soon, to a cache where there is one. Returns at once, and a
  // failure is that of who reads them.
  virtual void expect(const RequestContext& /*context*/, EntryIndex /*file*/, ByteRange /*range*/) {
  }
  // Appends what reading the range will ask a cache for; nothing where there is none.
  virtual Status plan_read(EntryIndex /*file*/, ByteRange /*range*/,
                           std::vector<PlannedRead>& /*reads*/) {
    return {};
  }
  // Who pays for what is fetched ahead for a caller; null when nobody counts.
  virtual std::shared_ptr<FetchAccount> account(const Caller& /*caller*/) { return nullptr; }
};

// A range of a file that a sample is made of.
struct SamplePart {
  std::string field = {};
  EntryIndex file = 0;
  ByteRange range = {};
  bool operator==(const SamplePart&) const = default;
};

// All that has to be read for a sample: known before any of it is read, so that it can be fetched
// ahead.
struct SampleLocation {
  std::uint64_t sample = 0;
  std::string key = {};
  std::vector<SamplePart> parts = {};
  // Bytes of the sample that the source had to read already; decode() takes them from here.
  Slice ready = {};
};

// A field of a sample. What it holds is named by `type`:
//
//   "bytes"                        as they are: a file, a JPEG, a field of no known type
//   "str", "json", "str_int", ...  text
//   "pickle"                       what Python's pickle made of an object
//   "int64", "float32", ...        numbers, little-endian; `shape` is empty for a single one
//   "pil:RGB"                      pixels of that mode; `shape` is height and width
//   "list"                         `items`, each of them bytes
struct SampleValue {
  std::string name = {};
  std::string type = "bytes";
  Slice bytes = {};
  std::vector<std::uint64_t> shape = {};
  std::vector<Slice> items = {};
};

// The samples of a version, as one reader understands it. Samples are numbered as they lie.
//
// Trusts nothing that it reads: kCorruption for what fails a check. Safe from any thread.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  // The name of the reader, as states have it.
  virtual std::string_view reader() const = 0;
  virtual std::uint64_t samples() const = 0;
  // Add up to all samples, in their order.
  virtual const std::vector<SampleStretch>& stretches() const = 0;

  // `sample` is below samples(). May read a table or a block of an index, which it keeps for a
  // while. Blocks.
  virtual Result<SampleLocation> locate(const RequestContext& context, std::uint64_t sample) = 0;
  // The fields of a sample from the bytes of its parts, in their order. Slices share the memory of
  // `parts` where they can.
  virtual Result<std::vector<SampleValue>> decode(const SampleLocation& location,
                                                  const std::vector<Slice>& parts) = 0;
  // Reads side by side what locate() would read for these samples one after the other. Failures are
  // locate()'s to tell. Blocks.
  virtual void look_up(const RequestContext& /*context*/,
                       std::span<const std::uint64_t> /*samples*/) {}
};

// Locates a sample, reads its parts and decodes them.
Result<std::vector<SampleValue>> read_sample(const RequestContext& context, SampleFiles& files,
                                             SampleSource& source, std::uint64_t sample);

}  // namespace millrace
