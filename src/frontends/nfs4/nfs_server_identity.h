#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "frontends/nfs4/nfs_types.h"
#include "platform/disk.h"

namespace millrace {

// Which server this is, and which of its lives. Clients take two servers of the same owner for one,
// and send either what belongs to the other; so no two have the same, and one keeps its own over
// restarts (docs/formats/nfs.md).
class NfsServerIdentity {
 public:
  // Reads the file at `path`, whose directory exists, or makes it; then begins a new life, on the
  // disk before it returns. kCorruption when it is no such file.
  static Result<NfsServerIdentity> open(Disk& disk, const std::string& path, Random& random);

  // In EXCHANGE_ID's answer.
  const NfsServerOwner& owner() const { return owner_; }
  // Differs from that of all earlier lives, so that what they gave out is known as theirs.
  std::uint32_t life() const { return life_; }

 private:
  NfsServerIdentity(const std::string& token, std::uint32_t life);

  NfsServerOwner owner_;
  std::uint32_t life_;
};

}  // namespace millrace
