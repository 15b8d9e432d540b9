#pragma once

#include "base/request_context.h"
#include "base/status.h"
#include "objectstore/file_object_store_tree.h"

namespace millrace::file_object_store {

// The right to change what a key holds, among all threads and processes that use the directory: a
// lock on one byte of the file "%lock", at the hash of the key. Held from construction to
// destruction; a process that dies lets go. Held only around looking and renaming, never around a
// sync.
class KeyLock {
 public:
  // Waits until the context ends. kUnsupported when the file system knows no locks.
  static Result<KeyLock> acquire(const RequestContext& context, Clock& clock, const Tree& tree,
                                 const ObjectKey& key);

 private:
  explicit KeyLock(File file) : file_(std::move(file)) {}
  // Every holder opens the file anew: the kernel's locks belong to the opening, not to the thread.
  File file_;
};

}  // namespace millrace::file_object_store
