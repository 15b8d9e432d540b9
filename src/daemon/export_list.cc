#include "daemon/export_list.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/checked_line.h"
#include "base/log.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

constexpr std::string_view kExportsHeader = "millrace-exports 1\n";
constexpr std::string_view kExportsHeaderWord = "millrace-exports ";
// 1,024 exports with 256 networks each are less.
constexpr std::uint64_t kExportsFileBytesMax = 16 * kMiB;

Result<std::vector<NfsExport>> decode_exports(std::string_view text, const std::string& file) {
  if (!text.starts_with(kExportsHeader)) {
    const bool is_later = text.starts_with(kExportsHeaderWord);
    return failure(is_later ? StatusCode::kUnsupported : StatusCode::kCorruption,
                   fmt::format("{} does not begin with '{}'", file,
                               kExportsHeader.substr(0, kExportsHeader.size() - 1)));
  }
  text.remove_prefix(kExportsHeader.size());
  std::vector<NfsExport> exports;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const auto line =
        end == std::string_view::npos ? std::nullopt : checked_text(text.substr(0, end));
    if (!line) {
      return failure(StatusCode::kCorruption,
                     fmt::format("{} has a line that does not fit its checksum", file));
    }
    MR_ASSIGN_OR_RETURN(NfsExport kept, NfsExport::parse(*line));
    exports.push_back(std::move(kept));
    text.remove_prefix(end + 1);
  }
  return exports;
}

}  // namespace

Result<std::unique_ptr<ExportList>> ExportList::open(Disk& disk, std::string file,
                                                     std::vector<NfsExport> settings,
                                                     RpcTransport offered) {
  for (const NfsExport& exported : settings)
    MR_RETURN_IF_ERROR(check_nfs_transport(exported, offered));
  std::unique_ptr<ExportList> list(
      new ExportList(disk, std::move(file), std::move(settings), offered));
  MR_RETURN_IF_ERROR(list->load());
  return list;
}

Status ExportList::load() {
  const Result<std::string> text = read_small_file(disk_, file_, kExportsFileBytesMax);
  if (!text) return text.error().code() == StatusCode::kNotFound ? Status() : text.error();
  MR_ASSIGN_OR_RETURN(std::vector<NfsExport> kept, decode_exports(*text, file_));
  for (NfsExport& added : kept) {
    const std::string path = added.path;
    Status status = check_nfs_transport(added, offered_);
    if (status.ok()) status = exports_.add(std::move(added));
    if (!status.ok()) {
      log_warn("an export is left out", {{"path", path}, {"reason", status.message()}});
    }
  }
  return {};
}

Status ExportList::add(NfsExport added) {
  MR_RETURN_IF_ERROR(check_nfs_transport(added, offered_));
  const MutexLock lock(mutex_);
  const std::string path = added.path;
  MR_RETURN_IF_ERROR(exports_.add(std::move(added)));
  Status status = save();
  // What is not kept is not served either: it would be gone with the next start.
  if (!status.ok()) (void)exports_.remove(path);
  return status;
}

Status ExportList::remove(std::string_view path) {
  const MutexLock lock(mutex_);
  if (is_setting(path)) {
    return {StatusCode::kConflict,
            fmt::format("{} is exported by the settings: take it out of 'exports'", path)};
  }
  const auto before = exports_.table();
  MR_RETURN_IF_ERROR(exports_.remove(path));
  Status status = save();
  if (!status.ok()) (void)exports_.add(*before->find(path));
  return status;
}

bool ExportList::is_setting(std::string_view path) const {
  return std::ranges::any_of(settings_, [&](const NfsExport& e) { return e.path == path; });
}

Status ExportList::save() {
  std::string text(kExportsHeader);
  const auto table = exports_.table();
  for (const NfsExport& exported : table->exports()) {
    if (!is_setting(exported.path)) text += checked_line(exported.to_string());
  }
  return replace_small_file(disk_, file_, text);
}

}  // namespace millrace
