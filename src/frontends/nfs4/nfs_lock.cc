#include <optional>
#include <string>

#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

struct LockArguments {
  bool exclusive = false;
  bool reclaims = false;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  NfsStateid stateid = {};
  std::optional<std::string> owner = std::nullopt;
};

bool read_lock_type(XdrReader& reader) {
  const auto type = reader.enumeration<NfsLockType>();
  if (type < NfsLockType::kRead || type > NfsLockType::kWriteWaiting)
    reader.fail("there is no such lock");
  return type == NfsLockType::kWrite || type == NfsLockType::kWriteWaiting;
}

std::string read_lock_owner(XdrReader& reader) {
  reader.u64();  // A client, which the session tells.
  return std::string(reader.text(kNfsOpaqueBytesMax));
}

LockArguments read_lock(XdrReader& reader) {
  LockArguments arguments;
  arguments.exclusive = read_lock_type(reader);
  arguments.reclaims = reader.boolean();
  arguments.offset = reader.u64();
  arguments.length = reader.u64();
  const bool is_new = reader.boolean();
  if (is_new) reader.u32();  // The number of 4.0, as below.
  arguments.stateid = read_nfs_stateid(reader);
  reader.u32();
  if (is_new) arguments.owner = read_lock_owner(reader);
  return arguments;
}

NfsStatus write_denied(NfsCompound& call, const NfsRangeLock& lock) {
  call.keep_result();
  XdrWriter& writer = call.results();
  writer.u64(lock.range.first);
  writer.u64(lock.range.length());
  writer.enumeration(lock.exclusive ? NfsLockType::kWrite : NfsLockType::kRead);
  writer.u64(lock.owner->client.value());
  writer.text(lock.owner->owner);
  return NfsStatus::kDenied;
}

// Only files have bytes to lock.
NfsStatus check_lockable(NfsCompound& call) {
  const NfsResult<NfsNode> node = call.node();
  if (!node) return node.error();
  switch (node->attributes.kind) {
    case NodeKind::kFile:
      return NfsStatus::kOk;
    case NodeKind::kDirectory:
      return NfsStatus::kIsDir;
    case NodeKind::kSymlink:
      break;
  }
  return call.minor_version() == 0 ? NfsStatus::kInval : NfsStatus::kSymlink;
}

}  // namespace

NfsStatus nfs_lock(NfsCompound& call) {
  const LockArguments arguments = read_lock(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  if (const NfsStatus status = check_lockable(call); status != NfsStatus::kOk) return status;
  const std::optional<NfsRange> range = NfsRange::of(arguments.offset, arguments.length);
  if (!range) return NfsStatus::kInval;
  const NfsResult<NfsStateid> stateid = call.meant(arguments.stateid);
  if (!stateid) return stateid.error();
  NfsClient& client = call.slot()->session().client();
  const auto locked = call.service().state.lock_file(client, {.node = call.current()->place.node,
                                                              .range = *range,
                                                              .exclusive = arguments.exclusive,
                                                              .stateid = *stateid,
                                                              .new_owner = arguments.owner,
                                                              .reclaim = arguments.reclaims});
  if (!locked) {
    return locked.error().denied ? write_denied(call, *locked.error().denied)
                                 : locked.error().status;
  }
  call.current()->stateid = *locked;
  write_nfs_stateid(call.results(), *locked);
  return NfsStatus::kOk;
}

NfsStatus nfs_lockt(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const bool exclusive = read_lock_type(reader);
  const std::uint64_t offset = reader.u64();
  const std::uint64_t length = reader.u64();
  const std::string owner = read_lock_owner(reader);
  if (!reader.ok()) return NfsStatus::kBadXdr;
  if (const NfsStatus status = check_lockable(call); status != NfsStatus::kOk) return status;
  const std::optional<NfsRange> range = NfsRange::of(offset, length);
  if (!range) return NfsStatus::kInval;
  const std::optional<NfsRangeLock> denied = call.slot()->session().client().files().test_lock(
      owner, call.current()->place.node, *range, exclusive);
  return denied ? write_denied(call, *denied) : NfsStatus::kOk;
}

NfsStatus nfs_locku(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  read_lock_type(reader);
  reader.u32();  // The number of 4.0.
  const NfsStateid sent = read_nfs_stateid(reader);
  const std::uint64_t offset = reader.u64();
  const std::uint64_t length = reader.u64();
  if (!reader.ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const std::optional<NfsRange> range = NfsRange::of(offset, length);
  if (!range) return NfsStatus::kInval;
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  if (!stateid) return stateid.error();
  const NfsResult<NfsStateid> unlocked =
      call.slot()->session().client().files().unlock(*stateid, place->node, *range);
  if (!unlocked) return unlocked.error();
  call.current()->stateid = *unlocked;
  write_nfs_stateid(call.results(), *unlocked);
  return NfsStatus::kOk;
}

}  // namespace millrace
