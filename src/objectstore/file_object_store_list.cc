#include "objectstore/file_object_store_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "objectstore/file_object_store_attributes.h"
#include "objectstore/file_object_store_keys.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace::file_object_store {
namespace {

// Larger pages are cut: a page may always be shorter than asked for.
constexpr std::size_t kPageEntriesMax = 10'000;
constexpr std::string_view kContinuationVersion = "1";

std::string to_hex(std::string_view text) {
  std::string hex;
  for (const char c : text)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

bool from_hex(std::string_view hex, std::string& text) {
  if (hex.size() % 2 != 0) return false;
  for (; !hex.empty(); hex.remove_prefix(2)) {
    unsigned char byte = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + 2, byte, 16);
    if (error != std::errc() || end != hex.data() + 2) return false;
    text += static_cast<char>(byte);
  }
  return true;
}

enum class EntryKind : std::uint8_t { kFile, kDirectory, kOther };

EntryKind kind_of(DIR* directory, const dirent& entry) {
  mode_t mode = DTTOIF(entry.d_type);
  if (entry.d_type == DT_UNKNOWN) {
    struct stat facts{};
    if (::fstatat(::dirfd(directory), entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
      return EntryKind::kOther;
    }
    mode = facts.st_mode;
  }
  if (S_ISREG(mode)) return EntryKind::kFile;
  return S_ISDIR(mode) ? EntryKind::kDirectory : EntryKind::kOther;
}

}  // namespace

Lister::Lister(const RequestContext& context, const Clock& clock, const Tree& tree,
               const ListRequest& request)
    : context_(context),
      clock_(clock),
      tree_(tree),
      request_(request),
      entries_max_(std::min<std::size_t>(request.entries_max, kPageEntriesMax)) {}

Result<ListPage> Lister::run() {
  if (request_.entries_max == 0) {
    return failure(StatusCode::kInvalidArgument, "a page of 0 entries would never end");
  }
  after_ = request_.start_after;
  if (!request_.continuation.empty()) MR_RETURN_IF_ERROR(decode_continuation());
  MR_ASSIGN_OR_RETURN(const bool more, walk("", ""));
  if (more) page_.continuation = encode_continuation(last_kind_, last_);
  return std::move(page_);
}

// "1" <kind: k or p> <checksum> <last entry>, in hexadecimal. The checksum covers what the listing
// was about as well, so that a continuation cannot go on in another listing unnoticed.
std::string Lister::encode_continuation(char kind, std::string_view last) const {
  const std::string about =
      fmt::format("{}\n{}\n{}\n{}", kind, request_.fold_directories, request_.prefix, last);
  return fmt::format("{}{}{:08x}{}", kContinuationVersion, kind, crc32c(as_bytes(about)),
                     to_hex(last));
}

Status Lister::decode_continuation() {
  constexpr std::size_t kHeaderBytes = 10;
  const std::string_view text = request_.continuation;
  std::string last;
  const bool readable = text.size() >= kHeaderBytes && from_hex(text.substr(kHeaderBytes), last);
  if (!readable || encode_continuation(text[1], last) != text) {
    return {StatusCode::kInvalidArgument,
            "the continuation is not from a page of this listing (same prefix and folding)"};
  }
  after_ = std::move(last);
  skip_below_ = text[1] == 'p';
  return {};
}

bool Lister::page_is_full() const {
  return page_.objects.size() + page_.prefixes.size() >= entries_max_;
}

bool Lister::key_matches(std::string_view key) const {
  return key.starts_with(request_.prefix) && key > after_ &&
         !(skip_below_ && key.starts_with(after_));
}

// `key` ends in '/', and all keys below the directory begin with it.
bool Lister::directory_may_match(std::string_view key) const {
  const bool prefix_fits = key.starts_with(request_.prefix) || request_.prefix.starts_with(key);
  if (!prefix_fits || (skip_below_ && key.starts_with(after_))) return false;
  return key > after_ || after_.starts_with(key);
}

bool Lister::wanted(const std::string& key_prefix, const Entry& entry) {
  const std::string key = key_prefix + entry.sort_name;
  if (!(entry.is_directory() ? directory_may_match(key) : key_matches(key))) return false;
  const Status valid = validate_key(ObjectKey(key));
  if (!valid.ok()) {
    log_warn("a file is left out of a listing, because its name can be no key",
             {{"directory", tree_.root_path()}, {"name", key}, {"reason", valid.message()}});
  }
  return valid.ok();
}

Result<std::vector<Lister::Entry>> Lister::scan(const std::string& path,
                                                const std::string& key_prefix,
                                                const std::string& after) {
  MR_RETURN_IF_ERROR(context_.check(clock_));
  std::vector<Entry> entries;
  Result<File> opened = tree_.open_directory(path);
  // Gone since its parent was read: no key is left below it.
  if (!opened && opened.error().code() == StatusCode::kNotFound && !path.empty()) return entries;
  if (!opened) return failure(opened.error());
  const int scanned = ::fcntl(opened->descriptor(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(scanned < 0 ? nullptr : ::fdopendir(scanned),
                                                      ::closedir);
  if (directory == nullptr) return failure(file_error(errno, "list", opened->path()));

  // A heap with the greatest on top keeps the least ones: one more than the page, to see its end.
  const std::size_t kept_max = entries_max_ + 1;
  for (std::uint64_t count = 1;; ++count) {
    if (count % 4096 == 0) MR_RETURN_IF_ERROR(context_.check(clock_));
    errno = 0;
    const dirent* found = ::readdir(directory.get());
    if (found == nullptr && errno != 0) return failure(file_error(errno, "list", opened->path()));
    if (found == nullptr) break;
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    if (path.empty() && (name == kTemporaryDirectory || name == kLockFile)) continue;
    std::optional<std::string> component = component_of_name(name);
    if (!component) {
      log_warn("a file is left out of a listing, because its name has a '%' that is not ours",
               {{"directory", opened->path()}, {"name", name}});
      continue;
    }
    const EntryKind kind = kind_of(directory.get(), *found);
    if (kind == EntryKind::kOther) continue;
    if (kind == EntryKind::kDirectory) *component += '/';
    Entry entry{std::move(*component), std::string(name)};
    if (!after.empty() && entry.sort_name <= after) continue;
    if (entries.size() == kept_max && entries.front() < entry) continue;
    if (!wanted(key_prefix, entry)) continue;
    entries.push_back(std::move(entry));
    std::ranges::push_heap(entries, std::less<>());
    if (entries.size() > kept_max) {
      std::ranges::pop_heap(entries, std::less<>());
      entries.pop_back();
    }
  }
  std::ranges::sort_heap(entries, std::less<>());
  return entries;
}

Result<bool> Lister::walk(const std::string& path, const std::string& key_prefix) {
  std::string after;
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::vector<Entry> entries, scan(path, key_prefix, after));
    for (const Entry& entry : entries) {
      MR_ASSIGN_OR_RETURN(const bool full, visit(path, key_prefix, entry));
      if (full) return true;
    }
    // Fewer than a page needs came: these were all. Else some of them were empty directories.
    if (entries.size() <= entries_max_) return false;
    after = entries.back().sort_name;
  }
}

Result<bool> Lister::visit(const std::string& path, const std::string& key_prefix,
                           const Entry& entry) {
  const std::string child = path.empty() ? entry.file_name : join_path(path, entry.file_name);
  const std::string key = key_prefix + entry.sort_name;
  if (!entry.is_directory()) return add_object(child, key);
  const bool folded = request_.fold_directories && key.size() > request_.prefix.size();
  if (!folded) return walk(child, key);
  MR_ASSIGN_OR_RETURN(const bool present, holds_match(child, key));
  if (!present) return false;
  if (page_is_full()) return true;
  page_.prefixes.push_back(key);
  last_ = key;
  last_kind_ = 'p';
  return false;
}

Result<bool> Lister::add_object(const std::string& path, const std::string& key) {
  Result<File> file = tree_.open_file(path);
  // Removed, or replaced by something else, since the directory was read.
  if (!file && file.error().code() == StatusCode::kNotFound) return false;
  if (!file) return failure(file.error());
  if (page_is_full()) return true;
  MR_ASSIGN_OR_RETURN(const struct stat facts, file->stat());
  MR_ASSIGN_OR_RETURN(const std::optional<Attributes> attributes, read_attributes(*file, facts));
  ObjectInfo info;
  info.key = ObjectKey(key);
  info.size = static_cast<std::uint64_t>(facts.st_size);
  info.identity = identity_of(facts, attributes);
  info.modified = modified_time(facts);
  page_.objects.push_back(std::move(info));
  last_ = key;
  last_kind_ = 'k';
  return false;
}

Result<bool> Lister::holds_match(const std::string& path, const std::string& key_prefix) {
  std::string after;
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::vector<Entry> entries, scan(path, key_prefix, after));
    for (const Entry& entry : entries) {
      if (!entry.is_directory()) return true;
      MR_ASSIGN_OR_RETURN(const bool present, holds_match(join_path(path, entry.file_name),
                                                          key_prefix + entry.sort_name));
      if (present) return true;
    }
    if (entries.size() <= entries_max_) return false;
    after = entries.back().sort_name;
  }
}

}  // namespace millrace::file_object_store
