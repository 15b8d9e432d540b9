#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/strong_type.h"
#include "objectstore/object.h"

namespace millrace {

// Which store an object lives in: a text that means the same store in every run, as
// "s3://bucket at https://host". Opaque to the cache.
using StoreId = StrongType<std::string, struct StoreIdTag>;

// The name of an object version on disk: the first half of a SHA-256 over store, key, identity and
// size. What is cached under it is that version and no other.
struct ObjectDigest {
  std::array<std::byte, 16> bytes{};

  auto operator<=>(const ObjectDigest&) const = default;
  // 32 hexadecimal digits.
  std::string to_text() const;
};

// CRC-32C of each unit (cache/unit.h) of an object, as its manifest gives them.
using UnitChecksums = std::vector<std::uint32_t>;

// What its readers will probably want of an object.
enum class ObjectContent : std::uint8_t {
  kOneFile,    // What they ask for.
  kManyFiles,  // A pack: sooner or later all of it, in any order.
};

// One immutable content of one key. Cached bytes belong to it and not to the key, so they can never
// be stale. Cheap to copy. Safe to read from any thread.
class ObjectVersion {
 public:
  // `checksums`, one per unit, is what bytes from the store are held against; without it the first
  // fetch is trusted. Neither it nor `content` is a part of the identity.
  ObjectVersion(StoreId store, ObjectKey key, ObjectIdentity identity, std::uint64_t size,
                std::shared_ptr<const UnitChecksums> checksums = nullptr,
                ObjectContent content = ObjectContent::kOneFile);

  const StoreId& store() const { return facts_->store; }
  const ObjectKey& key() const { return facts_->key; }
  const ObjectIdentity& identity() const { return facts_->identity; }
  std::uint64_t size() const { return facts_->size; }
  const ObjectDigest& digest() const { return facts_->digest; }
  const UnitChecksums* checksums() const { return facts_->checksums.get(); }
  ObjectContent content() const { return facts_->content; }

 private:
  struct Facts {
    StoreId store;
    ObjectKey key;
    ObjectIdentity identity;
    std::uint64_t size;
    std::shared_ptr<const UnitChecksums> checksums;
    ObjectContent content;
    ObjectDigest digest;
  };
  std::shared_ptr<const Facts> facts_;
};

}  // namespace millrace

// The digest is uniform already.
template <>
struct std::hash<millrace::ObjectDigest> {
  std::size_t operator()(const millrace::ObjectDigest& digest) const noexcept {
    std::size_t value = 0;
    __builtin_memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};
