#include "vfs/node_paths.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "base/log.h"
#include "platform/path.h"

namespace millrace {
namespace {

constexpr std::string_view kNodesHeader = "millrace-nodes 1\n";
// Checksum of what follows, number, length of the path; then the path.
constexpr std::size_t kHeadBytes = 4 + 8 + 2;
constexpr std::size_t kRecordBytesMax = kHeadBytes + NodePaths::kPathBytesMax;
constexpr std::uint64_t kNodesBytesMax = std::uint64_t{UINT32_MAX};
// Of added paths: more than this is written without waiting for a flush.
constexpr std::size_t kPendingBytesMax = 256 * kKiB;
// While the disk takes none: more than this is refused.
constexpr std::size_t kUnwrittenBytesMax = 16 * kMiB;
constexpr std::size_t kLoadBytes = kMiB;

std::string record_bytes(std::uint64_t number, std::string_view path) {
  std::string bytes(kHeadBytes, '\0');
  auto* const at = reinterpret_cast<std::byte*>(bytes.data());
  store_little_endian<std::uint64_t>(at + 4, number);
  store_little_endian<std::uint16_t>(at + 12, static_cast<std::uint16_t>(path.size()));
  bytes += path;
  const std::uint32_t checksum = crc32c(as_bytes(bytes).subspan(4));
  store_little_endian<std::uint32_t>(reinterpret_cast<std::byte*>(bytes.data()), checksum);
  return bytes;
}

std::uint32_t checksum_in(const std::string& record) {
  return load_little_endian<std::uint32_t>(as_bytes(record).data());
}

struct ParsedRecord {
  std::uint32_t checksum = 0;
  std::uint64_t number = 0;
  std::string_view path = {};
  std::size_t bytes() const { return kHeadBytes + path.size(); }
};

// Nothing when the bytes do not begin with a whole record as it was written.
std::optional<ParsedRecord> parse_record(std::string_view bytes) {
  if (bytes.size() < kHeadBytes) return std::nullopt;
  const auto* const at = reinterpret_cast<const std::byte*>(bytes.data());
  const std::size_t length = load_little_endian<std::uint16_t>(at + 12);
  if (length > NodePaths::kPathBytesMax || bytes.size() < kHeadBytes + length) return std::nullopt;
  const ParsedRecord record{.checksum = load_little_endian<std::uint32_t>(at),
                            .number = load_little_endian<std::uint64_t>(at + 4),
                            .path = bytes.substr(kHeadBytes, length)};
  if (crc32c(as_bytes(bytes.substr(4, kHeadBytes - 4 + length))) != record.checksum ||
      place_of(NodeNumber(record.number)) != NodePlace::kBuckets) {
    return std::nullopt;
  }
  return record;
}

}  // namespace

const NodePaths::Record* NodePaths::Generation::find(std::uint64_t number) const {
  const SlotIndex::Slot slot = index.find(
      number, [&](SlotIndex::Slot candidate) { return records[candidate].number == number; });
  return slot == SlotIndex::kNone ? nullptr : &records[slot];
}

void NodePaths::Generation::add(Record record) {
  records.push_back(record);
  index.add(static_cast<SlotIndex::Slot>(records.size() - 1),
            [&](SlotIndex::Slot slot) { return records[slot].number; });
}

Result<std::unique_ptr<NodePaths>> NodePaths::open(Disk& disk, std::string path,
                                                   NodePathsLimits limits) {
  std::unique_ptr<NodePaths> paths(new NodePaths(disk, std::move(path), limits));
  MR_RETURN_IF_ERROR(paths->load());
  return paths;
}

Status NodePaths::load() {
  MutexLock lock(mutex_);
  MR_ASSIGN_OR_RETURN(before_, load_file(path_ + ".before"));
  MR_ASSIGN_OR_RETURN(now_, load_file(path_));
  return {};
}

// Piece by piece, for it may be as large as the memory that is left.
Result<NodePaths::Generation> NodePaths::load_file(const std::string& path) {
  Generation loaded;
  MR_ASSIGN_OR_RETURN(loaded.file, disk_.open(path, OpenMode::kCreate));
  MR_ASSIGN_OR_RETURN(const std::uint64_t size, loaded.file->size());
  std::string text(std::min<std::uint64_t>(size, kLoadBytes), '\0');
  MR_ASSIGN_OR_RETURN(std::size_t got,
                      loaded.file->read_at(0, std::as_writable_bytes(std::span(text))));
  text.resize(got);
  if (!text.starts_with(kNodesHeader)) {
    if (!kNodesHeader.starts_with(text)) {
      return failure(StatusCode::kCorruption,
                     fmt::format("{} does not begin with '{}': it was written by another version "
                                 "of Millrace, or is something else; move it away",
                                 path, kNodesHeader.substr(0, kNodesHeader.size() - 1)));
    }
    MR_RETURN_IF_ERROR(begin_file(loaded));
    return loaded;
  }
  loaded.bytes = kNodesHeader.size();
  for (std::size_t at = loaded.bytes;;) {
    const std::optional<ParsedRecord> record = parse_record(std::string_view(text).substr(at));
    if (record && loaded.bytes < kNodesBytesMax - kRecordBytesMax) {
      if (loaded.find(record->number) == nullptr) {
        loaded.add({record->number, static_cast<std::uint32_t>(loaded.bytes), record->checksum});
      }
      at += record->bytes();
      loaded.bytes += record->bytes();
      continue;
    }
    // Perhaps it goes on in the next piece.
    if (text.size() - at >= kRecordBytesMax || loaded.bytes + (text.size() - at) >= size) break;
    text.assign(std::min<std::uint64_t>(size - loaded.bytes, kLoadBytes), '\0');
    MR_ASSIGN_OR_RETURN(
        got, loaded.file->read_at(loaded.bytes, std::as_writable_bytes(std::span(text))));
    text.resize(got);
    at = 0;
    if (got == 0) break;
  }
  if (loaded.bytes < size) {
    log_warn("the end of a list of nodes is damaged, and is dropped",
             {{"file", path}, {"bytes", size - loaded.bytes}});
    MR_RETURN_IF_ERROR(loaded.file->truncate(loaded.bytes));
  }
  return loaded;
}

Status NodePaths::begin_file(Generation& generation) {
  MR_RETURN_IF_ERROR(generation.file->truncate(0));
  MR_RETURN_IF_ERROR(generation.file->write_at(0, as_bytes(kNodesHeader)));
  // Or a power loss could leave a file that is not known as ours.
  MR_RETURN_IF_ERROR(generation.file->sync());
  MR_RETURN_IF_ERROR(disk_.sync_directory(std::string(parent_path(std::string_view(path_)))));
  generation.bytes = kNodesHeader.size();
  return {};
}

Status NodePaths::turn_over() {
  // Of a turn that failed half-way only the second half is left.
  if (now_.bytes > 0) {
    MR_RETURN_IF_ERROR(write_pending());
    MR_RETURN_IF_ERROR(disk_.rename(path_, path_ + ".before", Replace::kAllowed));
    before_ = std::exchange(now_, {});
  }
  MR_ASSIGN_OR_RETURN(now_.file, disk_.open(path_, OpenMode::kCreate));
  return begin_file(now_);
}

Status NodePaths::append(std::uint64_t number, std::string_view path) {
  if (now_.bytes == 0 || now_.records.size() >= limits_.paths_max ||
      now_.bytes >= limits_.bytes_max) {
    MR_RETURN_IF_ERROR(turn_over());
  }
  if (pending_.size() >= kPendingBytesMax) {
    const Status written = write_pending();
    if (!written.ok() && pending_.size() >= kUnwrittenBytesMax) return written;
  }
  const std::string bytes = record_bytes(number, path);
  now_.add({number, static_cast<std::uint32_t>(now_.bytes), checksum_in(bytes)});
  pending_ += bytes;
  now_.bytes += bytes.size();
  return {};
}

Status NodePaths::write_pending() {
  if (pending_.empty()) return {};
  MR_RETURN_IF_ERROR(now_.file->write_at(now_.bytes - pending_.size(), as_bytes(pending_)));
  pending_.clear();
  return {};
}

Result<std::string> NodePaths::read(const Generation& generation, const Record& record) {
  std::string bytes;
  const std::uint64_t written_bytes = now_.bytes - pending_.size();
  if (&generation == &now_ && record.offset >= written_bytes) {
    bytes = pending_.substr(record.offset - written_bytes, kRecordBytesMax);
  } else {
    bytes.resize(kRecordBytesMax);
    MR_ASSIGN_OR_RETURN(
        const std::size_t got,
        generation.file->read_at(record.offset, std::as_writable_bytes(std::span(bytes))));
    bytes.resize(got);
  }
  const std::optional<ParsedRecord> parsed = parse_record(bytes);
  if (!parsed || parsed->number != record.number) {
    return failure(StatusCode::kCorruption, fmt::format("the record at byte {} of {} is damaged",
                                                        record.offset, generation.file->path()));
  }
  return std::string(parsed->path);
}

Result<NodeNumber> NodePaths::add(std::string_view path) {
  if (path.size() > kPathBytesMax) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("a path of {} bytes is too long", path.size()));
  }
  const NodeNumber number = named_node(NamedNodes::kBuckets, path);
  MutexLock lock(mutex_);
  const Record* const current = now_.find(number.value());
  const Record* const known = current != nullptr ? current : before_.find(number.value());
  if (known != nullptr && known->checksum != checksum_in(record_bytes(number.value(), path))) {
    return failure(StatusCode::kInternal,
                   fmt::format("'{}' and another path have one node number", path));
  }
  if (current == nullptr) MR_RETURN_IF_ERROR(append(number.value(), path));
  return number;
}

Status NodePaths::flush() {
  MutexLock lock(mutex_);
  return write_pending();
}

Result<std::string> NodePaths::find(NodeNumber number) {
  MutexLock lock(mutex_);
  if (const Record* current = now_.find(number.value())) return read(now_, *current);
  const Record* const old = before_.find(number.value());
  if (old == nullptr) return failure(StatusCode::kNotFound, "there is no such node any more");
  MR_ASSIGN_OR_RETURN(std::string path, read(before_, *old));
  if (const Status kept = append(number.value(), path); !kept.ok()) {
    log_warn("a node that is in use may be forgotten",
             {{"path", path}, {"error", kept.to_string()}});
  }
  return path;
}

}  // namespace millrace
