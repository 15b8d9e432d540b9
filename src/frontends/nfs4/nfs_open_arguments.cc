#include "frontends/nfs4/nfs_open_arguments.h"

#include "frontends/nfs4/nfs_attributes.h"

namespace millrace {
namespace {

// Nothing is ever created, so what it would become is not kept.
NfsCreation read_create(XdrReader& reader) {
  NfsCreation creation{.mode = reader.enumeration<NfsCreateMode>(), .attributes = {}};
  switch (creation.mode) {
    case NfsCreateMode::kUnchecked:
    case NfsCreateMode::kGuarded:
      creation.attributes = skip_nfs_attributes(reader);
      break;
    case NfsCreateMode::kExclusive:
      reader.fixed(8);
      break;
    case NfsCreateMode::kExclusive41:
      reader.fixed(8);
      creation.attributes = skip_nfs_attributes(reader);
      break;
    default:
      reader.fail("there is no such way to create");
  }
  return creation;
}

void read_claim(XdrReader& reader, NfsOpenArguments& arguments) {
  arguments.claim = reader.enumeration<NfsOpenClaim>();
  switch (arguments.claim) {
    case NfsOpenClaim::kNull:
    case NfsOpenClaim::kDelegatePrevious:
      arguments.name = reader.text(kNfsLinkBytesMax);
      break;
    case NfsOpenClaim::kPrevious:
      arguments.had_delegation = reader.enumeration<NfsDelegation>();
      break;
    case NfsOpenClaim::kDelegateCurrent:
      arguments.delegation = read_nfs_stateid(reader);
      arguments.name = reader.text(kNfsLinkBytesMax);
      break;
    case NfsOpenClaim::kDelegateCurrentFh:
      arguments.delegation = read_nfs_stateid(reader);
      break;
    case NfsOpenClaim::kFh:
    case NfsOpenClaim::kDelegatePreviousFh:
      break;
    default:
      reader.fail("there is no such claim");
  }
}

}  // namespace

NfsStateid read_nfs_stateid(XdrReader& reader) {
  NfsStateid stateid;
  stateid.seqid = reader.u32();
  stateid.other = reader.fixed_array<12>();
  return stateid;
}

void write_nfs_stateid(XdrWriter& writer, const NfsStateid& stateid) {
  writer.u32(stateid.seqid);
  writer.fixed(stateid.other);
}

bool is_nfs_share(const NfsShare& share) {
  return !share.none() && share.access <= kShareAccessBoth && share.deny <= kShareDenyBoth;
}

NfsResult<NfsOpenArguments> read_nfs_open(XdrReader& reader, std::uint32_t minor_version) {
  NfsOpenArguments arguments;
  arguments.owner_seqid = reader.u32();
  const std::uint32_t access = reader.u32();
  arguments.share.deny = reader.u32();
  arguments.owner.client = NfsClientId(reader.u64());
  arguments.owner.owner = reader.text(kNfsOpaqueBytesMax);
  const auto type = reader.enumeration<NfsOpenType>();
  if (type == NfsOpenType::kCreate) arguments.creates = read_create(reader);
  if (type > NfsOpenType::kCreate) reader.fail("there is no such way to open");
  read_claim(reader, arguments);
  if (!reader.ok()) return std::unexpected(NfsStatus::kBadXdr);
  // 4.0 has no wishes.
  const std::uint32_t access_mask = minor_version == 0 ? UINT32_MAX : kShareAccessBoth;
  arguments.share.access = access & access_mask;
  arguments.wishes = access & ~access_mask;
  return arguments;
}

}  // namespace millrace
