#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/entry_order.h"
#include "dataset/manifest_spool.h"

namespace millrace {

// One entry as the sorter holds it in memory and in its temporary file:
//
//   payload length (4), path length (2), depth (2), sequence (8: rank in the top byte, kind in the
//   next), path with NUL for '/', payload
//
// The NULs make the order of paths of one depth that of plain bytes.
class SortRecord {
 public:
  static constexpr std::size_t kHeadBytes = 16;
  // Which entry of several with one path comes first: a directory wins over anything else, one that
  // was given over one that only follows from a path below it.
  enum class Rank : std::uint8_t { kDirectory = 0, kImplied = 1, kOther = 2 };

  // `bytes` begin with a whole record.
  explicit SortRecord(const std::byte* bytes) : bytes_(bytes) {}
  static void append_to(std::vector<std::byte>& out, std::string_view path, EntryKind kind,
                        bool implied, std::uint64_t number, ByteView payload);

  std::size_t bytes() const;
  std::string_view key() const;  // The path with NUL for '/'.
  EntryKind kind() const;
  Rank rank() const;
  ByteView payload() const;

  bool operator<(const SortRecord& other) const;

 private:
  std::size_t depth() const;
  std::uint64_t sequence() const;

  const std::byte* bytes_;
};

// Sorted records, one after the other, from memory or from a part of the sorter's file.
class SortRun {
 public:
  // Of `arena`, in this order; both outlive the run.
  SortRun(const std::vector<std::byte>& arena, const std::vector<std::uint32_t>& order);
  explicit SortRun(ManifestSpoolReader reader);

  // Moves to the next record, the first one to begin with. False at the end.
  Result<bool> advance();
  // Valid until the next advance().
  SortRecord record() const { return SortRecord(current_); }

 private:
  const std::vector<std::byte>* arena_ = nullptr;
  const std::vector<std::uint32_t>* order_ = nullptr;
  std::size_t next_ = 0;
  std::optional<ManifestSpoolReader> reader_;
  const std::byte* current_ = nullptr;
};

}  // namespace millrace
