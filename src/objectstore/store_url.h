#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// Where a store is, as people write it:
//
//   s3://bucket/prefix?endpoint=http://127.0.0.1:9000&region=us-east-1
//   file:///abs/path, or a bare path: /abs/path, ./relative, ../relative
//   memory://name
//
// In a URL, path and parameter values are percent-decoded, and what could be misread (blanks, '#',
// a lone '%') is refused. A bare path is taken as it stands. A value type; thread-compatible.
struct StoreUrl {
  enum class Scheme : std::uint8_t { kFile, kMemory, kS3 };

  Scheme scheme = Scheme::kFile;
  // The bucket of s3, the name of a memory store, the directory of a file store (without a '/' at
  // its end). Never empty.
  std::string root;
  // Of s3 and memory: what every key begins with, without '/' at either end; empty for all of it.
  // A file store has none: its directory says it all.
  std::string prefix;
  // Only those that were given; names and values have been checked.
  std::map<std::string, std::string> parameters;

  // The value of a parameter, or `otherwise` when it was not given.
  std::string parameter(const std::string& name, std::string otherwise = "") const;

  // Directories and memory mean something else on every machine.
  bool is_local() const { return scheme != Scheme::kS3; }

  // Text that parses back to the same value.
  std::string to_string() const;

  // The same place without its prefix: two URLs with equal roots are views of one store.
  StoreUrl without_prefix() const;

  bool operator==(const StoreUrl&) const = default;
};

inline constexpr std::size_t kStoreUrlBytesMax = 4096;

// kInvalidArgument with one sentence: what was given, what is wrong, what is expected, an example.
// kUnsupported for schemes that we know and cannot serve yet.
Result<StoreUrl> parse_store_url(std::string_view text);

// A URL of one object (or of everything below a name): a store and what follows its root.
struct ObjectUrl {
  StoreUrl store;
  // Exactly as given, a '/' at its end included; empty for the root itself. For a file store it is
  // always empty, because only the disk knows where the directory ends and the key begins.
  std::string key;
};
Result<ObjectUrl> parse_object_url(std::string_view text);

// True for text that starts with "scheme://" or is a path that starts with '/', './' or '../'.
bool looks_like_store_url(std::string_view text);

}  // namespace millrace
