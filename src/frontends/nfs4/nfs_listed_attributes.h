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

  // As NfsAttributeWriter::write() does.
  void write(XdrWriter& writer, const NfsNode& node);

 private:
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
