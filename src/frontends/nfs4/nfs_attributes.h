#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "frontends/nfs4/nfs_bitmap.h"
#include "frontends/nfs4/nfs_file_handle.h"
#include "frontends/nfs4/nfs_view.h"

namespace millrace {

// What can be asked for in this minor version.
NfsBitmap nfs_supported_attributes(std::uint32_t minor_version);
// What can only be set: asking for it is an error.
inline constexpr NfsBitmap kNfsWriteOnlyAttributes = {NfsAttribute::kTimeAccessSet,
                                                      NfsAttribute::kTimeModifySet};
// The mask of a fattr4, whose values are passed over: nothing is ever set.
NfsBitmap skip_nfs_attributes(XdrReader& reader);
// Whether a server could set all of them: kAttrNotSupp, kInval for those that can only be read.
NfsStatus check_nfs_settable(const NfsBitmap& attributes, std::uint32_t minor_version);
// Those that only a look at the whole tree answers.
inline constexpr NfsBitmap kNfsUsageAttributes = {
    NfsAttribute::kFilesAvail, NfsAttribute::kFilesFree, NfsAttribute::kFilesTotal,
    NfsAttribute::kSpaceAvail, NfsAttribute::kSpaceFree, NfsAttribute::kSpaceTotal,
};

// Writes the attributes of nodes. One for each request; what it refers to outlives it.
struct NfsAttributeWriter {
  const NfsHandles& handles;
  const NfsView& view;
  std::uint32_t minor_version = 0;
  std::uint32_t lease_seconds = 0;
  WallTime now{};
  TreeUsage usage = {};

  // A fattr4 with those of `wanted` that are supported.
  void write(XdrWriter& writer, const NfsBitmap& wanted, const NfsNode& node) const;
  // Those of `wanted` that are supported; and the value of one of them.
  NfsBitmap given(const NfsBitmap& wanted) const;
  void write_value(XdrWriter& writer, NfsAttribute attribute, const NfsNode& node) const;
  // The value of an attribute in which nodes of one kind and export differ, in XDR: `at` has room
  // for kOwnBytesMax. Returns its size, which is the same for all nodes; 0 for other attributes.
  static constexpr std::size_t kOwnBytesMax = sizeof(std::uint32_t) + NfsHandles::kHandleBytes;
  std::size_t store_own(std::byte* at, NfsAttribute attribute, const NfsNode& node) const;
  // Grows with every change. What never changes keeps its value for ever; of lists, which are at
  // most kShortLifetime old, nobody knows when they change, so they are taken to do it all the
  // time.
  std::uint64_t change_of(const NodeAttributes& node) const;

 private:
  bool write_node_value(XdrWriter& writer, NfsAttribute attribute, const NfsNode& node) const;
  bool write_usage_value(XdrWriter& writer, NfsAttribute attribute) const;
  bool write_server_value(XdrWriter& writer, NfsAttribute attribute) const;
};

}  // namespace millrace
