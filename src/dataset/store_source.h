#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "dataset/source_tree.h"
#include "objectstore/object_store.h"

namespace millrace {

struct StoreSourceOptions {
  std::size_t threads = 16;
  // Into how many listings a scan is split at most.
  std::size_t ranges_max = 128;
  std::uint32_t page_entries_max = 1000;
};

// The objects below a prefix of a store as source: the key behind the prefix is the path.
//
// A key of no bytes that ends in '/', as consoles make for "folders", is a directory. Keys that
// cannot be names are problems: an empty component, ".", "..", a component above 255 bytes, a '/'
// at the end of an object that has bytes. An object whose key is also a directory of other objects
// is a problem, while those others are entries. The token is the object's identity, and every read
// is conditional on it.
class StoreSource final : public SourceTree {
 public:
  // A prefix that is not empty means the directory of that name: "a" is "a/". `store` and `clock`
  // outlive the source.
  StoreSource(ObjectStore& store, std::string prefix, StoreSourceOptions options = {},
              Clock& clock = system_clock());

  Status scan(const RequestContext& context, SourceSink& sink) override;
  // Sends nothing: the first read finds out.
  Result<std::unique_ptr<SourceFile>> open(const RequestContext& context,
                                           const SourceEntry& entry) override;
  std::string describe() const override;

  ObjectKey key_of(const SourceEntry& entry) const { return ObjectKey(prefix_ + entry.path); }

 private:
  ObjectStore& store_;
  const std::string prefix_;
  const StoreSourceOptions options_;
  Clock& clock_;
};

}  // namespace millrace
