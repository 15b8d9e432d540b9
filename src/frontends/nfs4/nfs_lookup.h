#pragma once

#include <string_view>

#include "frontends/nfs4/nfs_compound.h"

namespace millrace {

// Whether this can be a name: kInval, kNameTooLong, kBadName or kBadChar.
NfsStatus check_nfs_name(std::string_view name);

// The current file handle's node, which is a directory that the caller may look names up in.
NfsResult<NfsNode> nfs_directory(NfsCompound& call);

// A child of the current file handle, by a name that a client sent. May wait.
NfsResult<NfsPlace> find_nfs_child(NfsCompound& call, std::string_view name);

}  // namespace millrace
