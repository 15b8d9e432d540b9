#include "dataset/publish_journal.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "dataset/payload.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

// Each record: length and CRC-32C of its payload, then the payload. The first one is the head.
constexpr std::size_t kRecordHeadBytes = 8;
constexpr std::uint32_t kRecordBytesMax = 256U << 20U;
constexpr std::string_view kJournalMagic = "millrace publish journal 1";

Result<std::vector<std::byte>> read_journal_record(const File& file, std::uint64_t at) {
  std::array<std::byte, kRecordHeadBytes> head{};
  MR_ASSIGN_OR_RETURN(const std::size_t head_bytes, file.read_at(at, head));
  const auto length = load_little_endian<std::uint32_t>(head.data());
  if (head_bytes < head.size() || length > kRecordBytesMax) {
    return failure(StatusCode::kCorruption, "a torn record");
  }
  std::vector<std::byte> payload(length);
  MR_ASSIGN_OR_RETURN(const std::size_t size, file.read_at(at + head.size(), payload));
  if (size < length || crc32c(payload) != load_little_endian<std::uint32_t>(head.data() + 4)) {
    return failure(StatusCode::kCorruption, "a torn record");
  }
  return payload;
}

void write_digest(PayloadWriter& writer, ByteView digest) { writer.raw(digest); }

Sha256Digest read_digest(PayloadReader& reader) {
  Sha256Digest digest{};
  std::ranges::copy(reader.raw(digest.size()), digest.begin());
  return digest;
}

StoredContent read_stored_content(PayloadReader& reader) {
  StoredContent content;
  content.key = ObjectKey(reader.text());
  content.identity = ObjectIdentity(reader.text());
  content.size = reader.number<std::uint64_t>();
  const auto checksums = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < checksums && reader.ok(); ++i)
    content.checksums.push_back(reader.number<std::uint32_t>());
  const auto members = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < members && reader.ok(); ++i) {
    StoredContent::Member member;
    member.content_offset = reader.number<std::uint64_t>();
    member.hash.kind = static_cast<HashKind>(reader.number<std::uint8_t>());
    member.hash.bytes = read_digest(reader);
    content.members.push_back(member);
  }
  return content;
}

}  // namespace

Sha256Digest plan_digest(const std::vector<const SourceEntry*>& files) {
  PayloadWriter writer;
  Sha256 sha;
  for (const SourceEntry* file : files) {
    writer.clear();
    writer.text(file->path);
    writer.number(std::uint32_t{file->mode.value_or(0xffff)});
    writer.number(static_cast<std::uint64_t>(file->mtime_ns));
    writer.number(file->size);
    writer.text(file->token);
    sha.add(writer.bytes());
  }
  return sha.finish();
}

Result<std::unique_ptr<PublishJournal>> PublishJournal::open(const std::string& path,
                                                             const std::string& title) {
  MR_ASSIGN_OR_RETURN(File file, File::open(path, O_RDWR | O_CREAT, 0600));
  if (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failure(file_error(errno, "lock", path));
    return failure(StatusCode::kConflict,
                   fmt::format("another process on this machine publishes the same just now (it "
                               "holds {})",
                               path));
  }
  std::unique_ptr<PublishJournal> journal(new PublishJournal(std::move(file), title));
  MR_RETURN_IF_ERROR(journal->load());
  return journal;
}

Status PublishJournal::load() {
  MutexLock lock(mutex_);
  for (;;) {
    const Result<std::vector<std::byte>> payload = read_journal_record(file_, end_);
    if (!payload) {
      if (payload.error().code() != StatusCode::kCorruption) return payload.error();
      break;
    }
    PayloadReader reader(*payload);
    if (end_ == 0) {
      const bool is_ours = reader.text() == kJournalMagic && reader.text() == title_;
      std::string nonce = reader.text();
      if (!is_ours || !reader.ok()) break;
      nonce_ = std::move(nonce);
    } else {
      const Sha256Digest plan = read_digest(reader);
      if (reader.at_end()) {
        records_.erase(plan);
      } else {
        records_[plan] = end_;
      }
    }
    end_ += kRecordHeadBytes + payload->size();
  }
  return file_.truncate(end_);
}

Status PublishJournal::restart(const std::string& nonce) {
  MutexLock lock(mutex_);
  MR_RETURN_IF_ERROR(file_.truncate(0));
  records_.clear();
  end_ = 0;
  nonce_ = nonce;
  PayloadWriter head;
  head.text(kJournalMagic);
  head.text(title_);
  head.text(nonce);
  std::uint64_t at = 0;
  MR_RETURN_IF_ERROR(append(head.bytes(), at));
  // The nonce must be known before anything is stored under it.
  return file_.sync();
}

Status PublishJournal::append(ByteView payload, std::uint64_t& at) {
  PayloadWriter record;
  record.number(static_cast<std::uint32_t>(payload.size()));
  record.number(crc32c(payload));
  record.raw(payload);
  MR_RETURN_IF_ERROR(file_.write_at(end_, record.bytes()));
  at = end_;
  end_ += record.bytes().size();
  return {};
}

Result<std::optional<StoredContent>> PublishJournal::find(const Sha256Digest& plan) const {
  std::uint64_t at = 0;
  {
    MutexLock lock(mutex_);
    const auto record = records_.find(plan);
    if (record == records_.end()) return std::nullopt;
    at = record->second;
  }
  MR_ASSIGN_OR_RETURN(const std::vector<std::byte> payload, read_journal_record(file_, at));
  PayloadReader reader(payload);
  const Sha256Digest digest = read_digest(reader);
  StoredContent content = read_stored_content(reader);
  if (!reader.ok() || !reader.at_end() || digest != plan) {
    return failure(StatusCode::kCorruption,
                   fmt::format("{} was changed by somebody else", file_.path()));
  }
  return content;
}

Status PublishJournal::add(const Sha256Digest& plan, const StoredContent& content) {
  PayloadWriter writer;
  write_digest(writer, plan);
  writer.text(content.key.value());
  writer.text(content.identity.value());
  writer.number(content.size);
  writer.number(static_cast<std::uint32_t>(content.checksums.size()));
  for (const std::uint32_t checksum : content.checksums)
    writer.number(checksum);
  writer.number(static_cast<std::uint32_t>(content.members.size()));
  for (const StoredContent::Member& member : content.members) {
    writer.number(member.content_offset);
    writer.number(static_cast<std::uint8_t>(member.hash.kind));
    write_digest(writer, member.hash.bytes);
  }
  MutexLock lock(mutex_);
  std::uint64_t at = 0;
  MR_RETURN_IF_ERROR(append(writer.bytes(), at));
  records_[plan] = at;
  return {};
}

// A digest without anything behind it.
Status PublishJournal::forget(const Sha256Digest& plan) {
  MutexLock lock(mutex_);
  std::uint64_t at = 0;
  MR_RETURN_IF_ERROR(append(plan, at));
  records_.erase(plan);
  return {};
}

Status PublishJournal::remove() {
  return ::unlink(file_.path().c_str()) == 0 ? Status() : file_error(errno, "remove", file_.path());
}

}  // namespace millrace
