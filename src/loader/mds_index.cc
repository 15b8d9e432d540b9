#include "loader/mds_index.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace millrace {

namespace {

using MdsJson = nlohmann::json;

constexpr std::uint64_t kMdsVersion = 2;
// Offsets in a shard have 32 bits.
constexpr std::uint64_t kMdsShardBytesMax = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMdsHashesMax = 16;

// One object of the index, with where it stands for complaints.
struct MdsObject {
  const MdsJson& json;
  std::string place;

  std::unexpected<Status> wrong(std::string_view field, std::string_view wanted) const {
    return failure(StatusCode::kCorruption,
                   fmt::format("index.json: {}{} is not {}", place, field, wanted));
  }
  const MdsJson* find(std::string_view field) const {
    if (!json.is_object()) return nullptr;
    const auto at = json.find(field);
    return at == json.end() ? nullptr : &*at;
  }
  Result<std::uint64_t> number(std::string_view field, std::uint64_t most) const {
    const MdsJson* value = find(field);
    if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() > most) {
      return wrong(field, fmt::format("a number up to {}", most));
    }
    return value->get<std::uint64_t>();
  }
  Result<std::string> text(std::string_view field) const {
    const MdsJson* value = find(field);
    if (value == nullptr || !value->is_string()) return wrong(field, "a text");
    return value->get<std::string>();
  }
  Result<const MdsJson*> list(std::string_view field, std::size_t most) const {
    const MdsJson* value = find(field);
    if (value == nullptr || !value->is_array() || value->size() > most) {
      return wrong(field, fmt::format("a list of up to {}", most));
    }
    return value;
  }
};

// A path below the directory of the index. Anything else could name files of others.
bool is_plain_path(std::string_view path) {
  if (path.empty() || path.starts_with('/') || path.contains('\0')) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

Result<MdsFile> parse_mds_file(const MdsObject& object) {
  MdsFile file;
  MR_ASSIGN_OR_RETURN(file.name, object.text("basename"));
  if (!is_plain_path(file.name)) return object.wrong("basename", "a path below the index");
  MR_ASSIGN_OR_RETURN(file.bytes, object.number("bytes", kMdsShardBytesMax));
  const MdsJson* hashes = object.find("hashes");
  if (hashes == nullptr || !hashes->is_object() || hashes->size() > kMdsHashesMax) {
    return object.wrong("hashes", "an object");
  }
  for (const auto& [algorithm, digest] : hashes->items()) {
    if (!digest.is_string()) return object.wrong("hashes", "made of texts");
    file.hashes.emplace_back(algorithm, digest.get<std::string>());
  }
  return file;
}

Result<std::vector<MdsColumn>> parse_columns(const MdsObject& shard, bool allow_pickle) {
  MR_ASSIGN_OR_RETURN(const MdsJson* names, shard.list("column_names", kMdsColumnsMax));
  MR_ASSIGN_OR_RETURN(const MdsJson* encodings, shard.list("column_encodings", kMdsColumnsMax));
  MR_ASSIGN_OR_RETURN(const MdsJson* sizes, shard.list("column_sizes", kMdsColumnsMax));
  if (encodings->size() != names->size() || sizes->size() != names->size()) {
    return shard.wrong("column_names", "as long as column_encodings and column_sizes");
  }
  std::vector<MdsColumn> columns;
  for (std::size_t n = 0; n < names->size(); ++n) {
    const MdsJson& size = (*sizes)[n];
    if (!(*names)[n].is_string()) return shard.wrong("column_names", "made of texts");
    if (!(*encodings)[n].is_string()) return shard.wrong("column_encodings", "made of texts");
    MdsColumn column{.name = (*names)[n].get<std::string>(),
                     .encoding = (*encodings)[n].get<std::string>()};
    if (column.encoding == "pkl" && !allow_pickle) {
      return failure(StatusCode::kUnsupported,
                     fmt::format("index.json: {}column '{}' is pickled: reading it would run code "
                                 "that the file holds; say allow_pickle if you trust it",
                                 shard.place, column.name));
    }
    if (size.is_number_unsigned() && size.get<std::uint64_t>() <= kMdsShardBytesMax) {
      column.size = size.get<std::uint32_t>();
    } else if (!size.is_null()) {
      return shard.wrong("column_sizes", "made of sizes and null");
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

Result<std::string> parse_compression(const MdsObject& shard) {
  const MdsJson* compression = shard.find("compression");
  if (compression == nullptr || compression->is_null()) return "";
  if (!compression->is_string()) return shard.wrong("compression", "a text or null");
  const std::string text = compression->get<std::string>();
  return text.substr(0, text.find(':'));  // "zstd:7" has a level.
}

Result<MdsShard> parse_mds_shard(const MdsObject& object, bool allow_pickle, MdsIndex& index) {
  MR_ASSIGN_OR_RETURN(const std::uint64_t version, object.number("version", UINT32_MAX));
  MR_ASSIGN_OR_RETURN(const std::string format, object.text("format"));
  if (version != kMdsVersion || format != "mds") {
    return failure(StatusCode::kUnsupported,
                   fmt::format("index.json: {}format is '{}' version {}, and only 'mds' version 2 "
                               "is read",
                               object.place, format, version));
  }
  MdsShard shard;
  MR_ASSIGN_OR_RETURN(shard.samples, object.number("samples", kMdsShardBytesMax / 4));
  MR_ASSIGN_OR_RETURN(std::vector<MdsColumn> columns, parse_columns(object, allow_pickle));
  if (index.columns.empty() || index.columns.back() != columns) {
    index.columns.push_back(std::move(columns));
  }
  shard.columns = static_cast<std::uint32_t>(index.columns.size() - 1);
  MR_ASSIGN_OR_RETURN(shard.compression, parse_compression(object));
  const MdsJson* raw = object.find("raw_data");
  if (raw == nullptr) return object.wrong("raw_data", "there");
  MR_ASSIGN_OR_RETURN(shard.raw,
                      parse_mds_file({.json = *raw, .place = object.place + "raw_data."}));
  const MdsJson* zip = object.find("zip_data");
  if (zip != nullptr && !zip->is_null()) {
    MR_ASSIGN_OR_RETURN(shard.compressed,
                        parse_mds_file({.json = *zip, .place = object.place + "zip_data."}));
  }
  if (shard.compressed.has_value() == shard.compression.empty()) {
    return object.wrong("zip_data", "there exactly where there is a compression");
  }
  return shard;
}

}  // namespace

Result<MdsIndex> parse_mds_index(std::string_view text, bool allow_pickle) {
  const MdsJson json = MdsJson::parse(text, nullptr, false);
  const MdsObject object{.json = json, .place = ""};
  if (!json.is_object()) {
    return failure(StatusCode::kCorruption, "index.json: it is no JSON object");
  }
  MR_ASSIGN_OR_RETURN(const std::uint64_t version, object.number("version", UINT32_MAX));
  if (version != kMdsVersion) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("index.json: version {}, and only 2 is read", version));
  }
  MR_ASSIGN_OR_RETURN(const MdsJson* shards, object.list("shards", kMdsShardsMax));
  MdsIndex index;
  for (const MdsJson& shard : *shards) {
    const MdsObject at{.json = shard, .place = fmt::format("shards[{}].", index.shards.size())};
    MR_ASSIGN_OR_RETURN(MdsShard parsed, parse_mds_shard(at, allow_pickle, index));
    index.shards.push_back(std::move(parsed));
  }
  return index;
}

}  // namespace millrace
