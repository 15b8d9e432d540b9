#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "objectstore/file_object_store_attributes.h"
#include "objectstore/file_object_store_tree.h"

namespace millrace::file_object_store {

// An object on its way: a file under "%tmp" that is renamed to its key when it is whole.
//
// Lifecycle: create, write, seal, then rename by whoever has the lock of the key and released().
// Destruction before that removes the file. A process that dies leaves it; the next open() of
// the store removes it once it is old and nobody holds its lock. Move-only, thread-compatible.
class TemporaryFile {
 public:
  static Result<TemporaryFile> create(const Tree& tree, Random& random);

  TemporaryFile(TemporaryFile&& other) noexcept = default;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept = delete;
  ~TemporaryFile();

  const File& file() const { return file_; }
  // Descriptor of "%tmp", and the name in it.
  int directory() const { return directory_.descriptor(); }
  const std::string& name() const { return name_; }

  // Records what is known about the content and makes all of it durable. The info has everything
  // but the key. kUnsupported for metadata on a file system without attributes.
  Result<ObjectInfo> seal(const Clock& clock, std::optional<std::uint32_t> crc32c,
                          const ObjectMetadata& metadata);

  // The file has its place: nothing is left to remove.
  void release() { file_.close(); }
  // Removes it now. Success when nothing is left behind.
  Status remove();

 private:
  TemporaryFile(File directory, File file, std::string name)
      : directory_(std::move(directory)), file_(std::move(file)), name_(std::move(name)) {}

  File directory_;
  File file_;  // Open while there is something to remove. Its flock tells that the writer lives.
  std::string name_;
};

// Removes what writers that died left under "%tmp" more than `age` ago.
void remove_abandoned_files(const Tree& tree, const Clock& clock, Duration age);

}  // namespace millrace::file_object_store
