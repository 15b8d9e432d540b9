#include "dataset/append_log_listing.h"

#include <charconv>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/mutex.h"

namespace millrace {

namespace {

constexpr std::string_view kRecordSuffix = ".json";
constexpr std::size_t kRecordDigits = 8;
constexpr std::size_t kRecordsInFlightMax = 32;

// A list is no snapshot: it may pass the place of a record before that is written, and then see its
// successor. So a record counts as missing only when the store says so.
Status check_records_present(const RequestContext& context, ObjectStore& store,
                             const std::string& log, std::uint64_t first, std::uint64_t listed) {
  if (listed == 0 || listed > kLogRecordsMax) {
    return {StatusCode::kCorruption,
            fmt::format("'{}{}' is no number of a record", log, log_record_file_name(listed))};
  }
  for (std::uint64_t number = first; number < listed; ++number) {
    const std::string key = log + log_record_file_name(number);
    const auto present = store.head(context, ObjectKey(key));
    if (present) continue;
    if (present.error() != StatusCode::kNotFound) return present.error();
    return {StatusCode::kCorruption,
            fmt::format("'{}' is missing, but its log has a record {}", key, listed)};
  }
  return {};
}

// Reads that are out, and their answers. Shared with the callbacks.
struct RecordReads {
  Mutex mutex;
  CondVar changed;
  std::vector<std::optional<Result<GetResult>>> answers MR_GUARDED_BY(mutex);
  std::size_t in_flight MR_GUARDED_BY(mutex) = 0;

  void wait_until_below(std::size_t count) MR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    while (in_flight >= count)
      changed.wait(mutex);
  }
  void answer(std::size_t i, Result<GetResult> result) MR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    answers[i].emplace(std::move(result));
    --in_flight;
    changed.notify_all();
  }
};

}  // namespace

std::string log_record_file_name(std::uint64_t number) {
  return fmt::format("{:08}{}", number, kRecordSuffix);
}

std::optional<std::uint64_t> log_record_number(std::string_view file_name) {
  if (file_name.size() != kRecordDigits + kRecordSuffix.size() ||
      !file_name.ends_with(kRecordSuffix)) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const char* end = file_name.data() + kRecordDigits;
  const auto parsed = std::from_chars(file_name.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

GetRequest log_record_request(const std::string& key) {
  return {.key = ObjectKey(key), .bytes_max = kLogRecordBytesMax};
}

Result<LogRecord> decode_numbered_record(const Result<GetResult>& read, const std::string& key,
                                         std::uint64_t number) {
  if (!read) {
    if (read.error() != StatusCode::kInvalidArgument) return failure(read.error());
    return failure(StatusCode::kCorruption,
                   fmt::format("'{}' is no record: {}", key, read.error().message()));
  }
  MR_ASSIGN_OR_RETURN(LogRecord record, decode_log_record(read->data.text(), key));
  if (record.number == number) return record;
  return failure(StatusCode::kCorruption,
                 fmt::format("'{}' is damaged: it says that it is record {}", key, record.number));
}

Status listed_record_failure(const Status& status, const std::string& key) {
  if (status != StatusCode::kNotFound) return status;
  return {StatusCode::kCorruption, fmt::format("'{}' was listed but is not there", key)};
}

Status for_each_object(const RequestContext& context, ObjectStore& store, const std::string& prefix,
                       const std::function<Status(const ObjectInfo&)>& take) {
  ListRequest request{.prefix = prefix};
  do {
    MR_ASSIGN_OR_RETURN(const ListPage page, store.list(context, request));
    for (const ObjectInfo& object : page.objects)
      MR_RETURN_IF_ERROR(take(object));
    request.continuation = page.continuation;
  } while (!request.continuation.empty());
  return {};
}

Result<std::vector<std::string>> list_folders(const RequestContext& context, ObjectStore& store,
                                              const std::string& prefix) {
  std::vector<std::string> folders;
  const std::size_t base = prefix.rfind('/') + 1;
  ListRequest request{.prefix = prefix, .fold_directories = true};
  do {
    MR_ASSIGN_OR_RETURN(const ListPage page, store.list(context, request));
    for (const std::string& folder : page.prefixes)
      folders.push_back(folder.substr(base, folder.size() - base - 1));
    request.continuation = page.continuation;
  } while (!request.continuation.empty());
  return folders;
}

Result<LogEnds> list_log_ends(const RequestContext& context, const RegistryAccess& access,
                              const std::string& prefix) {
  LogEnds ends;
  const auto take = [&](const ObjectInfo& object) -> Status {
    const std::string& key = object.key.value();
    const std::size_t name = key.rfind('/') + 1;
    const auto number = log_record_number(std::string_view(key).substr(name));
    if (!number) return {};
    const std::string log = key.substr(0, name);
    Result<std::uint64_t>& end = ends.try_emplace(log, 0).first->second;
    if (!end) return {};
    const Status status = check_records_present(context, access.store, log,
                                                std::exchange(*end, *number) + 1, *number);
    if (status == StatusCode::kCorruption) end = failure(status);
    return end ? status : Status();
  };
  MR_RETURN_IF_ERROR(for_each_object(context, access.store, prefix, take));
  return ends;
}

Result<std::vector<Result<LogRecord>>> read_log_records(const RequestContext& context,
                                                        const RegistryAccess& access,
                                                        const std::vector<LogPosition>& positions) {
  auto reads = std::make_shared<RecordReads>();
  {
    MutexLock lock(reads->mutex);
    reads->answers.resize(positions.size());
  }
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    keys.push_back(positions[i].prefix + log_record_file_name(positions[i].number));
    reads->wait_until_below(kRecordsInFlightMax);
    {
      MutexLock lock(reads->mutex);
      ++reads->in_flight;
    }
    access.store.get_range(context, log_record_request(keys[i]),
                           Completion<GetResult>(inline_executor(), [reads, i](auto result) {
                             reads->answer(i, std::move(result));
                           }));
  }
  reads->wait_until_below(1);

  MutexLock lock(reads->mutex);
  std::vector<Result<LogRecord>> records;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    auto record = decode_numbered_record(*reads->answers[i], keys[i], positions[i].number);
    if (!record) {
      record = failure(listed_record_failure(record.error(), keys[i]));
      const StatusCode code = record.error().code();
      if (code != StatusCode::kCorruption && code != StatusCode::kUnsupported)
        return failure(record.error());
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace millrace
