#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "dataset/registry_writer.h"
#include "objectstore/object_store.h"

namespace millrace {

// What everything that reads and writes the registry needs. The referred-to outlive all users.
struct RegistryAccess {
  ObjectStore& store;
  Clock& clock;
  Random& random;
  WriterIdentity writer;
  // Looks, then puts, instead of asking the store for create-if-absent. Two writers at once then
  // overwrite each other: only for stores that cannot do better, and for users who say that nobody
  // else writes (--unsafe-single-writer).
  bool single_writer = false;
};

}  // namespace millrace
