#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "objectstore/object.h"
#include "platform/file.h"

// What a FileObjectStore knows about a file beside its bytes, in the extended attribute
// "user.millrace": lines of text, so that getfattr shows them, and no escapes, so that 2 KiB of
// metadata fit into the 4 KiB that ext4 has for all attributes of a file.
//
//   millrace-object 1 <CRC-32C of all that follows, 8 hexadecimal digits>
//   token <32 hexadecimal digits, new with every write>
//   size <bytes>
//   modified <nanoseconds since 1970>
//   crc32c <of the content; absent when not known>
//   meta <name> <value>          once per metadata entry
namespace millrace::file_object_store {

struct Attributes {
  std::string token;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::optional<std::uint32_t> crc32c;
  ObjectMetadata metadata;
};

std::string encode_attributes(const Attributes& attributes);
// kCorruption when it is damaged, kUnsupported when a later version wrote it.
Result<Attributes> decode_attributes(std::string_view text);

// kUnsupported when the file system has no such attributes.
Status write_attributes(const File& file, const Attributes& attributes);

// The attributes, if they are about the content that the file has now: others have no business with
// a file that was edited in place, or copied over, since. A damaged record counts as none, with a
// warning: the identity changes, so that whoever pinned the object is told.
Result<std::optional<Attributes>> read_attributes(const File& file, const struct stat& facts);

// Changes whenever the content is replaced: by us, because the token does; by others, because
// inode, modification time or size do.
ObjectIdentity identity_of(const struct stat& facts, const std::optional<Attributes>& attributes);

std::int64_t modified_ns(const struct stat& facts);
WallTime modified_time(const struct stat& facts);

}  // namespace millrace::file_object_store
