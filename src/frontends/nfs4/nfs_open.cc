#include <utility>

#include "frontends/nfs4/nfs_getattr.h"
#include "frontends/nfs4/nfs_lookup.h"
#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_turn.h"

namespace millrace {
namespace {

// ACE4_ACCESS_ALLOWED_ACE_TYPE for nobody in particular: clients ask us by ACCESS.
void write_no_permissions(XdrWriter& writer) {
  writer.u32(0);
  writer.u32(0);
  writer.u32(0);
  writer.text("");
}

struct OpenAnswer {
  NfsStateid stateid = {};
  std::uint64_t change = 0;  // Of the directory that was looked in.
  std::uint32_t flags = kOpenResultLockTypePosix;
  std::optional<NfsStateid> delegation = std::nullopt;
  std::optional<NfsWhyNoDelegation> why_none = std::nullopt;
};

void write_open(XdrWriter& writer, const OpenAnswer& answer) {
  write_nfs_stateid(writer, answer.stateid);
  writer.boolean(true);
  writer.u64(answer.change);
  writer.u64(answer.change);
  writer.u32(answer.flags);
  NfsBitmap().write(writer);
  if (answer.delegation) {
    writer.enumeration(NfsDelegation::kRead);
    write_nfs_stateid(writer, *answer.delegation);
    writer.boolean(false);
    write_no_permissions(writer);
  } else if (answer.why_none) {
    writer.enumeration(NfsDelegation::kNoneExt);
    writer.enumeration(*answer.why_none);
    const bool may_signal = *answer.why_none == NfsWhyNoDelegation::kContention ||
                            *answer.why_none == NfsWhyNoDelegation::kResource;
    if (may_signal) writer.boolean(false);
  } else {
    writer.enumeration(NfsDelegation::kNone);
  }
}

// The file that is to be opened. For a name it becomes the current file handle.
NfsResult<NfsNode> claimed_node(NfsCompound& call, const NfsOpenArguments& arguments) {
  const bool by_name =
      arguments.claim == NfsOpenClaim::kNull || arguments.claim == NfsOpenClaim::kDelegateCurrent;
  if (!by_name) return call.node();
  const NfsResult<NfsPlace> child = find_nfs_child(call, arguments.name);
  if (!child) {
    const bool would_create = arguments.creates && child.error() == NfsStatus::kNoEnt;
    if (!would_create) return std::unexpected(child.error());
    const NfsStatus settable =
        check_nfs_settable(arguments.creates->attributes, call.minor_version());
    return std::unexpected(settable == NfsStatus::kOk ? NfsStatus::kRofs : settable);
  }
  if (arguments.creates && arguments.creates->mode != NfsCreateMode::kUnchecked)
    return std::unexpected(NfsStatus::kExist);
  return call.view().node(call.context(), *child);
}

NfsStatus check_openable(NfsCompound& call, const NfsNode& node, NfsShare share) {
  if (node.attributes.kind == NodeKind::kDirectory) return NfsStatus::kIsDir;
  if (node.attributes.kind == NodeKind::kSymlink) return NfsStatus::kSymlink;
  if ((share.access & kShareAccessWrite) != 0) return NfsStatus::kRofs;
  return call.view().check(node, {.read = true});
}

// What a client may claim depends on how far it is with what it held before our restart.
NfsStatus check_claim(NfsClient& client, NfsOpenClaim claim) {
  switch (claim) {
    case NfsOpenClaim::kPrevious:
      return client.check_claim(true);
    case NfsOpenClaim::kDelegateCurrent:
    case NfsOpenClaim::kDelegateCurrentFh:
      return NfsStatus::kOk;
    case NfsOpenClaim::kDelegatePrevious:
    case NfsOpenClaim::kDelegatePreviousFh:
      return NfsStatus::kNotSupp;
    case NfsOpenClaim::kNull:
    case NfsOpenClaim::kFh:
      break;
  }
  return client.check_claim(false);
}

// That the client has the delegation which it opens by.
NfsStatus check_delegation(NfsClient& client, const NfsOpenArguments& arguments, NodeNumber node) {
  const bool by_delegation = arguments.claim == NfsOpenClaim::kDelegateCurrent ||
                             arguments.claim == NfsOpenClaim::kDelegateCurrentFh;
  return by_delegation ? client.files().check(arguments.delegation, node, kShareAccessRead)
                       : NfsStatus::kOk;
}

// Why there is none; nothing when there is. A reader of what never changes meets no conflict, so
// each gets one, as long as a recall could reach it.
std::optional<NfsWhyNoDelegation> why_no_delegation(NfsClient& client,
                                                    const NfsOpenArguments& arguments,
                                                    const NfsNode& node) {
  const bool claims = arguments.claim == NfsOpenClaim::kNull ||
                      arguments.claim == NfsOpenClaim::kFh ||
                      (arguments.claim == NfsOpenClaim::kPrevious &&
                       arguments.had_delegation == NfsDelegation::kRead);
  if (!claims || (arguments.wishes & kShareWantMask) == kShareWantNoDeleg)
    return NfsWhyNoDelegation::kNotWanted;
  if (!client.has_sessions() || client.back_channels() == 0) return NfsWhyNoDelegation::kResource;
  if (node.attributes.lifetime != NodeLifetime::kForever ||
      arguments.share != NfsShare{.access = kShareAccessRead, .deny = kShareDenyNone}) {
    return NfsWhyNoDelegation::kContention;
  }
  return std::nullopt;
}

NfsResult<OpenAnswer> open_node(NfsState& state, NfsClient& client,
                                const NfsOpenArguments& arguments, const NfsNode& node) {
  OpenAnswer answer;
  answer.why_none = why_no_delegation(client, arguments, node);
  if (!answer.why_none) answer.delegation = client.files().delegation(node.place.node);
  // Who did not wish for anything may not know that there can be a reason.
  if ((arguments.wishes & kShareWantMask) == kShareWantNoPreference) answer.why_none.reset();
  const bool delegation_is_enough = (arguments.wishes & kShareWantOpenXorDelegation) != 0 &&
                                    arguments.claim != NfsOpenClaim::kPrevious;
  // What another denies is for open_file() to find.
  const bool is_denied = state.files().shares.denies(node.place.node, arguments.share.access);
  if (answer.delegation && delegation_is_enough && !is_denied) {
    answer.flags |= kOpenResultNoOpenStateid;
    return answer;
  }
  const NfsResult<NfsStateid> opened =
      state.open_file(client, {.owner = arguments.owner.owner,
                               .node = node.place.node,
                               .share = arguments.share,
                               .reclaim = arguments.claim == NfsOpenClaim::kPrevious});
  if (!opened) return std::unexpected(opened.error());
  answer.stateid = *opened;
  return answer;
}

NfsStatus open_claimed(NfsCompound& call, NfsClient& client, const NfsOpenArguments& arguments,
                       NfsOwnerTurn* turn) {
  if (!is_nfs_share(arguments.share)) return NfsStatus::kInval;
  const NfsResult<NfsNode> directory = call.node();
  if (!directory) return directory.error();
  NfsStatus status = check_claim(client, arguments.claim);
  if (status != NfsStatus::kOk) return status;
  const NfsResult<NfsNode> node = claimed_node(call, arguments);
  if (!node) return node.error();
  status = check_openable(call, *node, arguments.share);
  if (status != NfsStatus::kOk) return status;
  status = check_delegation(client, arguments, node->place.node);
  if (status != NfsStatus::kOk) return status;
  NfsResult<OpenAnswer> answer = open_node(call.service().state, client, arguments, *node);
  if (!answer) return answer.error();
  if (turn != nullptr && arguments.claim == NfsOpenClaim::kPrevious) turn->confirm();
  if (turn != nullptr && turn->needs_confirmation()) answer->flags |= kOpenResultConfirm;
  if (answer->delegation) {
    call.service().metrics.counter(MetricId::kNfsDelegations).add();
    client.delegated().add(
        {.export_id = node->place.exported->id(), .tree = tree_of(node->place.node)});
  }
  answer->change = nfs_attribute_writer(call, {}, *directory).change_of(directory->attributes);
  const bool has_open = (answer->flags & kOpenResultNoOpenStateid) == 0;
  call.current() = {.place = node->place,
                    .stateid = has_open ? answer->stateid : *answer->delegation};
  write_open(call.results(), *answer);
  return NfsStatus::kOk;
}

}  // namespace

NfsStatus nfs_open(NfsCompound& call) {
  // A turn of 4.0 is taken once, so it is taken where the rest can wait.
  if (call.minor_version() == 0 && call.must_move()) return NfsStatus::kOk;
  const NfsResult<NfsOpenArguments> arguments =
      read_nfs_open(call.arguments(), call.minor_version());
  if (!arguments) return arguments.error();
  const NfsResult<std::shared_ptr<NfsClient>> client = client_of(call, arguments->owner.client);
  if (!client) return client.error();
  return run_in_turn(
      call,
      [&] { return (*client)->turns().begin_open(arguments->owner.owner, arguments->owner_seqid); },
      [&](NfsOwnerTurn* turn) { return open_claimed(call, **client, *arguments, turn); });
}

}  // namespace millrace
