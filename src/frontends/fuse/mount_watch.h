#pragma once

#include <string>

#include "base/status.h"
#include "platform/file.h"

namespace millrace {

// Tells when a file system has ended. Its number does not, since the kernel gives that to the next
// one at once. It does not keep the file system from being unmounted, and asks its daemon only when
// it is made.
//
// Thread-compatible.
class MountWatch {
 public:
  // Of the file system on a directory. Fails when nothing is there, or nothing more can be watched.
  static Result<MountWatch> of(const std::string& directory);

  // Once it says so, it always does.
  bool has_ended();
  // Becomes readable when it ends.
  int descriptor() const { return events_.descriptor(); }

 private:
  explicit MountWatch(File events) : events_(std::move(events)) {}

  File events_;  // An inotify.
  bool ended_ = false;
};

}  // namespace millrace
