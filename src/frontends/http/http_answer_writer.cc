#include "frontends/http/http_answer_writer.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/time_format.h"
#include "platform/http_framing.h"

namespace millrace {
namespace {

// How much goes out before the loop looks after others.
constexpr std::uint64_t kSendfileBytesMax = 4 * kMiB;

bool has_no_body(int status) { return status == 204 || status == 304; }

}  // namespace

HttpAnswerWriter::HttpAnswerWriter(int socket, HttpAnswer answer, HttpFraming framing, WallTime now)
    : socket_(socket), framing_(framing) {
  write_head(answer, now);
  if (framing_.head_only || has_no_body(answer.status)) return;
  if (auto* const memory = std::get_if<Slice>(&answer.body)) memory_ = std::move(*memory);
  if (auto* const file = std::get_if<HttpFileBody>(&answer.body)) file_ = std::move(*file);
  if (auto* const stream = std::get_if<std::shared_ptr<HttpBodyStream>>(&answer.body)) {
    stream_ = std::move(*stream);
    stream_left_ = stream_->length();
    if (stream_left_ == 0) stream_.reset();
  }
}

void HttpAnswerWriter::write_head(const HttpAnswer& answer, WallTime now) {
  std::optional<std::uint64_t> length;
  if (const auto* const memory = std::get_if<Slice>(&answer.body)) length = memory->size();
  if (const auto* const file = std::get_if<HttpFileBody>(&answer.body)) length = file->range.length;
  if (const auto* const stream = std::get_if<std::shared_ptr<HttpBodyStream>>(&answer.body)) {
    length = (*stream)->length();
  }
  head_ = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", answer.status, http_reason(answer.status),
                      format_http_date(now));
  for (const HttpHeader& header : answer.headers) {
    if (!is_http_token(header.name) || has_http_line_breaker(header.value)) {
      // It would end the head early, and let whoever chose the value write the rest.
      log_error("a header of an answer is malformed and left out", {{"name", header.name}});
      continue;
    }
    head_ += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  if (length && !has_no_body(answer.status)) {
    head_ += fmt::format("Content-Length: {}\r\n", *length);
  } else if (!length) {
    chunked_ = framing_.minor_version == 1;
    if (chunked_) head_ += "Transfer-Encoding: chunked\r\n";
    if (!chunked_) framing_.keep_alive = false;
  }
  // A client of HTTP/1.0 takes it for granted that the connection ends.
  if (!framing_.keep_alive) head_ += "Connection: close\r\n";
  if (framing_.keep_alive && framing_.minor_version == 0) head_ += "Connection: keep-alive\r\n";
  head_ += "\r\n";
}

HttpAnswerWriter::Outcome HttpAnswerWriter::advance() {
  if (head_sent_ < head_.size() || !memory_.empty()) {
    if (const Outcome outcome = send_memory(); outcome != Outcome::kDone) return outcome;
  }
  if (file_.range.length > 0) return send_file();
  return stream_ != nullptr ? Outcome::kWantsPiece : Outcome::kDone;
}

HttpAnswerWriter::Outcome HttpAnswerWriter::send_memory() {
  while (head_sent_ < head_.size() || !memory_.empty()) {
    // sendmsg(2) does not write through its pointers.
    std::array<iovec, 2> parts = {{{head_.data() + head_sent_, head_.size() - head_sent_},
                                   {const_cast<std::byte*>(memory_.data()), memory_.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? Outcome::kBlocked : Outcome::kBroken;
    }
    progressed_ = true;
    const auto bytes = static_cast<std::size_t>(sent);
    const std::size_t of_head = std::min(bytes, head_.size() - head_sent_);
    head_sent_ += of_head;
    memory_ = memory_.part(bytes - of_head);
  }
  return Outcome::kDone;
}

HttpAnswerWriter::Outcome HttpAnswerWriter::send_file() {
  std::uint64_t budget = kSendfileBytesMax;
  while (file_.range.length > 0) {
    if (budget == 0) return Outcome::kBlocked;
    off_t offset = static_cast<off_t>(file_.range.offset);
    const ssize_t sent =
        ::sendfile(socket_, file_.descriptor, &offset, std::min(budget, file_.range.length));
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? Outcome::kBlocked : Outcome::kBroken;
    }
    // The file is shorter than its answer says.
    if (sent == 0) return Outcome::kBroken;
    progressed_ = true;
    const auto bytes = static_cast<std::uint64_t>(sent);
    file_.range.offset += bytes;
    file_.range.length -= bytes;
    budget -= bytes;
  }
  return Outcome::kDone;
}

bool HttpAnswerWriter::give(Slice piece) {
  head_.clear();
  head_sent_ = 0;
  const bool end = piece.empty();
  if (stream_left_) {
    if (piece.size() > *stream_left_ || end) return false;
    *stream_left_ -= piece.size();
    if (*stream_left_ == 0) stream_.reset();
  } else {
    // The line that ends the chunk goes before the next one.
    if (chunked_ && stream_begun_) head_ = "\r\n";
    if (chunked_) head_ += fmt::format("{:x}\r\n", piece.size());
    if (chunked_ && end) head_ += "\r\n";
    if (end) stream_.reset();
    stream_begun_ = true;
  }
  memory_ = std::move(piece);
  return true;
}

}  // namespace millrace
