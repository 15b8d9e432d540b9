#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "frontends/nfs4/rpc_transport.h"
#include "platform/network_range.h"
#include "vfs/access.h"

namespace millrace {

// Whose credentials a client may not use as they are.
enum class NfsSquash : std::uint8_t {
  kNone,
  kRoot,  // Uid 0 and gid 0 become the anonymous ones.
  kAll,   // Everybody is anonymous.
};

// "none", "root", "all".
std::string_view nfs_squash_name(NfsSquash squash);

// A part of the tree under a path of its own, and who may see it how. As text:
//
//   /imagenet=/datasets/imagenet/v2,clients=10.0.0.0/8+127.0.0.1,squash=all,anon=1000:1000,sec=sys
//
// Only the path is needed; the source is the path again when it is left out.
struct NfsExport {
  std::string path;                        // As clients name it: "/datasets".
  std::string source;                      // In the tree: "/datasets/imagenet/v2".
  std::vector<NetworkRange> clients = {};  // Empty: everybody.
  NfsSquash squash = NfsSquash::kRoot;
  std::uint32_t anonymous_uid = 65534;
  std::uint32_t anonymous_gid = 65534;
  // Flavours of RPC credentials.
  bool allows_sys = true;
  bool allows_none = false;
  // What calls must at least travel by.
  RpcTransport transport = RpcTransport::kPlain;
  bool read_only = true;

  // kInvalidArgument says which part is not as it must be.
  static Result<NfsExport> parse(std::string_view text);
  // What parse() takes; defaults are left out.
  std::string to_string() const;

  // Stands for the path in file handles: the same after each restart and on each gateway, never 0.
  std::uint32_t id() const;
  bool allows(const NetworkAddress& client) const;
  // Who the caller counts as, after squashing.
  Credentials squashed(Credentials caller) const;

  bool operator==(const NfsExport&) const = default;
};

// "/datasets;/v2=/datasets/imagenet/v2,squash=all", or "none". kInvalidArgument also for paths that
// cannot be side by side.
Result<std::vector<NfsExport>> parse_nfs_exports(std::string_view text);

// Two exports cannot have one path, nor one inside the other: a name would lead to two places.
Status check_nfs_exports(const std::vector<NfsExport>& exports);

// kInvalidArgument when the export asks for more than what is offered at best.
Status check_nfs_transport(const NfsExport& exported, RpcTransport offered);

// Absolute, no empty components, none that is "." or "..", not the root.
Status check_nfs_path(std::string_view path);

inline constexpr std::size_t kNfsExportsMax = 1024;
inline constexpr std::size_t kNfsExportClientsMax = 256;
inline constexpr std::size_t kNfsPathBytesMax = 1024;

}  // namespace millrace
