#include "frontends/nfs4/nfs_lookup.h"

#include <utility>

#include "frontends/nfs4/nfs_operations.h"

namespace millrace {

NfsStatus check_nfs_name(std::string_view name) {
  if (name.empty()) return NfsStatus::kInval;
  if (name.size() > kNfsNameBytesMax) return NfsStatus::kNameTooLong;
  if (name == "." || name == "..") return NfsStatus::kBadName;
  const bool bad =
      name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos;
  return bad ? NfsStatus::kBadChar : NfsStatus::kOk;
}

NfsResult<NfsNode> nfs_directory(NfsCompound& call) {
  NfsResult<NfsNode> directory = call.node();
  if (!directory) return directory;
  const NodeKind kind = directory->attributes.kind;
  if (kind == NodeKind::kSymlink) return std::unexpected(NfsStatus::kSymlink);
  if (kind != NodeKind::kDirectory) return std::unexpected(NfsStatus::kNotDir);
  const NfsStatus access = call.view().check(*directory, {.execute = true});
  if (access != NfsStatus::kOk) return std::unexpected(access);
  return directory;
}

NfsResult<NfsPlace> find_nfs_child(NfsCompound& call, std::string_view name) {
  const NfsResult<NfsNode> directory = nfs_directory(call);
  if (!directory) return std::unexpected(directory.error());
  if (const NfsStatus status = check_nfs_name(name); status != NfsStatus::kOk)
    return std::unexpected(status);
  return call.view().lookup(call.context(), directory->place, name);
}

NfsStatus nfs_lookup(NfsCompound& call) {
  // Longer than any name, so that one that is too long can be told so.
  const std::string_view name = call.arguments().text(kNfsLinkBytesMax);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  NfsResult<NfsPlace> child = find_nfs_child(call, name);
  if (!child) return child.error();
  call.current() = {.place = *std::move(child)};
  return NfsStatus::kOk;
}

NfsStatus nfs_lookupp(NfsCompound& call) {
  const NfsResult<NfsNode> directory = nfs_directory(call);
  if (!directory) {
    // In 4.0 only LOOKUP tells symlinks apart.
    const bool plainly = directory.error() == NfsStatus::kSymlink && call.minor_version() == 0;
    return plainly ? NfsStatus::kNotDir : directory.error();
  }
  NfsResult<NfsPlace> parent = call.view().parent(call.context(), directory->place);
  if (!parent) return parent.error();
  call.current() = {.place = *std::move(parent)};
  return NfsStatus::kOk;
}

}  // namespace millrace
