#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "dataset/version_log.h"

namespace millrace {

// The right to commit one version, from Registry::reserve(). It is a value: a process that was
// killed comes back with its nonce and reserves again, which finds the same reservation.
struct Reservation {
  VersionRef ref;
  // Proof of ownership, and what makes the keys of uploaded objects unlike those of anybody else.
  std::string nonce = {};
  // Where in the log it stands. The record after it is the commit or the abort, whichever is first.
  std::uint64_t number = 0;

  // Of an entry whose state is kReserved.
  static Reservation of(const VersionEntry& entry) {
    return {.ref = entry.ref, .nonce = entry.nonce, .number = entry.number};
  }
};

// Why a name cannot be reserved, as kConflict: who holds it, since when and from where, and what to
// do. Success for a state that allows it.
Status check_reservable(const VersionEntry& entry);

// Whether a version, as it is now, is still held by this reservation, or was published by it. If
// not, kConflict says who ended it.
Status check_held(const Reservation& reservation, const VersionEntry& now);

}  // namespace millrace
