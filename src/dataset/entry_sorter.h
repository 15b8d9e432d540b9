#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/entry_order.h"
#include "dataset/entry_sorter_run.h"
#include "dataset/manifest_spool.h"

namespace millrace {

// Told of an entry that cannot be taken, and why ("is there twice"). Success skips the entry, a
// failure ends the work with it.
using EntryReport = std::function<Status(std::string_view path, std::string_view why)>;

// A report that ends the work: kInvalidArgument with path and reason.
Status refuse_entry(std::string_view path, std::string_view why);

// One entry in its order. The views are valid until the next one is asked for.
struct SortedEntry {
  std::string_view path;
  EntryKind kind = EntryKind::kFile;
  // A directory that nobody added, but that something lies in. It has no payload.
  bool implied = false;
  ByteView payload;
};

struct EntrySorterOptions {
  // For the temporary file.
  std::string directory;
  // Entries are held in memory up to this size, then sorted and written to the file.
  std::size_t run_bytes = 64 * kMiB;
  EntryReport report = refuse_entry;
};

// Brings entries into the order of the manifest, in bounded memory: about run_bytes while adding,
// the same while reading back. Each entry carries a payload that means nothing here.
//
// 1. Every path comes out once, parents before their children, the root ("") first.
// 2. Directories that were not added but have something in them come out as implied ones.
// 3. Of several entries with one path one comes out: a directory before anything else, then the
//    one that was added first. The others are reported.
//
// Lifecycle: add() as often as needed, seal() once, then next() until it gives nothing. After a
// failure the sorter is useless. Needs one thread at a time.
class EntrySorter {
 public:
  static constexpr std::size_t kPayloadBytesMax = 16 * kMiB;

  explicit EntrySorter(EntrySorterOptions options);

  // Copies both. A path that no entry can have is reported.
  Status add(std::string_view path, EntryKind kind, ByteView payload);
  Status seal();
  Result<std::optional<SortedEntry>> next();

  // Whether there was more than one run.
  bool spilled() const { return !run_ends_.empty(); }

 private:
  Status add_parents(std::string_view path);
  Status append(std::string_view path, EntryKind kind, bool implied, ByteView payload);
  void sort_arena();
  Status spill();
  Result<std::optional<SortRecord>> pop();
  void sift_down();
  Status report_again(const SortRecord& record);

  EntrySorterOptions options_;
  std::vector<std::byte> arena_;
  std::vector<std::uint32_t> order_;
  std::uint64_t count_ = 0;
  // Directories that were implied lately. A path may be implied again: it comes out once anyway.
  std::unordered_set<std::string> implied_;
  std::string last_parent_;

  ManifestSpool spool_;
  std::vector<std::uint64_t> run_ends_;
  // A heap by the record that each run stands at. Its first has been given out already.
  std::vector<std::unique_ptr<SortRun>> runs_;
  bool given_ = false;
  std::string path_;
  EntryKind kind_ = EntryKind::kDirectory;
  bool any_given_ = false;
};

}  // namespace millrace
