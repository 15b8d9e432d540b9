#include "cache/object_file.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "cache/object_map_format.h"

namespace millrace {
namespace {

// How many records are read or written at a time: 64 KiB of them, 512 MiB of object.
constexpr std::uint32_t kRecordsPerPiece = 8192;

std::string map_path(const std::string& stem) { return stem + ".map"; }
std::string data_path(const std::string& stem) { return stem + ".data"; }

Result<MapHeader> read_map_header(DiskFile& map) {
  std::vector<std::byte> bytes(kMapHeaderBytesMax);
  MR_ASSIGN_OR_RETURN(const std::size_t size, map.read_at(0, bytes));
  if (size == 0) return failure(StatusCode::kNotFound, fmt::format("{} is empty", map.path()));
  Result<MapHeader> header = decode_map_header(ByteView(bytes).first(size));
  if (!header) {
    return failure(header.error().code(),
                   fmt::format("{}: {}", map.path(), header.error().message()));
  }
  return header;
}

Status remove_if_there(Disk& disk, const std::string& path) {
  Status status = disk.remove(path);
  return status.code() == StatusCode::kNotFound ? Status() : status;
}

}  // namespace

ObjectFile::ObjectFile(const ObjectVersion& version, std::uint64_t records_offset,
                       std::unique_ptr<DiskFile> map, std::shared_ptr<DiskFile> data)
    : version_(version),
      records_offset_(records_offset),
      map_(std::move(map)),
      data_(std::move(data)) {}

Result<std::unique_ptr<ObjectFile>> ObjectFile::open(Disk& disk, const std::string& stem,
                                                     const ObjectVersion& version) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> map,
                      disk.open(map_path(stem), OpenMode::kReadWrite));
  MR_ASSIGN_OR_RETURN(const MapHeader header, read_map_header(*map));
  if (header.version.digest() != version.digest()) {
    return failure(StatusCode::kCorruption, fmt::format("{} describes another object, '{}'",
                                                        map->path(), header.version.key().value()));
  }
  Result<std::unique_ptr<DiskFile>> data = disk.open(data_path(stem), OpenMode::kReadWrite);
  if (!data) {
    const StatusCode code = data.error().code() == StatusCode::kNotFound ? StatusCode::kCorruption
                                                                         : data.error().code();
    return failure(code, data.error().message());
  }
  // A kill between the steps of create(), or a power loss, leaves a shorter file. Readers of a
  // descriptor must see the object's size.
  MR_ASSIGN_OR_RETURN(const std::uint64_t size, (*data)->size());
  if (size != version.size()) MR_RETURN_IF_ERROR((*data)->truncate(version.size()));
  return std::unique_ptr<ObjectFile>(
      new ObjectFile(version, header.records_offset, std::move(map), std::move(*data)));
}

Result<std::unique_ptr<ObjectFile>> ObjectFile::create(Disk& disk, const std::string& stem,
                                                       const ObjectVersion& version) {
  MR_ASSIGN_OR_RETURN(const std::string header, encode_map_header(version));
  MR_RETURN_IF_ERROR(remove(disk, stem));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> data,
                      disk.open(data_path(stem), OpenMode::kCreateNew));
  MR_RETURN_IF_ERROR(data->truncate(version.size()));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> map,
                      disk.open(map_path(stem), OpenMode::kCreateNew));
  // The header first: a kill before it leaves an empty file, which is no map yet.
  MR_RETURN_IF_ERROR(map->write_at(0, as_bytes(header)));
  MR_RETURN_IF_ERROR(map->truncate(header.size() + (std::uint64_t{unit_count(version.size())} + 1) *
                                                       kMapRecordBytes));
  return std::unique_ptr<ObjectFile>(
      new ObjectFile(version, header.size(), std::move(map), std::move(data)));
}

Status ObjectFile::remove(Disk& disk, const std::string& stem) {
  // The map first: data without a map is nothing, a map without data would be damage.
  MR_RETURN_IF_ERROR(remove_if_there(disk, map_path(stem)));
  return remove_if_there(disk, data_path(stem));
}

Status ObjectFile::read_record_bytes(UnitRange units, MutableByteView into) {
  MR_ASSIGN_OR_RETURN(
      const std::size_t size,
      map_->read_at(records_offset_ + std::uint64_t{units.first} * kMapRecordBytes, into));
  // A map that lost its end has no records there.
  std::fill(into.begin() + static_cast<std::ptrdiff_t>(size), into.end(), std::byte{});
  return {};
}

Result<UnitRecords> ObjectFile::read_records() {
  // The mark of a handed-out file is the record after the last unit's.
  const std::uint32_t mark = unit_count(version_.size());
  const std::uint32_t units = mark + 1;
  std::vector<std::byte> bytes(std::size_t{std::min(units, kRecordsPerPiece)} * kMapRecordBytes);
  UnitRecords records;
  for (std::uint32_t first = 0; first < units; first += kRecordsPerPiece) {
    const std::uint32_t count = std::min(units - first, kRecordsPerPiece);
    const MutableByteView piece(bytes.data(), std::size_t{count} * kMapRecordBytes);
    MR_RETURN_IF_ERROR(read_record_bytes({first, count}, piece));
    for (std::uint32_t i = 0; i < count; ++i) {
      const ByteView record = piece.subspan(std::size_t{i} * kMapRecordBytes, kMapRecordBytes);
      switch (decode_map_record(version_.digest(), first + i, record).state) {
        case MapRecordState::kEmpty:
          break;
        case MapRecordState::kSound:
          records.recorded.push_back(first + i);
          break;
        case MapRecordState::kDamaged:
          records.damaged.push_back(first + i);
          break;
      }
    }
  }
  // A damaged mark was a mark, or may have been one.
  for (std::vector<std::uint32_t>* const list : {&records.recorded, &records.damaged}) {
    if (list->empty() || list->back() != mark) continue;
    records.handed_out = true;
    if (list == &records.recorded) list->pop_back();
  }
  return records;
}

Result<bool> ObjectFile::is_handed_out() {
  const std::uint32_t mark = unit_count(version_.size());
  MapRecord record;
  MR_RETURN_IF_ERROR(read_record_bytes({mark, 1}, record));
  return decode_map_record(version_.digest(), mark, record).state != MapRecordState::kEmpty;
}

Status ObjectFile::mark_handed_out() {
  const std::uint32_t mark = unit_count(version_.size());
  const MapRecord record = encode_map_record(version_.digest(), mark, 1);
  return map_->write_at(records_offset_ + std::uint64_t{mark} * kMapRecordBytes, record);
}

Status ObjectFile::read_checksums(UnitRange units, std::span<std::uint32_t> into) {
  assert(into.size() == units.count);
  std::vector<std::byte> bytes(std::size_t{units.count} * kMapRecordBytes);
  MR_RETURN_IF_ERROR(read_record_bytes(units, bytes));
  for (std::uint32_t i = 0; i < units.count; ++i) {
    const DecodedMapRecord record = decode_map_record(
        version_.digest(), units.first + i,
        ByteView(bytes).subspan(std::size_t{i} * kMapRecordBytes, kMapRecordBytes));
    if (record.state != MapRecordState::kSound) {
      return {StatusCode::kCorruption,
              fmt::format("{} has no sound record of unit {}", map_->path(), units.first + i)};
    }
    into[i] = record.checksum;
  }
  return {};
}

Status ObjectFile::write(UnitRange units, ByteView bytes, std::span<const std::uint32_t> checksums,
                         WrittenPages pages) {
  assert(bytes.size() == bytes_of(units, version_.size()).length);
  assert(checksums.size() == units.count);
  const std::uint64_t offset = units.first * kUnitBytes;
  MR_RETURN_IF_ERROR(pages == WrittenPages::kFilled ? data_->write_at(offset, bytes)
                                                    : data_->write_past_cache(offset, bytes));
  std::vector<std::byte> records;
  records.reserve(std::size_t{units.count} * kMapRecordBytes);
  for (std::uint32_t i = 0; i < units.count; ++i) {
    const MapRecord record = encode_map_record(version_.digest(), units.first + i, checksums[i]);
    records.insert(records.end(), record.begin(), record.end());
  }
  return map_->write_at(records_offset_ + std::uint64_t{units.first} * kMapRecordBytes, records);
}

Status ObjectFile::distrust(UnitRange units) {
  const std::vector<std::byte> zeros(std::size_t{units.count} * kMapRecordBytes);
  return map_->write_at(records_offset_ + std::uint64_t{units.first} * kMapRecordBytes, zeros);
}

Status ObjectFile::forget(UnitRange units) {
  // Records first: a kill in between leaves bytes that nobody counts on, not a record of zeros.
  MR_RETURN_IF_ERROR(distrust(units));
  const ByteRange bytes = bytes_of(units, version_.size());
  return data_->punch(bytes.offset, bytes.length);
}

Result<ObjectVersion> read_object_map_version(Disk& disk, const std::string& stem) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> map,
                      disk.open(map_path(stem), OpenMode::kRead));
  MR_ASSIGN_OR_RETURN(const MapHeader header, read_map_header(*map));
  return header.version;
}

}  // namespace millrace
