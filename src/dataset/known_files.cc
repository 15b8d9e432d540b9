#include "dataset/known_files.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/checksum.h"
#include "dataset/entry_order.h"
#include "dataset/payload.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr std::string_view kKnownMagic = "millrace known files 1\n";
constexpr std::size_t kKnownBufferBytes = 256 * kKiB;
constexpr std::uint32_t kKnownRecordBytesMax = 16 * 1024;
constexpr std::size_t kKnownHeadBytes = 8;  // Length and CRC-32C of the rest.

}  // namespace

// ---- Reading

KnownFilesReader KnownFilesReader::open(const std::string& path) {
  Result<File> file = File::open(path, O_RDONLY);
  KnownFilesReader reader(file ? *std::move(file) : File());
  const bool is_ours =
      reader.file_.is_open() && as_text(reader.take(kKnownMagic.size())) == kKnownMagic;
  reader.more_ = is_ours && reader.next();
  return reader;
}

ByteView KnownFilesReader::take(std::size_t count) {
  if (buffer_.size() - used_ < count) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
    const std::size_t have = buffer_.size();
    buffer_.resize(std::max(count, kKnownBufferBytes));
    const Result<std::size_t> size =
        file_.read_at(position_, MutableByteView(buffer_).subspan(have));
    buffer_.resize(have + size.value_or(0));
    position_ += size.value_or(0);
    if (buffer_.size() < count) return {};
  }
  const ByteView bytes = ByteView(buffer_).subspan(used_, count);
  used_ += count;
  return bytes;
}

bool KnownFilesReader::next() {
  const ByteView head = take(kKnownHeadBytes);
  if (head.empty()) return false;
  const auto length = load_little_endian<std::uint32_t>(head.data());
  const auto checksum = load_little_endian<std::uint32_t>(head.data() + 4);
  if (length > kKnownRecordBytesMax) return false;
  const ByteView payload = take(length);
  if (payload.size() != length || crc32c(payload) != checksum) return false;
  PayloadReader reader(payload);
  known_.path = reader.text();
  known_.size = reader.number<std::uint64_t>();
  known_.mtime_ns = static_cast<std::int64_t>(reader.number<std::uint64_t>());
  known_.token = reader.text();
  std::ranges::copy(reader.raw(known_.hash.size()), known_.hash.begin());
  return reader.ok() && reader.at_end();
}

std::optional<Sha256Digest> KnownFilesReader::find(const SourceEntry& file) {
  while (more_ && compare_entries(known_.path, file.path) < 0)
    more_ = next();
  if (!more_ || known_.path != file.path || known_.size != file.size ||
      known_.mtime_ns != file.mtime_ns || known_.token != file.token) {
    return std::nullopt;
  }
  return known_.hash;
}

// ---- Writing

Result<std::unique_ptr<KnownFilesWriter>> KnownFilesWriter::create(const std::string& path) {
  MR_ASSIGN_OR_RETURN(File file, File::open(path + ".new", O_RDWR | O_CREAT | O_TRUNC, 0600));
  std::unique_ptr<KnownFilesWriter> writer(new KnownFilesWriter(std::move(file), path));
  const ByteView magic = as_bytes(kKnownMagic);
  writer->buffer_.assign(magic.begin(), magic.end());
  return writer;
}

KnownFilesWriter::~KnownFilesWriter() {
  if (!finished_) (void)std::remove(file_.path().c_str());
}

Status KnownFilesWriter::add(const SourceEntry& file, const Sha256Digest& hash) {
  PayloadWriter payload;
  payload.text(file.path);
  payload.number(file.size);
  payload.number(static_cast<std::uint64_t>(file.mtime_ns));
  payload.text(file.token);
  payload.raw(hash);
  if (payload.bytes().size() > kKnownRecordBytesMax) return {};
  PayloadWriter record;
  record.number(static_cast<std::uint32_t>(payload.bytes().size()));
  record.number(crc32c(payload.bytes()));
  record.raw(payload.bytes());
  buffer_.insert(buffer_.end(), record.bytes().begin(), record.bytes().end());
  return buffer_.size() >= kKnownBufferBytes ? flush() : Status();
}

Status KnownFilesWriter::flush() {
  MR_RETURN_IF_ERROR(file_.write_at(written_, buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

Status KnownFilesWriter::finish() {
  MR_RETURN_IF_ERROR(flush());
  if (std::rename(file_.path().c_str(), path_.c_str()) != 0) {
    return file_error(errno, "rename to", path_);
  }
  finished_ = true;
  return {};
}

}  // namespace millrace
