#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/log_record.h"
#include "dataset/registry_access.h"

namespace millrace {

inline constexpr std::uint64_t kLogRecordsMax = 100'000;

// What became of an append: the record that has the number now, ours or another writer's.
struct Appended {
  bool ours = false;
  LogRecord record = {};
};

// One append-only log of the registry: records "<prefix>00000001.json" and on.
//
// Invariants:
//  1. Records are numbered from 1 without a gap, at most kLogRecordsMax of them.
//  2. A record never changes and is never removed: whoever has read one knows it for ever.
//  3. Number n + 1 is written only by a writer that has seen n, with create-if-absent. So of
//     several writers that saw n exactly one appends, and the others learn who did.
//
// Keys that have not the form of a record are ignored: consoles leave markers of directories.
// Stateless, safe from any thread; what `access` refers to outlives it. Blocks.
class AppendLog {
 public:
  // `prefix` ends in '/'.
  AppendLog(const RegistryAccess& access, std::string prefix)
      : access_(access), prefix_(std::move(prefix)) {}

  const std::string& prefix() const { return prefix_; }
  std::string key_of(std::uint64_t number) const;

  // 0 when there is no record. kCorruption, with the key, when one is missing before the last.
  Result<std::uint64_t> last_number(const RequestContext& context) const;
  // Nothing when there is no record. Takes a list and then a GET; the GET goes beside the list
  // where the caller knows which record is most `likely` the last, and is right.
  Result<std::optional<LogRecord>> last(const RequestContext& context,
                                        std::uint64_t likely = 0) const;
  Result<LogRecord> record(const RequestContext& context, std::uint64_t number) const;
  // From the first to the last.
  Result<std::vector<LogRecord>> records(const RequestContext& context) const;

  // Puts a record at `number`, whose predecessor the caller has seen. When an answer is lost it
  // finds out by the nonce whose record is there. Failures leave nothing behind, but for
  // kUnavailable, kDeadlineExceeded and kCancelled with a message that says that the outcome is not
  // known: a later append with the same nonce and number settles it. kResourceExhausted when the
  // log is full.
  Result<Appended> append(const RequestContext& context, std::uint64_t number, std::string kind,
                          nlohmann::json payload, std::string nonce) const;

 private:
  Status put(const RequestContext& context, const ObjectKey& key, const Slice& text) const;

  const RegistryAccess& access_;
  const std::string prefix_;
};

// The last number of every log below `prefix` (which ends in '/'), by the log's prefix. Takes one
// list for each 1,000 records, and reads none. A log that has a gap does not hide the others: the
// kCorruption of AppendLog::last_number() stands in its place. Any other failure is that of all.
using LogEnds = std::map<std::string, Result<std::uint64_t>>;
Result<LogEnds> list_log_ends(const RequestContext& context, const RegistryAccess& access,
                              const std::string& prefix);

struct LogPosition {
  std::string prefix = {};
  std::uint64_t number = 0;
};

// Reads many records, several at a time, and answers in the order of `positions`. What is wrong
// with one record (kCorruption, kUnsupported) is its own answer; any other failure is that of all.
Result<std::vector<Result<LogRecord>>> read_log_records(const RequestContext& context,
                                                        const RegistryAccess& access,
                                                        const std::vector<LogPosition>& positions);

}  // namespace millrace
