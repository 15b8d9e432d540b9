#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/append_log.h"
#include "objectstore/object_store.h"

namespace millrace {

// "00000001.json".
std::string log_record_file_name(std::uint64_t number);
// The reverse; nothing when it is no such name.
std::optional<std::uint64_t> log_record_number(std::string_view file_name);

GetRequest log_record_request(const std::string& key);

// As decode_log_record(), and the record must have this number. A failed read fails as it did, but
// an object too large to be a record is kCorruption.
Result<LogRecord> decode_numbered_record(const Result<GetResult>& read, const std::string& key,
                                         std::uint64_t number);
// The failure to read a record that was listed: not found is kCorruption, for records stay.
Status listed_record_failure(const Status& status, const std::string& key);

// Calls `take` with every object below `prefix`, in the order of keys, page by page. Ends early
// with the first failure that it returns.
Status for_each_object(const RequestContext& context, ObjectStore& store, const std::string& prefix,
                       const std::function<Status(const ObjectInfo&)>& take);

// The names of the folders directly below `prefix` (which ends in '/'), without their '/'.
Result<std::vector<std::string>> list_folders(const RequestContext& context, ObjectStore& store,
                                              const std::string& prefix);

}  // namespace millrace
