#pragma once

#include "frontends/nfs4/nfs_attributes.h"
#include "frontends/nfs4/nfs_compound.h"

namespace millrace {

// Ready to write these attributes of a node, or of the children of a directory. May block.
NfsAttributeWriter nfs_attribute_writer(NfsCompound& call, const NfsBitmap& wanted,
                                        const NfsNode& node);

}  // namespace millrace
