#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "objectstore/object.h"
#include "objectstore/store_url.h"

namespace millrace::cli {

// A place in a store: one object, or everything below a name.
struct Location {
  StoreUrl store;
  // The object's key as the store sees it; empty for the root. A '/' at its end says "below here".
  std::string key;

  bool is_root() const { return key.empty(); }
  // What everything below this place begins with: the key with one '/' at its end, or nothing.
  std::string directory_prefix() const;
  // This place with `name` below it.
  Location child(std::string_view name) const;
  // The part of the key after the last '/', one at the very end aside.
  std::string name() const;
  ObjectKey object_key() const { return ObjectKey(key); }
  // For messages: "s3://bucket/key". Without the parameters, which would hide the name in noise.
  std::string to_string() const;
};

// Text that names a place inside --store, whatever the command: "store:path".
inline constexpr std::string_view kStorePrefix = "store:";

// Reads what a user wrote for a place in a store: a URL ("s3://bucket/key", "file:///dir/name"), a
// path with a '/' or '.' in front (a directory of files), or a path inside `store` ("a/b",
// "store:a/b").
//
// A URL of the bucket or directory that `store` names takes its parameters from there, so that an
// endpoint need not be repeated. For files outside of it, the store is the directory that the
// object is in, or the path itself when that is a directory or ends in '/'.
Result<Location> resolve_location(const std::string& text, const StoreUrl& store);

}  // namespace millrace::cli
