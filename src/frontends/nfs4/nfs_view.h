#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/request_context.h"
#include "frontends/nfs4/nfs_exports.h"
#include "frontends/nfs4/nfs_file_handle.h"
#include "frontends/nfs4/nfs_types.h"
#include "frontends/nfs4/rpc_message.h"
#include "platform/network_range.h"
#include "vfs/access.h"
#include "vfs/file_system.h"
#include "vfs/node_number.h"

namespace millrace {

// Where a client stands: at a node of an export, or in a directory above the exports.
struct NfsPlace {
  const NfsExport* exported = nullptr;  // Null above the exports.
  NodeNumber node;
  std::string directory = {};  // Above the exports: its path.

  bool operator==(const NfsPlace&) const = default;
};

struct NfsNode {
  NfsPlace place;
  NodeAttributes attributes;
  // The number of the directory that it covers, for the root of an export; else its own. Of the
  // current file handle it is looked up when it is wanted: NfsView::mounted_on().
  std::uint64_t mounted_on = 0;
  // False in listings, where only number and kind are known (NodeEntry).
  bool has_attributes = true;
};

// The tree as one client sees it during one request: the exports that it may see, and the
// directories that lead to them. Valid as long as what it was made with; one thread at a time.
// Methods may wait, but for those that take no context.
class NfsView {
 public:
  struct Client {
    NetworkAddress address;
    const RpcCaller& caller;
    RpcTransport transport = RpcTransport::kPlain;
  };
  NfsView(FileSystem& files, std::shared_ptr<const NfsExportTable> table, Client client,
          WallTime started);

  static NfsPlace root();
  // kStale when there is no such place any more; kAccess and kWrongSec when it is not this
  // client's.
  NfsResult<NfsPlace> find(const NfsHandle& handle) const;
  // Whether the handle is of a version that only another gateway has shown so far; and the search
  // for it.
  bool is_foreign(const NfsHandle& handle) const;
  NfsStatus adopt(const RequestContext& context, const NfsHandle& handle) const;
  NfsHandle handle_of(const NfsPlace& place) const;

  NfsResult<NfsNode> node(const RequestContext& context, const NfsPlace& place) const;
  std::uint64_t mounted_on(const RequestContext& context, const NfsNode& node) const;
  // A child of a directory, whose access was checked.
  NfsResult<NfsPlace> lookup(const RequestContext& context, const NfsPlace& directory,
                             std::string_view name) const;
  // kNoEnt at the root of all.
  NfsResult<NfsPlace> parent(const RequestContext& context, const NfsPlace& place) const;
  // Shows the children behind `cookie` as the tree has it, until the visitor returns false.
  using Visitor =
      std::function<bool(std::string_view name, const NfsNode& child, std::uint64_t cookie)>;
  NfsStatus read_directory(const RequestContext& context, const NfsPlace& directory,
                           std::uint64_t cookie, const Visitor& visitor) const;

  // kAccess when POSIX forbids any of it, kRofs for writing.
  NfsStatus check(const NfsNode& node, WantedAccess wanted) const;
  // Who owns what is shown. Manifests and buckets know no owners.
  static ExportPolicy policy() { return {}; }

 private:
  NfsStatus admit(const NfsExport& exported) const;
  NfsResult<NfsNode> export_root(const RequestContext& context, const NfsExport& exported) const;
  NfsNode directory_above(const std::string& path) const;

  FileSystem& files_;
  const std::shared_ptr<const NfsExportTable> table_;
  const Client client_;
  const WallTime started_;
  // Of the version and the export that a handle was last made for: a directory is all of one.
  mutable std::optional<TreeNumber> last_tree_;
  mutable std::uint32_t last_check_ = 0;
  mutable const NfsExport* last_export_ = nullptr;
  mutable std::uint32_t last_export_id_ = 0;
};

}  // namespace millrace
