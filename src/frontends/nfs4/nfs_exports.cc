#include "frontends/nfs4/nfs_exports.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

std::vector<NfsExport> by_path(std::vector<NfsExport> exports) {
  std::ranges::sort(exports, {}, &NfsExport::path);
  return exports;
}

}  // namespace

NfsExportTable::NfsExportTable(std::vector<NfsExport> exports)
    : exports_(by_path(std::move(exports))) {
  names_["/"];
  for (const NfsExport& exported : exports_) {
    by_id_[exported.id()] = &exported;
    const std::string_view path = exported.path;
    // From the root down: each component is a name in the directory before it.
    for (std::size_t slash = 0; slash != std::string_view::npos;) {
      const std::size_t next = path.find('/', slash + 1);
      const std::string_view directory = slash == 0 ? "/" : path.substr(0, slash);
      std::vector<NfsExportName>& names = names_[std::string(directory)];
      const NfsExportName name{.name = path.substr(slash + 1, next - slash - 1),
                               .target = next == std::string_view::npos ? &exported : nullptr};
      // In the order of paths "/a/b" may come between "/a-b/c" and "/a-b/d".
      if (std::ranges::find(names, name.name, &NfsExportName::name) == names.end()) {
        names.push_back(name);
      }
      slash = next;
    }
  }
  for (auto& [directory, names] : names_)
    std::ranges::sort(names, {}, &NfsExportName::name);
}

const NfsExport* NfsExportTable::find(std::uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

const NfsExport* NfsExportTable::find(std::string_view path) const {
  const auto found = std::ranges::lower_bound(
      exports_, path, {}, [](const NfsExport& e) -> std::string_view { return e.path; });
  return found == exports_.end() || found->path != path ? nullptr : &*found;
}

const std::vector<NfsExportName>* NfsExportTable::names(std::string_view directory) const {
  const auto found = names_.find(directory);
  return found == names_.end() ? nullptr : &found->second;
}

std::shared_ptr<const NfsExportTable> NfsExports::table() const {
  const MutexLock lock(mutex_);
  return table_;
}

Status NfsExports::add(NfsExport added) {
  const MutexLock lock(mutex_);
  if (table_->find(added.path) != nullptr) {
    return {StatusCode::kConflict, fmt::format("{} is exported already", added.path)};
  }
  std::vector<NfsExport> exports = table_->exports();
  exports.push_back(std::move(added));
  MR_RETURN_IF_ERROR(check_nfs_exports(exports));
  table_ = std::make_shared<const NfsExportTable>(std::move(exports));
  return {};
}

Status NfsExports::remove(std::string_view path) {
  const MutexLock lock(mutex_);
  std::vector<NfsExport> exports = table_->exports();
  if (std::erase_if(exports, [&](const NfsExport& e) { return e.path == path; }) == 0) {
    return {StatusCode::kNotFound,
            fmt::format("{} is not exported; 'millrace export ls' lists what is", path)};
  }
  table_ = std::make_shared<const NfsExportTable>(std::move(exports));
  return {};
}

}  // namespace millrace
