#include "frontends/nfs4/nfs_file_handle.h"

#include <fmt/format.h>

#include "base/hex.h"
#include "base/little_endian.h"
#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"
#include "platform/file.h"

namespace millrace {
namespace {

constexpr std::uint32_t kHandleFormat = 2;
constexpr std::uint32_t kTreeCheckBits = 24;
constexpr std::uint32_t kTreeCheckMask = (1U << kTreeCheckBits) - 1;
constexpr std::size_t kHandleBodyBytes = 16;
constexpr std::size_t kHandleKeyBytes = 16;

Result<SipHashKey> parse_handle_key(std::string_view text, const std::string& path) {
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  const Result<std::vector<std::byte>> bytes = from_hex(text);
  if (!bytes || bytes->size() != kHandleKeyBytes) {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("'{}' holds no key of file handles: expected 32 hexadecimal digits", path));
  }
  return SipHashKey{load_little_endian<std::uint64_t>(bytes->data()),
                    load_little_endian<std::uint64_t>(bytes->data() + 8)};
}

}  // namespace

Result<NfsHandles> NfsHandles::open(const std::string& path, Random& random) {
  Result<std::string> text = read_file(path, 1024);
  if (!text && text.error() == StatusCode::kNotFound) {
    text = random.token() + "\n";
    MR_RETURN_IF_ERROR(write_file_atomically(path, as_bytes(*text), 0600));
  }
  if (!text) return failure(text.error());
  MR_ASSIGN_OR_RETURN(const SipHashKey key, parse_handle_key(*text, path));
  return NfsHandles(key);
}

NfsHandles::Bytes NfsHandles::encode(const NfsHandle& handle) const {
  Bytes bytes;
  store_xdr(bytes.data(), (kHandleFormat << kTreeCheckBits) | (handle.tree_check & kTreeCheckMask));
  store_xdr(bytes.data() + 4, handle.export_id);
  store_xdr(bytes.data() + 8, handle.node.value());
  store_xdr(bytes.data() + kHandleBodyBytes,
            siphash(key_, ByteView(bytes).first(kHandleBodyBytes)));
  return bytes;
}

std::optional<NfsHandle> NfsHandles::decode(ByteView bytes) const {
  if (bytes.size() != kHandleBytes) return std::nullopt;
  XdrReader reader(bytes);
  const std::uint32_t head = reader.u32();
  NfsHandle handle{.export_id = reader.u32(),
                   .node = NodeNumber(reader.u64()),
                   .tree_check = head & kTreeCheckMask};
  const bool ours = head >> kTreeCheckBits == kHandleFormat &&
                    reader.u64() == siphash(key_, bytes.first(kHandleBodyBytes));
  if (!ours) return std::nullopt;
  return handle;
}

}  // namespace millrace
