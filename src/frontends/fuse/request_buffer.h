#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "frontends/fuse/fuse_device.h"

namespace millrace {

// Where a thread takes its requests. To one that is killed at that moment the kernel gives a
// request only in pages that are there and writable; where it would have to make them so, it fails
// the request with EIO, instead of leaving it to the next daemon. So these pages are there from the
// beginning, and are shared, since a fork makes others unwritable.
class RequestBuffer {
 public:
  RequestBuffer();
  ~RequestBuffer();
  RequestBuffer(const RequestBuffer&) = delete;
  RequestBuffer& operator=(const RequestBuffer&) = delete;

  std::span<std::byte> bytes();

 private:
  void* const pages_;
  // Where the system has no such pages. Costs nothing otherwise.
  alignas(8) std::array<std::byte, FuseDevice::kRequestBytesMax> instead_;
};

}  // namespace millrace
