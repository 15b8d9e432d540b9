#include "frontends/fuse/fuse_device.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/log.h"
#include "frontends/fuse/fuse_kernel.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

iovec vector_of(ByteView bytes) {
  // The kernel only reads from it.
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

// Or the kernel looks at each read whether it is to note the time, which costs one of 4 KiB a
// twentieth, and notes it once a day. Some file systems cannot do without.
void keep_no_access_times(int descriptor) {
  int flags = 0;
  if (::ioctl(descriptor, fuse_kernel::kGetFlags, &flags) != 0) return;
  if ((flags & fuse_kernel::kNoAccessTimes) != 0) return;
  flags |= fuse_kernel::kNoAccessTimes;
  ::ioctl(descriptor, fuse_kernel::kSetFlags, &flags);
}

template <class T>
ByteView fuse_bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

bool FuseDevice::wait(Duration duration) const {
  const auto duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  pollfd watched{device_.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(duration_ms)) > 0;
}

FuseDevice::Received FuseDevice::receive(std::span<std::byte> buffer, std::size_t& length) const {
  const ssize_t got = ::read(device_.descriptor(), buffer.data(), buffer.size());
  if (got >= 0) {
    length = static_cast<std::size_t>(got);
    return Received::kRequest;
  }
  // ENOENT: the request was interrupted before it could be read.
  if (errno == EINTR || errno == EAGAIN || errno == ENOENT) return Received::kNothing;
  if (errno != ENODEV) {
    log_error("a mount ends",
              {{"error", file_error(errno, "read from", device_.path()).message()}});
  }
  return Received::kUnmounted;
}

void FuseDevice::write(std::uint64_t unique, std::int32_t error, ByteView first,
                       ByteView second) const {
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof(header) + first.size() + second.size());
  header.error = error;
  header.unique = unique;
  const std::array<iovec, 3> parts = {vector_of(fuse_bytes_of(header)), vector_of(first),
                                      vector_of(second)};
  if (::writev(device_.descriptor(), parts.data(), parts.size()) >= 0) return;
  // ENOENT: whoever asked was killed and waits no longer. ENODEV: unmounted.
  if (errno == ENOENT || errno == ENODEV) return;
  log_error(
      "the kernel did not take an answer",
      {{"error", file_error(errno, "write to", device_.path()).message()}, {"bytes", header.len}});
  // A wrong answer must not leave its reader waiting for ever.
  if (error == 0 && unique != 0) fail(unique, EIO);
}

void FuseDevice::answer(std::uint64_t unique, ByteView first, ByteView second) const {
  write(unique, 0, first, second);
}

void FuseDevice::fail(std::uint64_t unique, int error) const { write(unique, -error, {}, {}); }

Status FuseDevice::resend() const {
  fuse_out_header header{};
  header.len = sizeof(header);
  header.error = fuse_kernel::kNotifyResend;
  if (::write(device_.descriptor(), &header, sizeof(header)) >= 0) return {};
  if (errno == EINVAL) {
    return {StatusCode::kUnsupported,
            "only from Linux 6.9 on does a mount go on after its daemon was killed, since older "
            "kernels do not send again what that daemon had not answered"};
  }
  return file_error(errno, "ask for unanswered requests on", device_.path());
}

Result<std::int32_t> FuseDevice::open_backing(int descriptor) const {
  keep_no_access_times(descriptor);
  fuse_kernel::BackingMap map{.fd = descriptor};
  const int id = ::ioctl(device_.descriptor(), fuse_kernel::kBackingOpen, &map);
  if (id < 0) {
    const int error = errno;
    const Status status = file_error(error, "hand a file to", device_.path());
    return failure(error == ENOMEM ? StatusCode::kResourceExhausted : status.code(),
                   status.message());
  }
  return id;
}

bool FuseDevice::close_backing(std::int32_t id) const {
  auto number = static_cast<std::uint32_t>(id);
  return ::ioctl(device_.descriptor(), fuse_kernel::kBackingClose, &number) == 0;
}

bool is_fuse_connected(int device) {
  pollfd watched{device, 0, 0};
  return ::poll(&watched, 1, 0) == 0;
}

}  // namespace millrace
