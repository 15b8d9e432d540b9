#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "platform/file.h"
#include "vfs/node.h"

namespace millrace {

// The open files of a mount that the kernel has us remember, in memory that outlives this process:
// a memfd that the keeper holds too. After a kill the next daemon finds here what it must know to
// go on: which files are open, and which of them the kernel reads by itself.
//
// Invariants:
//  1. A record counts when its `unique` is not 0. It is set after all else of the record, and
//     cleared first, so that a kill between any two stores leaves a record or none.
//  2. A handle names its record by place and by the request that opened it, so that a release that
//     is sent twice removes nothing else.
//  3. Places from `Head::end` on were never used, so that finding the records touches no more
//     memory than they take.
//  4. `last_backing` is at least every backing id in the records.
//  5. `removed_backing` is set before a record goes, so that a kill before its backing is closed
//     leaves no id that nobody knows.
//
// Thread-compatible. One process at a time writes.
class OpenTable {
 public:
  static constexpr std::uint32_t kRecordsMax = 1U << 20;

  struct Record {
    std::uint64_t unique = 0;  // Of the request that opened it, without the mark of a resent one.
    NodeNumber node;
    std::int32_t backing = 0;  // 0: we read it.
  };

  static Result<OpenTable> create();
  // kCorruption when the file is no such table.
  static Result<OpenTable> adopt(File memory);
  OpenTable(OpenTable&& other) noexcept;
  OpenTable& operator=(OpenTable&&) = delete;
  ~OpenTable();

  int descriptor() const { return memory_.descriptor(); }

  // Remembers an open file and names it. A handle is never 0. kResourceExhausted when it is full.
  Result<std::uint64_t> add(const Record& record);
  // Nothing when the handle names no record (any more).
  std::optional<Record> remove(std::uint64_t handle);
  // The handle that a request got before, when it was answered by somebody who was killed.
  std::optional<std::uint64_t> find(std::uint64_t unique) const;
  void visit(const std::function<void(const Record&)>& visitor) const;

  // The newest backing id. Said before the id is used.
  void note_backing(std::int32_t id);
  std::int32_t last_backing() const;
  // Of the record that was removed last.
  std::int32_t removed_backing() const;

 private:
  struct Head;
  struct Slot;

  OpenTable(File memory, void* mapped);
  Slot& slot(std::uint32_t place) const;

  File memory_;
  Head* head_ = nullptr;
  std::vector<std::uint32_t> free_;  // Places before the end that are free.
};

}  // namespace millrace
