#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "platform/file.h"

namespace millrace {

// One connection with the kernel: requests are read from it, answers are written to it.
//
// We speak the protocol ourselves. libfuse 3.14 of Debian 12 knows neither passthrough nor how to
// go on with a connection that another process has initialised, and a file system that only reads
// needs little else of it.
//
// All methods are safe from any thread.
class FuseDevice {
 public:
  // Requests that bring no data to write are shorter than this, and the kernel insists on it.
  static constexpr std::size_t kRequestBytesMax = 8192;

  explicit FuseDevice(File device) : device_(std::move(device)) {}

  enum class Received : std::uint8_t {
    kRequest,
    kNothing,    // A signal came, or the request was called off meanwhile: try again.
    kUnmounted,  // No more will come.
  };
  // Waits until there is something to receive; false when there is not, or a signal came.
  bool wait(Duration duration) const;
  // Waits for the next request.
  Received receive(std::span<std::byte> buffer, std::size_t& length) const;

  // Answers with success and these bytes, one after the other.
  void answer(std::uint64_t unique, ByteView first = {}, ByteView second = {}) const;
  // Answers with an errno, as a positive number.
  void fail(std::uint64_t unique, int error) const;

  // Has the kernel send again what nobody answered. kUnsupported before Linux 6.9.
  Status resend() const;

  // Lets the kernel read a file by itself. kPermissionDenied without CAP_SYS_ADMIN;
  // kResourceExhausted when it may work another time.
  Result<std::int32_t> open_backing(int descriptor) const;
  // False when there is no such backing.
  bool close_backing(std::int32_t id) const;

  int descriptor() const { return device_.descriptor(); }

 private:
  void write(std::uint64_t unique, std::int32_t error, ByteView first, ByteView second) const;

  File device_;
};

// Whether the file system that a device was opened for is there still. Its number may be another's
// when it is not (mount_table.h).
bool is_fuse_connected(int device);

}  // namespace millrace
