#include "dataset/append_log.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/completion.h"
#include "dataset/append_log_listing.h"

namespace millrace {

namespace {

// The store below retries by itself; these rounds are for finding out what an answer said that was
// lost.
constexpr int kAppendRoundsMax = 4;

bool leaves_append_in_doubt(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kDeadlineExceeded ||
         code == StatusCode::kCancelled || code == StatusCode::kConflict;
}

Status append_outcome_unknown(const std::string& key, const Status& last) {
  const bool caller_stopped =
      last == StatusCode::kDeadlineExceeded || last == StatusCode::kCancelled;
  return {caller_stopped ? last.code() : StatusCode::kUnavailable,
          fmt::format("it is not known whether '{}' was written, look before you repeat: {}", key,
                      last.message())};
}

}  // namespace

std::string AppendLog::key_of(std::uint64_t number) const {
  return prefix_ + log_record_file_name(number);
}

Result<std::uint64_t> AppendLog::last_number(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const auto ends, list_log_ends(context, access_, prefix_));
  const auto found = ends.find(prefix_);
  if (found == ends.end()) return 0;
  return found->second;
}

Result<std::optional<LogRecord>> AppendLog::last(const RequestContext& context,
                                                 std::uint64_t likely) const {
  Waiter<GetResult> early;
  if (likely != 0) {
    access_.store.get_range(context, log_record_request(key_of(likely)), early.completion());
  }
  const auto listed = last_number(context);
  std::optional<Result<GetResult>> guess;
  if (likely != 0) guess = early.wait();
  MR_ASSIGN_OR_RETURN(const std::uint64_t number, listed);
  if (number == 0) return std::nullopt;
  // What is written never changes, so an answer that came before the list's is as good.
  const bool guessed = number == likely && guess->has_value();
  auto found =
      guessed ? decode_numbered_record(*guess, key_of(number), number) : record(context, number);
  if (found) return std::move(*found);
  return failure(listed_record_failure(found.error(), key_of(number)));
}

Result<LogRecord> AppendLog::record(const RequestContext& context, std::uint64_t number) const {
  const std::string key = key_of(number);
  return decode_numbered_record(access_.store.get(context, log_record_request(key)), key, number);
}

Result<std::vector<LogRecord>> AppendLog::records(const RequestContext& context) const {
  MR_ASSIGN_OR_RETURN(const std::uint64_t last, last_number(context));
  std::vector<LogPosition> positions;
  for (std::uint64_t number = 1; number <= last; ++number)
    positions.push_back({prefix_, number});
  MR_ASSIGN_OR_RETURN(auto found, read_log_records(context, access_, positions));
  std::vector<LogRecord> records;
  for (Result<LogRecord>& record : found) {
    if (!record) return failure(record.error());
    records.push_back(std::move(*record));
  }
  return records;
}

Status AppendLog::put(const RequestContext& context, const ObjectKey& key,
                      const Slice& text) const {
  PutOptions options;
  if (access_.single_writer) {
    const auto present = access_.store.head(context, key);
    if (present) return {StatusCode::kPreconditionFailed, "the record exists"};
    if (present.error() != StatusCode::kNotFound) return present.error();
  } else {
    options.condition = WriteCondition::if_absent();
  }
  const auto stored = access_.store.put(context, key, text, options);
  return stored ? Status() : stored.error();
}

Result<Appended> AppendLog::append(const RequestContext& context, std::uint64_t number,
                                   std::string kind, nlohmann::json payload,
                                   std::string nonce) const {
  if (number > kLogRecordsMax) {
    return failure(StatusCode::kResourceExhausted,
                   fmt::format("the log '{}' is full: it has {} records", prefix_, kLogRecordsMax));
  }
  LogRecord record{.key = key_of(number),
                   .kind = std::move(kind),
                   .number = number,
                   .nonce = std::move(nonce),
                   // To the millisecond, as it is written: who reads it back sees the same.
                   .time = std::chrono::floor<std::chrono::milliseconds>(access_.clock.wall_now()),
                   .who = access_.writer,
                   .payload = std::move(payload)};
  MR_ASSIGN_OR_RETURN(std::string text, encode_log_record(record));
  const ObjectKey key(record.key);
  const Slice body = Slice::from_string(std::move(text));

  bool in_doubt = false;
  Status last;
  for (int round = 0; round < kAppendRoundsMax; ++round) {
    last = put(context, key, body);
    if (last.ok()) return Appended{true, std::move(record)};
    in_doubt = in_doubt || leaves_append_in_doubt(last.code());
    if (!in_doubt && last != StatusCode::kPreconditionFailed) return failure(last);

    auto there = this->record(context, number);
    if (there) {
      const bool ours = there->nonce == record.nonce;
      return Appended{ours, std::move(*there)};
    }
    if (there.error() == StatusCode::kCorruption || there.error() == StatusCode::kUnsupported)
      return failure(there.error());
    // Not there, or not seen: the same record is put again, which cannot make two of it.
    if (there.error() != StatusCode::kNotFound) last = there.error();
    if (!context.check(access_.clock).ok()) break;
  }
  return failure(append_outcome_unknown(record.key, last));
}

}  // namespace millrace
