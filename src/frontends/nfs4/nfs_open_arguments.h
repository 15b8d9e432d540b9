#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontends/nfs4/nfs_bitmap.h"
#include "frontends/nfs4/nfs_shares.h"
#include "frontends/nfs4/nfs_state_numbers.h"
#include "frontends/nfs4/nfs_types.h"
#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"

namespace millrace {

NfsStateid read_nfs_stateid(XdrReader& reader);
void write_nfs_stateid(XdrWriter& writer, const NfsStateid& stateid);

struct NfsCreation {
  NfsCreateMode mode = NfsCreateMode::kUnchecked;
  NfsBitmap attributes;  // That it should have.
};

// What a client wants OPEN to do.
struct NfsOpenArguments {
  std::uint32_t owner_seqid = 0;  // 4.0
  NfsShare share;
  std::uint32_t wishes = 0;  // About delegations.
  NfsStateOwner owner;
  std::optional<NfsCreation> creates = std::nullopt;
  NfsOpenClaim claim = NfsOpenClaim::kNull;
  std::string name = {};                                // Of kNull and kDelegateCurrent.
  NfsDelegation had_delegation = NfsDelegation::kNone;  // Of kPrevious.
  NfsStateid delegation = {};                           // Of kDelegateCurrent and its twin.
};

// Whether there is such a share: clients may send any number.
bool is_nfs_share(const NfsShare& share);

// kBadXdr. The share is as it was sent.
NfsResult<NfsOpenArguments> read_nfs_open(XdrReader& reader, std::uint32_t minor_version);

}  // namespace millrace
