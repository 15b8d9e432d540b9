#include "frontends/nfs4/nfs_client_records.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/checked_line.h"
#include "base/hex.h"
#include "base/log.h"
#include "frontends/nfs4/nfs_protocol.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

constexpr std::string_view kClientsHeader = "millrace-nfs-clients 1\n";
constexpr std::uint64_t kClientsBytesMax = 128 * kMiB;
// So many lines beyond twice what is needed, and the file is written anew.
constexpr std::size_t kSpareLines = 1000;

struct ParsedClientLine {
  bool added = false;
  std::string owner;
};

std::string client_line(char sign, const std::string& owner) {
  return checked_line(fmt::format("{}{}", sign, to_hex(as_bytes(owner))));
}

// Nothing when the line is not as it was written.
std::optional<ParsedClientLine> parse_client_line(std::string_view line) {
  const std::optional<std::string_view> text = checked_text(line);
  if (!text || text->empty() || (text->front() != '+' && text->front() != '-')) return std::nullopt;
  const Result<std::vector<std::byte>> owner = from_hex(text->substr(1));
  if (!owner || owner->size() > kNfsOpaqueBytesMax) return std::nullopt;
  return ParsedClientLine{text->front() == '+', std::string(as_text(*owner))};
}

}  // namespace

Result<std::unique_ptr<NfsClientRecords>> NfsClientRecords::open(Disk& disk, std::string path) {
  std::unique_ptr<NfsClientRecords> records(new NfsClientRecords(disk, std::move(path)));
  MR_RETURN_IF_ERROR(records->load());
  return records;
}

Status NfsClientRecords::load() {
  MutexLock lock(mutex_);
  const Result<std::string> text = read_small_file(disk_, path_, kClientsBytesMax);
  if (!text) {
    if (text.error() != StatusCode::kNotFound) return text.error();
    return rewrite();
  }
  if (!text->starts_with(kClientsHeader)) {
    return {StatusCode::kCorruption,
            fmt::format("{} does not begin with '{}': it was written by another version of "
                        "Millrace, or is something else; move it away",
                        path_, kClientsHeader.substr(0, kClientsHeader.size() - 1))};
  }
  std::size_t at = kClientsHeader.size();
  for (std::size_t end = text->find('\n', at); end != std::string::npos;
       end = text->find('\n', at)) {
    std::optional<ParsedClientLine> line =
        parse_client_line(std::string_view(*text).substr(at, end - at));
    at = end + 1;
    if (!line) {
      log_warn("a line of the list of NFS clients is damaged", {{"file", path_}});
    } else if (line->added) {
      owners_.insert(std::move(line->owner));
    } else {
      owners_.erase(line->owner);
    }
  }
  return rewrite();
}

bool NfsClientRecords::contains(const std::string& owner) const {
  MutexLock lock(mutex_);
  return owners_.contains(owner);
}

std::set<std::string> NfsClientRecords::owners() const {
  MutexLock lock(mutex_);
  return owners_;
}

Status NfsClientRecords::add(const std::string& owner) {
  MutexLock lock(mutex_);
  if (owners_.contains(owner)) return {};
  MR_RETURN_IF_ERROR(append(client_line('+', owner)));
  if (Status status = file_->sync(); !status.ok()) {
    // What the file holds now is anybody's guess.
    file_.reset();
    return status;
  }
  owners_.insert(owner);
  return {};
}

Status NfsClientRecords::remove(const std::string& owner) {
  MutexLock lock(mutex_);
  if (owners_.erase(owner) == 0) return {};
  return append(client_line('-', owner));
}

Status NfsClientRecords::append(std::string_view line) {
  if (file_ == nullptr || file_lines_ > 2 * owners_.size() + kSpareLines)
    MR_RETURN_IF_ERROR(rewrite());
  if (Status status = file_->write_at(file_bytes_, as_bytes(line)); !status.ok()) {
    file_.reset();
    return status;
  }
  file_bytes_ += line.size();
  ++file_lines_;
  return {};
}

Status NfsClientRecords::rewrite() {
  file_.reset();
  std::string text(kClientsHeader);
  for (const std::string& owner : owners_)
    text += client_line('+', owner);
  MR_RETURN_IF_ERROR(replace_small_file(disk_, path_, text));
  MR_ASSIGN_OR_RETURN(file_, disk_.open(path_, OpenMode::kReadWrite));
  file_bytes_ = text.size();
  file_lines_ = owners_.size();
  return {};
}

}  // namespace millrace
