#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "base/random.h"
#include "frontends/nfs4/nfs_service.h"
#include "frontends/nfs4/rpc_connection.h"
#include "platform/disk.h"
#include "platform/event_loop.h"
#include "platform/tcp_listener.h"

namespace millrace {

// What clients that want TLS ask for in its handshake (ALPN).
inline constexpr std::string_view kRpcTlsProtocol = "sunrpc";

struct NfsServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = kNfsPort;  // 0: any that is free.
  // Who we are, the clients that we know, and the secret of file handles. Made when absent.
  std::string state_directory;
  // Gateways with the same one know each other's handles. Empty: in the state directory.
  std::string handle_key_file = {};
  // Nothing: clients cannot ask for TLS.
  std::optional<TlsServerFiles> tls = {};
  NfsStateOptions state = {};
  std::size_t loop_threads = 2;
  std::size_t connections_max = 16 * 1024;
  Duration request_timeout = std::chrono::seconds(45);
  std::uint64_t read_bytes_max = 128 * kMiB;  // Of answers in memory, of all clients.
  RpcConnectionLimits connection = {.record = {.record_bytes_max = kNfsRecordBytesMax}};
};

// NFSv4 over TCP: 4.0, 4.1 and 4.2 of the tree's exports.
//
// Lifecycle: serves from start() until stop(). The parts outlive it; it must not be destroyed on
// one of their threads. Safe from any thread.
class NfsServer final : private RpcHandler {
 public:
  struct Parts {
    FileSystem& files;
    Clock& clock;
    Executor& work;
    Metrics& metrics;
    NfsExports& exports;
    Random& random;
    Disk& disk;
  };
  // kConflict when somebody listens there, kInvalidArgument for a file of TLS that is none;
  // otherwise as the disk fails, with a sentence.
  static Result<std::unique_ptr<NfsServer>> start(const Parts& parts, NfsServerOptions options);
  // Stops at once.
  ~NfsServer() override;

  // Takes no more calls, and lets those under way end until the deadline.
  void stop(TimePoint deadline);

  // Asks clients for the delegations that they have below an export which was taken away.
  void recall_export(const NfsExport& removed);
  // The same for versions that the registry has purged meanwhile, whose files are stale from then
  // on. Done every few minutes. Blocks.
  void recall_purged_versions();

  std::uint16_t port() const { return listener_.port(); }
  std::size_t connections() const;
  NfsState& state() { return *state_; }

 private:
  // A thread and the connections that it serves. What is in it belongs to that thread.
  struct Loop;

  NfsServer(const Parts& parts, NfsServerOptions options, std::unique_ptr<NfsState> state,
            const NfsHandles& handles, std::unique_ptr<const TlsServer> tls, TcpListener listener);

  void on_call(Slice record, RpcReturn back) override;
  void on_closed(RpcConnection& connection, RpcEnd end) override;
  void answer_null(const RpcCall& call, RpcReturn back);

  void watch();
  void accept();
  void pause();
  void add(AcceptedTcp accepted);
  void stop_listening();
  void sweep_later();
  void relieve_later();
  void recall(const NfsDelegated::IsGone& is_gone);
  template <class Each>
  void for_each_connection(Each each);

  const NfsServerOptions options_;
  const std::unique_ptr<NfsState> state_;
  NfsService service_;
  const std::unique_ptr<const TlsServer> tls_;  // Null: there is none.
  const TcpListener listener_;
  Gate calls_;

  // Touched by the first loop's thread only.
  bool listening_ = false;
  EventLoop::TimerId pause_ = 0;
  EventLoop::TimerId sweep_ = 0;
  EventLoop::TimerId relief_ = 0;
  std::uint32_t sweeps_ = 0;
  std::uint64_t next_connection_ = 1;

  mutable Mutex mutex_;
  CondVar changed_;
  std::size_t open_ MR_GUARDED_BY(mutex_) = 0;
  bool stopped_ MR_GUARDED_BY(mutex_) = false;

  // Last: they end first, and use the others until then.
  std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace millrace
