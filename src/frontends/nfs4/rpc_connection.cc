#include "frontends/nfs4/rpc_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "frontends/nfs4/xdr_reader.h"

namespace millrace {
namespace {

constexpr int kReceivesPerTurn = 4;
constexpr std::size_t kEncryptedPartBytes = 64 * 1024;
constexpr std::uint64_t kGatheredBytesMax = 512 * kKiB;
constexpr int kKeepAliveIdleSeconds = 60;
constexpr int kKeepAliveIntervalSeconds = 15;
constexpr int kKeepAliveProbes = 4;

// A client whose machine is gone does not say goodbye: the kernel finds out.
void keep_alive(int socket) {
  const int on = 1;
  (void)::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveIdleSeconds, sizeof(int));
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveIntervalSeconds, sizeof(int));
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof(int));
}

}  // namespace

RpcConnection::RpcConnection(const Parts& parts, NfsConnectionId id, File socket,
                             NetworkAddress peer)
    : parts_(parts),
      id_(id),
      socket_(std::move(socket)),
      peer_(peer),
      records_(parts.limits.record) {}

template <class Method>
void RpcConnection::run_on_loop(Method method) {
  if (parts_.loop.on_loop_thread()) return method(*this);
  parts_.loop.resume(
      [self = shared_from_this(), method = std::move(method)]() mutable { method(*self); });
}

const RequestContext& RpcConnection::context(std::uint32_t uid) {
  if (!last_context_ || last_uid_ != uid) {
    last_uid_ = uid;
    last_context_ =
        RequestContext(TimePoint::max(), fmt::format("uid:{}@{}", uid, peer_.to_string()))
            .with_cancellation(cancellation_);
  }
  return *last_context_;
}

// ---- Coming and going

void RpcConnection::start() {
  keep_alive(socket_.descriptor());
  interest_ = EventLoop::kRead;
  parts_.loop.watch(socket_.descriptor(), interest_,
                    [weak = weak_from_this()](std::uint32_t ready) {
                      if (const auto self = weak.lock()) self->on_ready(ready);
                    });
  watch_time();
}

void RpcConnection::close(RpcEnd end) {
  if (std::exchange(closed_, true)) return;
  const auto self = shared_from_this();
  if (timer_ != 0) parts_.loop.cancel_timer(std::exchange(timer_, 0));
  parts_.loop.unwatch(socket_.descriptor());
  say_goodbye();
  ::shutdown(socket_.descriptor(), SHUT_RDWR);
  output_ = {};
  cancellation_->request();
  for (auto& [xid, callback] : std::exchange(callbacks_, {})) {
    parts_.loop.cancel_timer(callback.timer);
    callback.done.complete(failure(StatusCode::kUnavailable, "the client's connection ended"));
  }
  parts_.handler.on_closed(*this, end);
}

void RpcConnection::finish() {
  finishing_ = true;
  if (calls_ == 0 && output_.empty()) {
    close();
  } else {
    update_interest();
  }
}

// ---- Time

// One timer at a time: for what is owed to the client while there is any, else for a record that is
// arriving.
void RpcConnection::watch_time() {
  const bool for_output = !output_.empty();
  const bool for_record = !greeted_ || records_.started();
  const bool sent = output_.progressed();
  const bool received = std::exchange(received_record_, false);
  const bool progressed = for_output ? sent : received;
  if (timer_ != 0 && timer_for_output_ == for_output && !progressed && (for_output || for_record)) {
    return;
  }
  if (timer_ != 0) parts_.loop.cancel_timer(std::exchange(timer_, 0));
  if (!for_output && !for_record) return;
  timer_for_output_ = for_output;
  timer_set_ = system_clock().now();
  const Duration timeout = for_output ? parts_.limits.send_timeout : parts_.limits.record_timeout;
  timer_ = parts_.loop.run_at(timer_set_ + timeout, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_timeout();
  });
}

void RpcConnection::press() {
  const bool holds_memory = timer_ != 0 && timer_for_output_ && output_.memory_bytes() > 0;
  if (holds_memory && system_clock().now() - timer_set_ >= parts_.limits.pressed_send_timeout) {
    parts_.loop.cancel_timer(timer_);
    on_timeout();
  }
}

void RpcConnection::on_timeout() {
  timer_ = 0;
  log_info("a client is cut off that does not go on",
           {{"client", peer_.to_string()}, {"sending", timer_for_output_}});
  close(RpcEnd::kStalled);
}

// ---- Receiving

bool RpcConnection::may_read() const {
  return !finishing_ && calls_ < parts_.limits.calls_max &&
         output_.memory_bytes() < parts_.limits.output_bytes_max;
}

void RpcConnection::update_interest() {
  if (closed_) return;
  const std::uint32_t wanted = (may_read() ? std::uint32_t{EventLoop::kRead} : 0) |
                               (output_.empty() ? 0 : std::uint32_t{EventLoop::kWrite});
  if (wanted == interest_) return;
  interest_ = wanted;
  parts_.loop.set_interest(socket_.descriptor(), wanted);
}

void RpcConnection::on_ready(std::uint32_t ready) {
  if ((ready & EventLoop::kWrite) != 0) send();
  if (!closed_ && (ready & EventLoop::kRead) != 0) receive();
}

void RpcConnection::receive() {
  receiving_ = true;
  for (int i = 0; i < kReceivesPerTurn && !closed_ && may_read(); ++i) {
    const ssize_t got =
        ::recv(socket_.descriptor(), parts_.scratch.data(), parts_.scratch.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0) {
      close();  // A client that ends its side has gone.
      return;
    }
    const ByteView received = ByteView(parts_.scratch).first(static_cast<std::size_t>(got));
    if (tls_ != nullptr) {
      take_encrypted(received);
    } else {
      take(received);
    }
    if (static_cast<std::size_t>(got) < parts_.scratch.size()) break;
  }
  receiving_ = false;
  send();
}

void RpcConnection::take(ByteView bytes) {
  const bool in_the_open = tls_ == nullptr;
  while (!closed_) {
    Result<std::optional<Slice>> record = records_.next(bytes);
    if (!record) {
      log_info("a client is cut off that sends no calls",
               {{"client", peer_.to_string()}, {"error", record.error().to_string()}});
      close(RpcEnd::kMalformed);
      return;
    }
    if (!record->has_value()) return;
    greeted_ = true;
    received_record_ = true;
    on_record(std::move(**record));
    // Nothing that was sent in the open passes for what TLS protects.
    if (in_the_open && tls_ != nullptr) return take_encrypted(bytes);
  }
}

void RpcConnection::on_record(Slice record) {
  const Result<RpcMessage> message = rpc_message_of(XdrReader(record.bytes()));
  if (!message) {
    log_info("a client is cut off that sends no calls",
             {{"client", peer_.to_string()}, {"error", message.error().to_string()}});
    close(RpcEnd::kMalformed);
    return;
  }
  if (*message == RpcMessage::kReply) return on_callback_answer(std::move(record));
  ++calls_;
  parts_.handler.on_call(std::move(record), RpcReturn(shared_from_this()));
}

// ---- TLS

void RpcConnection::start_tls(std::unique_ptr<TlsStream> tls) {
  tls_ = std::move(tls);
  // It has the time of a new connection to say something.
  greeted_ = false;
}

RpcTransport RpcConnection::transport() const {
  if (tls_ == nullptr) return RpcTransport::kPlain;
  return tls_->knows_peer() ? RpcTransport::kMutualTls : RpcTransport::kTls;
}

void RpcConnection::take_encrypted(ByteView bytes) {
  if (bytes.empty()) return;
  Status status = tls_->receive(bytes);
  while (status.ok() && !closed_) {
    const Result<std::size_t> size = tls_->read(parts_.scratch);
    if (!size) status = size.error();
    if (!size || *size == 0) break;
    take(ByteView(parts_.scratch).first(*size));
  }
  if (closed_) return;
  push_encrypted();
  if (status.ok()) return;
  if (status != StatusCode::kUnavailable) {
    log_info("a client is cut off in TLS",
             {{"client", peer_.to_string()}, {"error", status.to_string()}});
  }
  // It hears why, if it listens.
  (void)output_.send(socket_.descriptor());
  close(status == StatusCode::kUnavailable ? RpcEnd::kClosed : RpcEnd::kMalformed);
}

void RpcConnection::push_encrypted() {
  Slice output = tls_->output();
  if (!output.empty()) output_.push({XdrPiece{.memory = std::move(output)}});
}

// What sendfile(2) would send is read here.
Status RpcConnection::encrypt(const std::vector<XdrPiece>& pieces) {
  if (!tls_->is_ready()) return {StatusCode::kConflict, "TLS is not agreed on yet"};
  std::vector<std::byte> part(kEncryptedPartBytes);
  for (const XdrPiece& piece : pieces) {
    if (piece.file == nullptr) {
      MR_RETURN_IF_ERROR(tls_->write(piece.memory.bytes()));
      continue;
    }
    for (std::uint64_t done = 0; done < piece.range.length;) {
      const std::size_t wanted = std::min<std::uint64_t>(part.size(), piece.range.length - done);
      const ssize_t got = ::pread(piece.file->descriptor(), part.data(), wanted,
                                  static_cast<off_t>(piece.range.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return {StatusCode::kInternal, "a cached file is shorter than its answer"};
      MR_RETURN_IF_ERROR(tls_->write(ByteView(part).first(static_cast<std::size_t>(got))));
      done += static_cast<std::uint64_t>(got);
    }
  }
  push_encrypted();
  return {};
}

// A client can tell this from a connection that somebody cut. Nobody waits for it to be sent.
void RpcConnection::say_goodbye() {
  if (tls_ == nullptr || !output_.empty()) return;
  tls_->end();
  push_encrypted();
  (void)output_.send(socket_.descriptor());
}

// ---- Sending

void RpcConnection::answer(std::vector<XdrPiece> pieces) {
  run_on_loop([pieces = std::move(pieces)](RpcConnection& self) mutable {
    --self.calls_;
    self.add_answer(std::move(pieces));
  });
}

void RpcConnection::add_answer(std::vector<XdrPiece> pieces) {
  if (closed_) return;
  const bool idle = output_.empty();
  if (tls_ == nullptr) {
    output_.push(std::move(pieces));
  } else if (const Status status = encrypt(pieces); !status.ok()) {
    log_warn("an answer cannot be encrypted",
             {{"client", peer_.to_string()}, {"error", status.to_string()}});
    return close();
  }
  // Answers to what is just being received go out together, unless they fill too much memory.
  const bool blocked = (interest_ & EventLoop::kWrite) != 0;
  if (receiving_ && (blocked || output_.memory_bytes() < kGatheredBytesMax)) return;
  if (idle || receiving_) {
    send();
  } else {
    update_interest();
  }
}

void RpcConnection::send() {
  if (closed_) return;
  if (output_.send(socket_.descriptor()) == RpcOutput::Outcome::kBroken) return close();
  if (finishing_ && calls_ == 0 && output_.empty()) return close();
  watch_time();
  update_interest();
}

// ---- Calls to the client

void RpcConnection::call(RpcCall call, std::string arguments, Completion<Slice> done) {
  run_on_loop([call = std::move(call), arguments = std::move(arguments),
               done = std::move(done)](RpcConnection& self) mutable {
    if (self.closed_) {
      done.complete(failure(StatusCode::kUnavailable, "the client's connection has ended"));
      return;
    }
    call.xid = self.next_xid_++;
    const TimePoint until = system_clock().now() + self.parts_.limits.callback_timeout;
    const EventLoop::TimerId timer =
        self.parts_.loop.run_at(until, [weak = self.weak_from_this(), xid = call.xid] {
          if (const auto connection = weak.lock()) connection->expire_callback(xid);
        });
    self.callbacks_.emplace(call.xid, Callback{std::move(done), timer});
    XdrWriter writer = begin_rpc_record();
    write_rpc_call(writer, call);
    writer.fixed(as_bytes(arguments));
    self.add_answer(end_rpc_record(writer));
  });
}

void RpcConnection::expire_callback(std::uint32_t xid) {
  auto found = callbacks_.extract(xid);
  if (found.empty()) return;
  found.mapped().done.complete(
      failure(StatusCode::kDeadlineExceeded, "the client did not answer a callback"));
}

void RpcConnection::on_callback_answer(Slice record) {
  auto found = callbacks_.extract(XdrReader(record.bytes()).u32());
  if (found.empty()) return;  // Too late, or made up.
  parts_.loop.cancel_timer(found.mapped().timer);
  found.mapped().done.complete(std::move(record));
}

}  // namespace millrace
