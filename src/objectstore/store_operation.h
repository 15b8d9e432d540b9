#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace {

// The requests that an ObjectStore takes, as wrappers count, record and break them. The order is
// that of the label `op` in metrics/metric_table.cc; a test compares the two.
enum class StoreOperation : std::uint8_t {
  kGetRange,
  kHead,
  kList,
  kPut,
  kStartUpload,
  kUploadWrite,
  kUploadFinish,
  kUploadAbort,
  kCopy,
  kRemove,
};

inline constexpr std::array<std::string_view, 10> kStoreOperationNames = {
    "get_range",    "head",          "list",         "put",  "start_upload",
    "upload_write", "upload_finish", "upload_abort", "copy", "remove",
};
inline constexpr std::size_t kStoreOperationCount = kStoreOperationNames.size();

inline std::string_view store_operation_name(StoreOperation operation) {
  return kStoreOperationNames[static_cast<std::size_t>(operation)];
}

}  // namespace millrace
