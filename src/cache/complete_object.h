#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/buffer.h"
#include "base/status.h"
#include "cache/block_cache.h"
#include "cache/cache_space.h"
#include "cache/cached_object.h"
#include "platform/disk.h"
#include "platform/file.h"

namespace millrace {

// Keeps the file of an object from being punched. Move-only; the space must outlive it.
class HeldObject {
 public:
  HeldObject(std::shared_ptr<CachedObject> object, CacheSpace& space)
      : object_(std::move(object)), space_(&space) {
    object_->add_holder();
  }
  HeldObject(HeldObject&&) noexcept = default;
  HeldObject& operator=(HeldObject&&) = delete;
  ~HeldObject() {
    if (object_) space_->remove_unlinked(object_->drop_holder());
  }

 private:
  std::shared_ptr<CachedObject> object_;
  CacheSpace* space_;
};

// A large object: its own data file.
class FileCompleteObject final : public CompleteObject {
 public:
  // kUnsupported when the disk has no descriptors.
  static Result<std::unique_ptr<CompleteObject>> make(std::unique_ptr<DiskFile> file,
                                                      std::uint64_t size, HeldObject held);
  FileCompleteObject(std::unique_ptr<DiskFile> file, int descriptor, std::uint64_t size,
                     HeldObject held)
      : file_(std::move(file)), descriptor_(descriptor), size_(size), held_(std::move(held)) {}

  int descriptor() const override { return descriptor_; }
  std::uint64_t size() const override { return size_; }

 private:
  const std::unique_ptr<DiskFile> file_;
  const int descriptor_;
  const std::uint64_t size_;
  const HeldObject held_;
};

// A small object has no file of its own, and its neighbours are nobody's business: a copy in memory
// that nobody can change.
class MemoryCompleteObject final : public CompleteObject {
 public:
  static Result<std::unique_ptr<CompleteObject>> make(const Slice& data);
  MemoryCompleteObject(File file, std::uint64_t size) : file_(std::move(file)), size_(size) {}

  int descriptor() const override { return file_.descriptor(); }
  std::uint64_t size() const override { return size_; }

 private:
  const File file_;
  const std::uint64_t size_;
};

}  // namespace millrace
