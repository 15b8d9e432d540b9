#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "frontends/nfs4/nfs_attributes.h"

namespace millrace {

// Writes the attributes of many nodes, as a listing does: most of their bytes are the same for all
// nodes of a kind below an export, and are put together once. One for each request; the writer
// outlives it.
class NfsListedAttributes {
 public:
  NfsListedAttributes(const NfsAttributeWriter& attributes, const NfsBitmap& wanted)
      : attributes_(attributes), wanted_(wanted) {}

  // Whether a node has to be asked for: what is wanted of it is not known, and the client does not
  // take that for an answer.
  bool lacks(const NfsNode& node) const {
    return is_partial(node) && !wanted_.contains(NfsAttribute::kRdattrError);
  }
  // As NfsAttributeWriter::write() does. Of what is not known it says so (rdattr_error).
  void write(XdrWriter& writer, const NfsNode& node);

 private:
  // What a listing may not know of a node.
  static constexpr NfsBitmap kStored = {NfsAttribute::kMode, NfsAttribute::kTimeAccess,
                                        NfsAttribute::kTimeMetadata, NfsAttribute::kTimeModify};
  // Enough for a name in a list. Clients take who has fsid and handle too for a node like others.
  static constexpr NfsBitmap kOfNames = {NfsAttribute::kType, NfsAttribute::kRdattrError,
                                         NfsAttribute::kFileId, NfsAttribute::kMountedOnFileId};

  bool is_partial(const NfsNode& node) const {
    return !node.has_attributes && wanted_.contains_any(kStored);
  }
  void write_name(XdrWriter& writer, const NfsNode& node) const;

  // The value of an attribute that each node has of its own, and where it stands.
  struct OwnValue {
    NfsAttribute attribute;
    std::size_t place;
  };
  // A fattr4 with the values of the node that was last written.
  struct Form {
    const NfsExport* exported = nullptr;
    std::vector<std::byte> bytes;  // Empty: not made yet.
    std::vector<OwnValue> own;
  };
  Form make_form(const NfsNode& node) const;

  const NfsAttributeWriter& attributes_;
  const NfsBitmap wanted_;
  std::array<Form, 3> forms_;  // By kind.
};

}  // namespace millrace
