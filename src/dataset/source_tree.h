#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/entry_order.h"

namespace millrace {

// What a version is made of: one directory, file or symbolic link as the scan met it.
struct SourceEntry {
  // Relative to the root, '/' between components, any bytes but NUL. Empty for the root itself.
  std::string path = {};
  EntryKind kind = EntryKind::kFile;
  // The 12 permission bits. Nothing when the source has none, as an object store.
  std::optional<std::uint16_t> mode = {};
  // Nanoseconds since 1970.
  std::int64_t mtime_ns = 0;
  // Bytes of a file, 0 for all else.
  std::uint64_t size = 0;
  std::string symlink_target = {};
  // For files: opaque bytes that, with size and mtime, tell this content from a later one. An entry
  // that was written down and read back opens as well as the one from the scan.
  std::string token = {};

  bool operator==(const SourceEntry&) const = default;
};

// Something that cannot become part of a version, and why: "it is a socket".
struct SourceProblem {
  // As in SourceEntry, or the key behind the prefix when it is no path.
  std::string path = {};
  std::string reason = {};

  bool operator==(const SourceProblem&) const = default;
};

// Takes what a scan finds. Both methods are called from several threads at once, in no order, and
// may block to slow the scan down. A failure ends the scan with that failure.
class SourceSink {
 public:
  virtual ~SourceSink() = default;

  // A few entries, which may be moved from.
  virtual Status take(std::span<SourceEntry> entries) = 0;
  // Nothing that a scan meets vanishes silently: it is an entry or a problem.
  virtual Status report(SourceProblem problem) = 0;
};

// One open file of a source. Its methods may be called from one thread at a time.
class SourceFile {
 public:
  virtual ~SourceFile() = default;

  // Fills `into` from `offset`. Returns how much there was: less than asked for only at the end of
  // the file. kConflict, with the path, when the source notices that the file is another one now.
  virtual Result<std::size_t> read_at(const RequestContext& context, std::uint64_t offset,
                                      MutableByteView into) = 0;

  // True when everything that read_at gave is the content that the scan met. False when the file
  // was changed, replaced or removed since, whether or not its size is the same.
  virtual Result<bool> unchanged(const RequestContext& context) = 0;
};

// Where a publish takes its files from.
//
// Lifecycle: scan once or more, open what was found. All methods are safe from any thread; the tree
// outlives the files that it opened.
class SourceTree {
 public:
  virtual ~SourceTree() = default;

  // Gives every directory, file and link below the root to the sink, in no order, from threads of
  // its own, each once. The root itself comes too if the source knows something of it. Directories
  // that exist only as part of a name (in an object store) do not come. Hard links are files like
  // others. Memory stays bounded whatever the size of the tree. What changes meanwhile is met
  // before or after its change, or reported. Fails when the root cannot be read, when the sink
  // fails, or when the context ends; then some of the tree was given.
  virtual Status scan(const RequestContext& context, SourceSink& sink) = 0;

  // Opens a file for reading. kConflict, with the path, when it is not what the scan met any more.
  virtual Result<std::unique_ptr<SourceFile>> open(const RequestContext& context,
                                                   const SourceEntry& entry) = 0;

  // Where this is, for messages.
  virtual std::string describe() const = 0;
};

// kConflict: "'a/b' changed since it was scanned: <how>".
Status source_changed(std::string_view path, std::string_view how);

}  // namespace millrace
