#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/completion.h"
#include "base/request_context.h"
#include "frontends/nfs4/nfs_types.h"
#include "frontends/nfs4/rpc_message.h"
#include "frontends/nfs4/rpc_output.h"
#include "frontends/nfs4/rpc_record.h"
#include "frontends/nfs4/rpc_transport.h"
#include "platform/event_loop.h"
#include "platform/file.h"
#include "platform/network_range.h"
#include "platform/tls_stream.h"

namespace millrace {

class RpcConnection;
class RpcReturn;

struct RpcConnectionLimits {
  RpcRecordLimits record;
  // While more are unanswered, or more memory waits to be sent, nothing is read.
  std::size_t calls_max = 2048;
  std::uint64_t output_bytes_max = 64 * kMiB;
  // From a record's first byte to its last; of a new connection, and again from where TLS begins,
  // until its first one is whole.
  Duration record_timeout = std::chrono::seconds(30);
  Duration send_timeout = std::chrono::seconds(60);  // Without the client taking anything.
  // The same while others wait for the memory that its answers are in.
  Duration pressed_send_timeout = std::chrono::seconds(5);
  Duration callback_timeout = std::chrono::seconds(20);
};

enum class RpcEnd : std::uint8_t {
  kClosed,     // By the client or by us.
  kMalformed,  // What came is no record, or no TLS.
  kStalled,    // A time-out.
};

// Who answers. Outlives the connections. Called on their loops, and must not block.
class RpcHandler {
 public:
  virtual ~RpcHandler() = default;
  virtual void on_call(Slice record, RpcReturn back) = 0;
  // Once, at the end.
  virtual void on_closed(RpcConnection& connection, RpcEnd end) = 0;
};

// One client's connection: takes calls in the order in which they arrive, and sends answers in the
// order in which they come. Calls to the client go the same way.
//
// Touched by the loop's thread only, but for what says otherwise. Virtual is what a call does with
// its connection while it runs: a double without socket and thread takes its place.
class RpcConnection : public std::enable_shared_from_this<RpcConnection> {
 public:
  struct Parts {
    EventLoop& loop;
    RpcHandler& handler;
    const RpcConnectionLimits& limits;
    // What is received goes here first: connections that rest need no memory of their own.
    std::vector<std::byte>& scratch;
  };
  RpcConnection(const Parts& parts, NfsConnectionId id, File socket, NetworkAddress peer);
  virtual ~RpcConnection() = default;

  void start();
  void close(RpcEnd end = RpcEnd::kClosed);
  // Takes no more calls, and closes when those under way are answered and sent.
  void finish();
  // Others wait for memory: closes when the client has long taken nothing of what it holds here.
  void press();

  // Whether the call that arrived last is the only thing under way, outside of TLS: only then both
  // sides agree on where TLS begins.
  bool may_start_tls() const { return tls_ == nullptr && calls_ == 1 && callbacks_.empty(); }
  // All that comes from now on is TLS, in both directions; what was to be sent before is not.
  void start_tls(std::unique_ptr<TlsStream> tls);
  RpcTransport transport() const;

  // Of the calls of one user: called off when the connection ends, and without a deadline. For
  // accounts and logs the caller is "uid:1000@10.0.0.7". Until the next call of this.
  const RequestContext& context(std::uint32_t uid);

  // From any thread.
  NfsConnectionId id() const { return id_; }
  const NetworkAddress& peer() const { return peer_; }
  virtual bool on_loop_thread() const { return parts_.loop.on_loop_thread(); }
  // Goes on with a call there.
  virtual void resume(Task task) { parts_.loop.resume(std::move(task)); }
  // Sends an answer, or only notes that there is none when it is empty.
  virtual void answer(std::vector<XdrPiece> pieces);
  // Calls a procedure of the client, with its arguments in XDR; the transaction's id is ours. The
  // answer is the client's record; kUnavailable when the connection ends first, kDeadlineExceeded
  // when the client takes too long.
  virtual void call(RpcCall call, std::string arguments, Completion<Slice> done);

 private:
  struct Callback {
    Completion<Slice> done;
    EventLoop::TimerId timer = 0;
  };

  void on_ready(std::uint32_t ready);
  void receive();
  void take(ByteView bytes);
  void take_encrypted(ByteView bytes);
  Status encrypt(const std::vector<XdrPiece>& pieces);
  void push_encrypted();
  void say_goodbye();
  void on_record(Slice record);
  void on_callback_answer(Slice record);
  void expire_callback(std::uint32_t xid);
  void add_answer(std::vector<XdrPiece> pieces);
  void send();
  void update_interest();
  void watch_time();
  void on_timeout();
  bool may_read() const;
  template <class Method>
  void run_on_loop(Method method);

  const Parts parts_;
  const NfsConnectionId id_;
  const File socket_;
  const NetworkAddress peer_;
  // Requested when the connection ends: nobody waits for its calls any more.
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();

  RpcRecords records_;
  RpcOutput output_;
  std::unique_ptr<TlsStream> tls_;  // Null: what is sent and received is in the open.
  bool closed_ = false;
  bool finishing_ = false;
  bool greeted_ = false;          // A whole record has arrived.
  bool received_record_ = false;  // Since the timer was set.
  bool receiving_ = false;
  std::size_t calls_ = 0;
  std::uint32_t interest_ = 0;
  EventLoop::TimerId timer_ = 0;
  bool timer_for_output_ = false;
  TimePoint timer_set_{};  // When there was progress for the last time.
  std::uint32_t next_xid_ = 1;
  std::unordered_map<std::uint32_t, Callback> callbacks_;
  // Nearly all calls of a connection come from one user.
  std::uint32_t last_uid_ = 0;
  std::optional<RequestContext> last_context_;
};

// The way back for the answer to one call. Dropped without an answer, the connection knows that
// none will come. Move-only.
class RpcReturn {
 public:
  explicit RpcReturn(std::shared_ptr<RpcConnection> connection)
      : connection_(std::move(connection)) {}
  RpcReturn(RpcReturn&&) noexcept = default;
  RpcReturn& operator=(RpcReturn&&) = delete;
  ~RpcReturn() {
    if (connection_ != nullptr) connection_->answer({});
  }

  RpcConnection& connection() const { return *connection_; }
  const std::shared_ptr<RpcConnection>& shared_connection() const { return connection_; }
  // From any thread, once. The writer began with begin_rpc_record().
  void send(XdrWriter& writer) {
    std::exchange(connection_, nullptr)->answer(end_rpc_record(writer));
  }

 private:
  std::shared_ptr<RpcConnection> connection_;
};

}  // namespace millrace
