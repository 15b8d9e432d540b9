#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/object_version.h"
#include "cache/unit_bits.h"
#include "service/path_glob.h"
#include "vfs/version_objects.h"

namespace millrace {

// What of a version's objects the chosen files need. All files: the objects whole.
//
// Invariants:
//  1. Every byte of a chosen file is in it, and nothing that does not share a unit with one, but
//     for what small objects have besides.
//  2. It takes a bit for each unit (64 KiB) of the objects that it has parts of, and a bit for each
//     entry of a manifest of registered objects: nothing for each file or range.
//
// Keeps the manifest. Safe to read from any thread.
class PreloadPlan {
 public:
  // kNotFound when one of `paths` matches no file. Reads the manifest. Blocks.
  static Result<PreloadPlan> make(const RequestContext& context, const Clock& clock,
                                  std::shared_ptr<const VersionObjects> objects,
                                  const std::vector<PathGlob>& paths);

  // Shows what is wanted, object by object, as ranges that do not touch, until the visitor fails.
  using Visitor = std::function<Status(const ObjectVersion& object, ByteRange range)>;
  Status visit(const Visitor& visitor) const;

  std::uint64_t files() const { return files_; }

 private:
  struct WantedObject {
    explicit WantedObject(std::uint64_t object_size)
        : size(object_size), units(unit_count(object_size)) {}
    std::uint64_t size;
    UnitBits units;
  };

  explicit PreloadPlan(std::shared_ptr<const VersionObjects> objects)
      : objects_(std::move(objects)) {}

  Status take_all(const RequestContext& context, const Clock& clock);
  Status take_matching(const RequestContext& context, const Clock& clock,
                       const std::vector<PathGlob>& paths);
  Status take(const ManifestEntry& file);
  Status want(std::uint32_t object, ByteRange bytes);
  void want_own(EntryIndex entry);
  Status visit_numbered(const Visitor& visitor) const;
  Status visit_own(const Visitor& visitor) const;

  std::shared_ptr<const VersionObjects> objects_;
  bool whole_objects_ = false;  // Of those with numbers: all of all.
  std::map<std::uint32_t, WantedObject> wanted_;
  std::vector<bool> own_;  // Entries that are objects of their own. Empty: none is wanted.
  std::uint64_t files_ = 0;
};

}  // namespace millrace
