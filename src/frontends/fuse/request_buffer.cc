#include "frontends/fuse/request_buffer.h"

#include <sys/mman.h>

namespace millrace {

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): not touched unless it is needed.
RequestBuffer::RequestBuffer()
    : pages_(::mmap(nullptr, FuseDevice::kRequestBytesMax, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}

RequestBuffer::~RequestBuffer() {
  if (pages_ != MAP_FAILED) ::munmap(pages_, FuseDevice::kRequestBytesMax);
}

std::span<std::byte> RequestBuffer::bytes() {
  if (pages_ == MAP_FAILED) return instead_;
  return {static_cast<std::byte*>(pages_), FuseDevice::kRequestBytesMax};
}

}  // namespace millrace
