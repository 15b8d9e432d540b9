#include "cache/object_version.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "cache/unit.h"
#include "platform/digest.h"

namespace millrace {
namespace {

ObjectDigest digest_of(const StoreId& store, const ObjectKey& key, const ObjectIdentity& identity,
                       std::uint64_t size) {
  // Lengths first, so that no two versions have the same text.
  const std::string text = fmt::format(
      "millrace-object-version 1\n{} {} {} {}\n{}{}{}", store.value().size(), key.value().size(),
      identity.value().size(), size, store.value(), key.value(), identity.value());
  const Sha256Digest whole = sha256(as_bytes(text));
  ObjectDigest half;
  std::copy_n(whole.begin(), half.bytes.size(), half.bytes.begin());
  return half;
}

}  // namespace

std::string ObjectDigest::to_text() const { return to_hex(bytes); }

ObjectVersion::ObjectVersion(StoreId store, ObjectKey key, ObjectIdentity identity,
                             std::uint64_t size, std::shared_ptr<const UnitChecksums> checksums,
                             ObjectContent content) {
  assert(!checksums || checksums->size() == unit_count(size));
  const ObjectDigest digest = digest_of(store, key, identity, size);
  facts_ =
      std::make_shared<const Facts>(Facts{std::move(store), std::move(key), std::move(identity),
                                          size, std::move(checksums), content, digest});
}

}  // namespace millrace
