#include <algorithm>

#include "frontends/nfs4/nfs_file_handle.h"
#include "fuzz/fuzz_input.h"

// No bytes are a handle of ours but those that we make: changing one bit of one spoils it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  static const NfsHandles handles(SipHashKey{});
  const ByteView bytes = as_bytes(fuzz_text(data, size));
  if (const auto known = handles.decode(bytes)) {
    fuzz_require(std::ranges::equal(handles.encode(*known), bytes));
  }
  if (size < 14) return 0;
  NfsHandle handle;
  std::uint64_t node = 0;
  for (std::size_t i = 0; i < 4; ++i)
    handle.export_id = handle.export_id << 8 | data[i];
  for (std::size_t i = 4; i < 12; ++i)
    node = node << 8 | data[i];
  handle.node = NodeNumber(node);
  handle.tree_check = handle.export_id >> 8;
  NfsHandles::Bytes made = handles.encode(handle);
  fuzz_require(handles.decode(made) == handle);
  made[data[12] % made.size()] ^= static_cast<std::byte>(1U << (data[13] % 8));
  fuzz_require(!handles.decode(made).has_value());
  return 0;
}
