#include "cli/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace millrace::cli {
namespace {

constexpr std::size_t kPendingBytesMax = 64 * kKiB;

}  // namespace

Output::Output(int fd, bool json) : fd_(fd), json_(json), terminal_(::isatty(fd) == 1) {}

Status Output::write(ByteView bytes) {
  if (!failure_.ok()) return failure_;
  pending_.append(as_text(bytes));
  return pending_.size() >= kPendingBytesMax ? flush() : Status();
}

Status Output::line(std::string_view text) {
  MR_RETURN_IF_ERROR(write(as_bytes(terminal_ ? printable(text) : std::string(text))));
  MR_RETURN_IF_ERROR(write(as_bytes("\n")));
  return terminal_ ? flush() : Status();
}

Status Output::document(const Json& document) {
  MR_RETURN_IF_ERROR(write(as_bytes(json_text(document) + "\n")));
  return terminal_ ? flush() : Status();
}

Status Output::flush() {
  std::string_view rest = pending_;
  while (failure_.ok() && !rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody who shares our terminal or pipe made it non-blocking.
      pollfd ready{fd_, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno == EPIPE) {
      reader_gone_ = true;
      failure_ = {StatusCode::kCancelled, "the reader of standard output went away"};
    } else if (errno != EINTR) {
      failure_ = {StatusCode::kIoError, fmt::format("could not write to standard output: {}",
                                                    std::generic_category().message(errno))};
    }
  }
  pending_.clear();
  return failure_;
}

std::string json_text(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = '?';
  }
  return shown;
}

}  // namespace millrace::cli
