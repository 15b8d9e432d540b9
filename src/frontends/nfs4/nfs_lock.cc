#include <optional>
#include <string>

#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_turn.h"

namespace millrace {
namespace {

struct LockArguments {
  bool exclusive = false;
  bool reclaims = false;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  NfsStateid stateid = {};           // Of an open when the owner is new, else of its locks.
  std::uint32_t sequence = 0;        // Of the owner of that, and
  std::uint32_t owner_sequence = 0;  // of a new lock owner: 4.0.
  std::optional<std::string> owner = std::nullopt;
};

struct LockOwnerArgument {
  NfsClientId client;
  std::string name;
};

bool read_lock_type(XdrReader& reader) {
  const auto type = reader.enumeration<NfsLockType>();
  if (type < NfsLockType::kRead || type > NfsLockType::kWriteWaiting)
    reader.fail("there is no such lock");
  return type == NfsLockType::kWrite || type == NfsLockType::kWriteWaiting;
}

LockOwnerArgument read_lock_owner(XdrReader& reader) {
  const NfsClientId client(reader.u64());
  return {client, std::string(reader.text(kNfsOpaqueBytesMax))};
}

LockArguments read_lock(XdrReader& reader) {
  LockArguments arguments;
  arguments.exclusive = read_lock_type(reader);
  arguments.reclaims = reader.boolean();
  arguments.offset = reader.u64();
  arguments.length = reader.u64();
  const bool is_new = reader.boolean();
  if (is_new) arguments.sequence = reader.u32();
  arguments.stateid = read_nfs_stateid(reader);
  (is_new ? arguments.owner_sequence : arguments.sequence) = reader.u32();
  if (is_new) arguments.owner = read_lock_owner(reader).name;
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

NfsStatus take_lock(NfsCompound& call, NfsClient& client, const LockArguments& arguments,
                    const NfsStateid& stateid) {
  if (const NfsStatus status = check_lockable(call); status != NfsStatus::kOk) return status;
  const std::optional<NfsRange> range = NfsRange::of(arguments.offset, arguments.length);
  if (!range) return NfsStatus::kInval;
  // Even one that is denied counts in the numbers of its owner.
  if (call.minor_version() == 0 && arguments.owner)
    client.turns().start_lock_owner(*arguments.owner, arguments.owner_sequence);
  const auto locked = call.service().state.lock_file(client, {.node = call.current()->place.node,
                                                              .range = *range,
                                                              .exclusive = arguments.exclusive,
                                                              .stateid = stateid,
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

}  // namespace

NfsStatus nfs_lock(NfsCompound& call) {
  const LockArguments arguments = read_lock(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  if (!call.current()) return NfsStatus::kNoFileHandle;
  const NfsResult<NfsStateid> stateid = call.meant(arguments.stateid);
  if (!stateid) return stateid.error();
  const NfsResult<std::shared_ptr<NfsClient>> client = client_of(call, *stateid);
  if (!client) return client.error();
  return run_in_turn(
      call, [&] { return (*client)->turns().begin(*stateid, arguments.sequence); },
      [&](NfsOwnerTurn*) { return take_lock(call, **client, arguments, *stateid); });
}

NfsStatus nfs_lockt(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const bool exclusive = read_lock_type(reader);
  const std::uint64_t offset = reader.u64();
  const std::uint64_t length = reader.u64();
  const LockOwnerArgument owner = read_lock_owner(reader);
  if (!reader.ok()) return NfsStatus::kBadXdr;
  if (const NfsStatus status = check_lockable(call); status != NfsStatus::kOk) return status;
  const std::optional<NfsRange> range = NfsRange::of(offset, length);
  if (!range) return NfsStatus::kInval;
  const NfsResult<std::shared_ptr<NfsClient>> client = client_of(call, owner.client);
  if (!client) return client.error();
  const std::optional<NfsRangeLock> denied =
      (*client)->files().test_lock(owner.name, call.current()->place.node, *range, exclusive);
  return denied ? write_denied(call, *denied) : NfsStatus::kOk;
}

NfsStatus nfs_locku(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  read_lock_type(reader);
  const std::uint32_t sequence = reader.u32();
  const NfsStateid sent = read_nfs_stateid(reader);
  const std::uint64_t offset = reader.u64();
  const std::uint64_t length = reader.u64();
  if (!reader.ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  if (!stateid) return stateid.error();
  const NfsResult<std::shared_ptr<NfsClient>> client = client_of(call, *stateid);
  if (!client) return client.error();
  return run_in_turn(
      call, [&] { return (*client)->turns().begin(*stateid, sequence); },
      [&](NfsOwnerTurn*) {
        const std::optional<NfsRange> range = NfsRange::of(offset, length);
        if (!range) return NfsStatus::kInval;
        const NfsResult<NfsStateid> unlocked =
            (*client)->files().unlock(*stateid, place->node, *range);
        if (!unlocked) return unlocked.error();
        call.current()->stateid = *unlocked;
        write_nfs_stateid(call.results(), *unlocked);
        return NfsStatus::kOk;
      });
}

}  // namespace millrace
