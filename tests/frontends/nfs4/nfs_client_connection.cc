#include "tests/frontends/nfs4/nfs_client_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/ssl.h>

namespace millrace::testing {
namespace {

constexpr std::uint32_t kLastFragmentBit = 0x80000000;
// Small answers are received many at a time, and no more than this is ever moved to the front.
constexpr std::size_t kReceiveBytes = 128 * 1024;
constexpr std::size_t kClientRecordBytesMax = 64 * kMiB;

File connected(std::uint16_t port, const std::string& name) {
  File socket = File::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "NFS server");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, name.c_str(), &address.sin_addr);
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    throw std::runtime_error(fmt::format("{}:{}: {}", name, port, std::strerror(errno)));
  }
  return socket;
}

}  // namespace

NfsConnection::NfsConnection(std::uint16_t port, const std::string& address,
                             std::chrono::milliseconds timeout)
    : socket_(connected(port, address)), timeout_(timeout), input_(kReceiveBytes) {}

std::uint32_t NfsConnection::send(const NfsCall& call) {
  const std::vector<std::byte> record = call.record(++xid_);
  output_.insert(output_.end(), record.begin(), record.end());
  return xid_;
}

bool NfsConnection::send_raw(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t sent =
        tls_ != nullptr ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
                        : ::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

void NfsConnection::flush() {
  if (!send_raw(output_)) throw std::runtime_error("the server has ended the connection");
  output_.clear();
}

ssize_t NfsConnection::receive_some(std::span<std::byte> into) {
  if (tls_ != nullptr && SSL_pending(tls_.get()) > 0)
    return SSL_read(tls_.get(), into.data(), static_cast<int>(into.size()));
  pollfd waiting{.fd = socket_.descriptor(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout_.count())) <= 0) return -1;
  if (tls_ != nullptr) return SSL_read(tls_.get(), into.data(), static_cast<int>(into.size()));
  return ::recv(socket_.descriptor(), into.data(), into.size(), 0);
}

bool NfsConnection::start_tls(const TlsFiles& files) {
  constexpr std::uint32_t kAuthTls = 7;
  // OpenSSL writes to sockets that the server has ended as to any other.
  ::signal(SIGPIPE, SIG_IGN);
  if (null(kAuthTls).verifier() != "STARTTLS") return false;
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const bool usable =
      SSL_CTX_load_verify_file(context.get(), files.authority.c_str()) == 1 &&
      (files.certificate.empty() ||
       (SSL_CTX_use_certificate_file(context.get(), files.certificate.c_str(), SSL_FILETYPE_PEM) ==
            1 &&
        SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) == 1));
  if (!usable) throw std::runtime_error("the test's files of TLS are none");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  std::shared_ptr<SSL> tls(SSL_new(context.get()), SSL_free);
  SSL_set1_host(tls.get(), "localhost");
  const std::string offer = static_cast<char>(files.protocol.size()) + files.protocol;
  SSL_set_alpn_protos(tls.get(), reinterpret_cast<const unsigned char*>(offer.data()),
                      static_cast<unsigned>(offer.size()));
  SSL_set_fd(tls.get(), socket_.descriptor());
  if (SSL_connect(tls.get()) != 1) throw std::runtime_error("the TLS handshake fails");
  tls_ = std::move(tls);
  return true;
}

bool NfsConnection::fill(std::size_t bytes) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (input_.size() < begin_ + bytes) {
    std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    input_.resize(std::max(input_.size(), bytes + kReceiveBytes));
  }
  while (end_ - begin_ < bytes) {
    const std::size_t wanted = std::max(bytes - (end_ - begin_), kReceiveBytes);
    const ssize_t count =
        receive_some(std::span(input_).subspan(end_, std::min(wanted, input_.size() - end_)));
    if (count <= 0) return false;
    end_ += static_cast<std::size_t>(count);
  }
  return true;
}

ByteView NfsConnection::next_record() {
  joined_.clear();
  while (fill(4)) {
    const std::uint32_t mark = XdrReader(ByteView(input_).subspan(begin_, 4)).u32();
    const std::size_t size = mark & ~kLastFragmentBit;
    if (size > kClientRecordBytesMax) throw std::runtime_error("the server's record has no end");
    if (!fill(4 + size)) break;
    const ByteView fragment = ByteView(input_).subspan(begin_ + 4, size);
    begin_ += 4 + size;
    const bool is_last = (mark & kLastFragmentBit) != 0;
    if (is_last && joined_.empty()) return fragment;
    joined_.insert(joined_.end(), fragment.begin(), fragment.end());
    if (is_last) return joined_;
  }
  return {};
}

ByteView NfsConnection::receive_raw(std::size_t bytes) {
  if (!fill(bytes)) return {};
  begin_ += bytes;
  return ByteView(input_).subspan(begin_ - bytes, bytes);
}

NfsAnswer NfsConnection::receive() {
  flush();
  while (true) {
    const ByteView record = next_record();
    if (record.empty()) throw std::runtime_error("no reply of the server");
    XdrReader reader(record);
    reader.u32();
    if (reader.u32() == 1) return NfsAnswer(record);
    answer_callback(record);
  }
}

NfsAnswer NfsConnection::run(const NfsCall& call) {
  const std::uint32_t xid = send(call);
  NfsAnswer answer = receive();
  if (answer.xid() != xid) throw std::runtime_error("the reply is not to what was asked");
  answer.keep();
  return answer;
}

NfsAnswer NfsConnection::null(std::uint32_t flavour) {
  XdrWriter writer;
  writer.u32(kLastFragmentBit | 40);
  writer.u32(++xid_);
  for (const std::uint32_t word :
       {0U, 2U, kNfsProgram, kNfsVersion, kNfsProcedureNull, flavour, 0U, 0U, 0U})
    writer.u32(word);
  if (!send_raw(writer.written())) throw std::runtime_error("the server has ended the connection");
  NfsAnswer answer = receive();
  answer.keep();
  return answer;
}

bool NfsConnection::is_ended() {
  while (true) {
    pollfd waiting{.fd = socket_.descriptor(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(timeout_.count())) <= 0) return false;
    const ssize_t count = ::recv(socket_.descriptor(), input_.data(), input_.size(), 0);
    if (count <= 0) return true;
  }
}

void NfsConnection::finish_sending() { ::shutdown(socket_.descriptor(), SHUT_WR); }

bool NfsConnection::wait_for_callbacks(std::size_t count) {
  flush();
  while (callbacks_.size() < count) {
    const ByteView record = next_record();
    if (record.empty()) return false;
    answer_callback(record);
  }
  return true;
}

void NfsConnection::answer_callback(ByteView call) {
  XdrReader reader(call);
  const std::uint32_t xid = reader.u32();
  for (int i = 0; i < 4; ++i)
    reader.u32();  // That it is a call; versions of RPC; program; its version.
  const bool is_compound = reader.u32() == 1;
  for (int i = 0; i < 2; ++i) {  // Credentials, verifier.
    reader.u32();
    reader.opaque(kNfsOpaqueBytesMax);
  }
  XdrWriter reply;
  for (const std::uint32_t word : {0U, xid, 1U, 0U, 0U, 0U, 0U})
    reply.u32(word);
  if (is_compound) {
    reader.text(kNfsTagBytesMax);
    reader.u32();  // Minor version.
    reader.u32();  // callback_ident.
    const std::uint32_t count = reader.count(kNfsOperationsMax);
    reply.enumeration(NfsStatus::kOk);
    reply.text("");
    reply.u32(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      Callback callback{.operation = reader.u32()};
      reply.u32(callback.operation);
      reply.enumeration(NfsStatus::kOk);
      if (callback.operation == kNfsCallbackSequence) {
        const auto session = reader.fixed_array<16>();
        const std::uint32_t seqid = reader.u32();
        const std::uint32_t slot = reader.u32();
        const std::uint32_t highest = reader.u32();
        reader.boolean();
        if (reader.count(16) != 0) throw std::runtime_error("a callback refers to other calls");
        reply.fixed(session);
        for (const std::uint32_t word : {seqid, slot, highest, highest})
          reply.u32(word);
      } else if (callback.operation == kNfsCallbackRecall) {
        callback.stateid = read_stateid(reader);
        reader.boolean();
        callback.handle = reader.text(kNfsHandleBytesMax);
      } else if (callback.operation == kNfsCallbackRecallAny) {
        reader.u32();  // How many may be kept.
        for (std::uint32_t words = reader.count(8); words > 0; --words)
          reader.u32();
      } else {
        throw std::runtime_error(fmt::format("callback operation {}", callback.operation));
      }
      callbacks_.push_back(std::move(callback));
    }
  }
  if (!reader.ok()) throw std::runtime_error("a callback is cut off");
  reply.patch_u32({}, kLastFragmentBit | static_cast<std::uint32_t>(reply.size() - 4));
  send_raw(reply.written());
}

}  // namespace millrace::testing
