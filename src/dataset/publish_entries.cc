#include "dataset/publish_entries.h"

#include <utility>

#include "dataset/payload.h"

namespace millrace {
namespace {

constexpr std::uint16_t kSpooledNoMode = 0xffff;

Status damaged_spool() {
  return {StatusCode::kInternal, "a temporary file of the publish changed"};
}

void write_source(PayloadWriter& writer, const SourceEntry& entry) {
  writer.number(entry.mode.value_or(kSpooledNoMode));
  writer.number(static_cast<std::uint64_t>(entry.mtime_ns));
  writer.number(entry.size);
  writer.text(entry.symlink_target);
  writer.text(entry.token);
}

void read_source(PayloadReader& reader, SourceEntry& entry) {
  const auto mode = reader.number<std::uint16_t>();
  entry.mode = mode == kSpooledNoMode ? std::nullopt : std::optional(mode);
  entry.mtime_ns = static_cast<std::int64_t>(reader.number<std::uint64_t>());
  entry.size = reader.number<std::uint64_t>();
  entry.symlink_target = reader.text();
  entry.token = reader.text();
}

Status append_record(ManifestSpool& spool, ByteView payload) {
  PayloadWriter head;
  head.number(static_cast<std::uint32_t>(payload.size()));
  MR_RETURN_IF_ERROR(spool.append(head.bytes()));
  return spool.append(payload);
}

Result<std::optional<ByteView>> next_record(ManifestSpoolReader& reader) {
  if (reader.at_end()) return std::nullopt;
  MR_ASSIGN_OR_RETURN(const ByteView head, reader.read(sizeof(std::uint32_t)));
  const auto length = load_little_endian<std::uint32_t>(head.data());
  MR_ASSIGN_OR_RETURN(const ByteView payload, reader.read(length));
  return payload;
}

}  // namespace

void encode_source_payload(const SourceEntry& entry, std::vector<std::byte>& out) {
  PayloadWriter writer;
  write_source(writer, entry);
  out.assign(writer.bytes().begin(), writer.bytes().end());
}

Status decode_source_payload(ByteView payload, SourceEntry& entry) {
  PayloadReader reader(payload);
  read_source(reader, entry);
  return reader.ok() && reader.at_end() ? Status() : damaged_spool();
}

Status PublishedEntries::add(const PublishedEntry& entry) {
  PayloadWriter writer;
  writer.text(entry.source.path);
  writer.number(static_cast<std::uint8_t>(entry.source.kind));
  write_source(writer, entry.source);
  writer.number(std::uint8_t{entry.reused.has_value()});
  writer.number(entry.reused.value_or(0));
  writer.number(entry.base);
  return append_record(spool_, writer.bytes());
}

Result<std::optional<PublishedEntry>> PublishedEntries::Reader::next() {
  MR_ASSIGN_OR_RETURN(const std::optional<ByteView> payload, next_record(reader_));
  if (!payload) return std::nullopt;
  PayloadReader reader(*payload);
  PublishedEntry entry;
  entry.source.path = reader.text();
  entry.source.kind = static_cast<EntryKind>(reader.number<std::uint8_t>());
  read_source(reader, entry.source);
  const bool reused = reader.number<std::uint8_t>() != 0;
  const auto index = reader.number<std::uint32_t>();
  entry.base = reader.number<std::uint32_t>();
  if (reused) entry.reused = index;
  if (!reader.ok() || !reader.at_end()) return failure(damaged_spool());
  return entry;
}

Status SpooledPaths::add(const std::string& path) { return append_record(spool_, as_bytes(path)); }

Result<std::optional<std::string>> SpooledPaths::Reader::next() {
  MR_ASSIGN_OR_RETURN(const std::optional<ByteView> payload, next_record(reader_));
  if (!payload) return std::nullopt;
  return std::string(as_text(*payload));
}

}  // namespace millrace
