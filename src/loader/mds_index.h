#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace millrace {

inline constexpr std::uint64_t kMdsShardsMax = 4'000'000;
inline constexpr std::size_t kMdsColumnsMax = 4096;

// A column of an MDS dataset.
struct MdsColumn {
  std::string name = {};
  std::string encoding = {};
  // Of each value; nothing when values differ and a sample says their sizes.
  std::optional<std::uint32_t> size = {};
  bool operator==(const MdsColumn&) const = default;
};

// A file of a shard, as it is or compressed.
struct MdsFile {
  std::string name = {};  // Relative to the index; no "..", not absolute.
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> hashes = {};  // Algorithm, hexadecimal digits.
};

struct MdsShard {
  std::uint64_t samples = 0;
  std::uint32_t columns = 0;  // Which of the index's lists.
  MdsFile raw = {};
  std::optional<MdsFile> compressed = {};
  std::string compression = {};  // "zstd", "gz", ...: without its level. Empty: none.
};

// What index.json of an MDS dataset says (MosaicML Streaming, version 2).
struct MdsIndex {
  // Shards mostly share one list, which then stands here once.
  std::vector<std::vector<MdsColumn>> columns = {};
  std::vector<MdsShard> shards = {};
};

// Takes any bytes. kCorruption for what is no such index, kUnsupported for another version, for
// shards of another format ("json", "csv"), and, unless they are allowed, for columns that are
// pickled: unpickling runs whatever code the file holds. All name shard and field.
Result<MdsIndex> parse_mds_index(std::string_view text, bool allow_pickle = false);

}  // namespace millrace
