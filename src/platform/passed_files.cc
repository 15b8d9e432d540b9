#include "platform/passed_files.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "platform/file_error.h"

namespace millrace {
namespace {

// Room for the descriptors, aligned as the kernel wants its headers.
struct ControlSpace {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kPassedFilesMax * sizeof(int))> bytes{};
};

}  // namespace

Status send_files(int socket, std::string_view text, const std::vector<int>& descriptors) {
  if (text.size() > kPassedTextBytesMax || descriptors.size() > kPassedFilesMax) {
    return {StatusCode::kInvalidArgument, "the message is too long for one"};
  }
  iovec vector{const_cast<char*>(text.data()), text.size()};
  ControlSpace control;
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    const std::size_t length = descriptors.size() * sizeof(int);
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(length);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(header), descriptors.data(), length);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return file_error(errno, "send to", "socket");
  return {};
}

Result<PassedMessage> receive_files(int socket, std::size_t files_max) {
  PassedMessage received;
  received.text.resize(kPassedTextBytesMax);
  iovec vector{received.text.data(), received.text.size()};
  ControlSpace control;
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return failure(file_error(errno, "receive from", "socket"));
  received.is_end = got == 0;
  received.text.resize(static_cast<std::size_t>(got));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t n = 0; n < count; ++n) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + n * sizeof(int), sizeof(int));
      received.files.push_back(File::adopt(descriptor, "passed file"));
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return failure(StatusCode::kCorruption,
                   "the files that came over a socket cannot be taken: this process may not have "
                   "so many open (ulimit -n), or they are too many for one message");
  }
  if (received.files.size() > files_max || (message.msg_flags & MSG_TRUNC) != 0) {
    return failure(StatusCode::kCorruption, "a message over a socket has more than it may");
  }
  return received;
}

}  // namespace millrace
