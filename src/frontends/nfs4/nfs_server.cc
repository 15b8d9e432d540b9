#include "frontends/nfs4/nfs_server.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "frontends/nfs4/nfs_callback.h"
#include "frontends/nfs4/nfs_compound.h"
#include "frontends/nfs4/rpc_message.h"

namespace millrace {
namespace {

constexpr int kNfsAcceptsPerTurn = 64;
constexpr Duration kNfsAcceptPause = std::chrono::milliseconds(200);
constexpr Duration kSweepInterval = std::chrono::minutes(1);
constexpr Duration kReliefInterval = std::chrono::seconds(1);
// Each asks the registry once for each version that clients have delegations in.
constexpr std::uint32_t kSweepsPerPurgeCheck = 5;
constexpr std::size_t kScratchBytes = 256 * 1024;

void answer_plainly(RpcReturn& back, const RpcCall& call, RpcAccepted outcome) {
  XdrWriter writer = begin_rpc_record();
  write_rpc_answer(writer, call.xid, outcome);
  back.send(writer);
}

void run_and_wait(EventLoop& loop, Task task) {
  Waiter<bool> done;
  loop.resume([task = std::move(task), answer = done.completion()]() mutable {
    task();
    answer.complete(true);
  });
  (void)done.wait();
}

}  // namespace

struct NfsServer::Loop {
  explicit Loop(std::size_t index) : events(fmt::format("nfs-{}", index)) {}

  std::vector<std::byte> scratch = std::vector<std::byte>(kScratchBytes);
  std::unordered_set<std::shared_ptr<RpcConnection>> connections;
  EventLoop events;
};

// ---- Coming and going

Result<std::unique_ptr<NfsServer>> NfsServer::start(const Parts& parts, NfsServerOptions options) {
  MR_ASSIGN_OR_RETURN(TcpListener listener, TcpListener::listen(options.address, options.port));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<NfsState> state,
                      NfsState::open(parts.disk, options.state_directory, options.state,
                                     parts.clock, parts.random));
  const std::string key = options.handle_key_file.empty() ? options.state_directory + "/handle.key"
                                                          : options.handle_key_file;
  MR_ASSIGN_OR_RETURN(const NfsHandles handles, NfsHandles::open(key, parts.random));
  std::unique_ptr<const TlsServer> tls;
  if (options.tls) {
    MR_ASSIGN_OR_RETURN(tls, TlsServer::open(*options.tls, kRpcTlsProtocol));
  }
  std::unique_ptr<NfsServer> server(new NfsServer(parts, std::move(options), std::move(state),
                                                  handles, std::move(tls), std::move(listener)));
  run_and_wait(server->loops_.front()->events, [&server] {
    server->watch();
    server->sweep_later();
    server->relieve_later();
  });
  return server;
}

NfsServer::NfsServer(const Parts& parts, NfsServerOptions options, std::unique_ptr<NfsState> state,
                     const NfsHandles& handles, std::unique_ptr<const TlsServer> tls,
                     TcpListener listener)
    : options_(std::move(options)),
      state_(std::move(state)),
      service_{.files = parts.files,
               .exports = parts.exports,
               .state = *state_,
               .metrics = parts.metrics,
               .clock = parts.clock,
               .work = parts.work,
               .handles = handles,
               .started = parts.clock.wall_now(),
               .request_timeout = options_.request_timeout,
               .reads = NfsReadBudget(options_.read_bytes_max)},
      tls_(std::move(tls)),
      listener_(std::move(listener)) {
  for (std::size_t i = 0; i < std::max<std::size_t>(options_.loop_threads, 1); ++i)
    loops_.push_back(std::make_unique<Loop>(i));
}

NfsServer::~NfsServer() { stop(system_clock().now()); }

template <class Each>
void NfsServer::for_each_connection(Each each) {
  for (const auto& loop : loops_) {
    run_and_wait(loop->events, [&loop, &each] {
      // They leave the set as they end.
      const auto connections = loop->connections;
      for (const auto& connection : connections)
        each(*connection);
    });
  }
}

void NfsServer::stop(TimePoint deadline) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  run_and_wait(loops_.front()->events, [this] { stop_listening(); });
  for_each_connection([](RpcConnection& connection) { connection.finish(); });
  {
    MutexLock lock(mutex_);
    while (open_ > 0 && changed_.wait_until(mutex_, deadline)) {
    }
  }
  for_each_connection([](RpcConnection& connection) { connection.close(); });
  calls_.close();
}

std::size_t NfsServer::connections() const {
  MutexLock lock(mutex_);
  return open_;
}

// ---- Listening

void NfsServer::watch() {
  listening_ = true;
  loops_.front()->events.watch(listener_.descriptor(), EventLoop::kRead,
                               [this](std::uint32_t) { accept(); });
}

void NfsServer::stop_listening() {
  EventLoop& loop = loops_.front()->events;
  if (std::exchange(listening_, false)) loop.unwatch(listener_.descriptor());
  loop.cancel_timer(pause_);
  loop.cancel_timer(sweep_);
  loop.cancel_timer(relief_);
}

// Out of descriptors the listener stays readable, and the loop would spin.
void NfsServer::pause() {
  EventLoop& loop = loops_.front()->events;
  loop.unwatch(listener_.descriptor());
  listening_ = false;
  pause_ = loop.run_at(system_clock().now() + kNfsAcceptPause, [this] { watch(); });
}

void NfsServer::accept() {
  for (int i = 0; i < kNfsAcceptsPerTurn; ++i) {
    auto accepted = listener_.accept();
    if (!accepted) {
      log_error("cannot accept NFS clients", {{"error", accepted.error().to_string()}});
      pause();
      return;
    }
    if (!*accepted) return;
    add(*std::move(*accepted));
  }
}

void NfsServer::add(AcceptedTcp accepted) {
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    if (open_ >= options_.connections_max) {
      service_.metrics
          .counter(MetricId::kNfsConnectionsEnded,
                   {static_cast<std::size_t>(NfsMetricEnd::kRefused)})
          .add();
      return;
    }
    ++open_;
  }
  service_.metrics.gauge(MetricId::kNfsConnections).add(1);
  const NfsConnectionId id(next_connection_++);
  Loop& loop = *loops_[id.value() % loops_.size()];
  state_->sessions().connection_opened(id);
  const auto connection = std::make_shared<RpcConnection>(
      RpcConnection::Parts{.loop = loop.events,
                           .handler = *this,
                           .limits = options_.connection,
                           .scratch = loop.scratch},
      id, std::move(accepted.socket), NetworkAddress::of(accepted.peer));
  loop.events.resume([&loop, connection] {
    loop.connections.insert(connection);
    connection->start();
  });
}

void NfsServer::on_closed(RpcConnection& connection, RpcEnd end) {
  state_->sessions().connection_closed(connection.id());
  loops_[connection.id().value() % loops_.size()]->connections.erase(connection.shared_from_this());
  service_.metrics.gauge(MetricId::kNfsConnections).add(-1);
  if (end != RpcEnd::kClosed) {
    const NfsMetricEnd why =
        end == RpcEnd::kMalformed ? NfsMetricEnd::kMalformed : NfsMetricEnd::kStalled;
    service_.metrics.counter(MetricId::kNfsConnectionsEnded, {static_cast<std::size_t>(why)}).add();
  }
  MutexLock lock(mutex_);
  --open_;
  changed_.notify_all();
}

void NfsServer::sweep_later() {
  EventLoop& loop = loops_.front()->events;
  sweep_ = loop.run_at(system_clock().now() + kSweepInterval, [this] {
    sweep_later();
    std::optional<Gate::Pass> pass = calls_.enter();
    if (!pass) return;
    const bool asks_registry = ++sweeps_ % kSweepsPerPurgeCheck == 0;
    service_.work.resume([this, asks_registry, kept = std::move(*pass)] {
      state_->sweep();
      service_.wholes.sweep();
      if (asks_registry) recall_purged_versions();
    });
  });
}

// Those who take nothing give the memory of their answers to those who wait for some.
void NfsServer::relieve_later() {
  EventLoop& first = loops_.front()->events;
  relief_ = first.run_at(system_clock().now() + kReliefInterval, [this] {
    relieve_later();
    if (service_.reads.waiting() == 0) return;
    for (const auto& loop : loops_) {
      loop->events.resume([&loop = *loop] {
        // They leave the set as they end.
        const auto connections = loop.connections;
        for (const auto& connection : connections)
          connection->press();
      });
    }
  });
}

// ---- Taking delegations back

void NfsServer::recall(const NfsDelegated::IsGone& is_gone) {
  for (const std::shared_ptr<NfsSession>& session : state_->clients().take_delegated(is_gone)) {
    const std::optional<NfsConnectionId> id = session->back_channel();
    if (!id) continue;
    Loop& loop = *loops_[id->value() % loops_.size()];
    loop.events.resume([&loop, session, id = *id] {
      const auto found = std::ranges::find(loop.connections, id,
                                           [](const auto& connection) { return connection->id(); });
      if (found != loop.connections.end()) recall_nfs_delegations(*found, session);
    });
  }
}

void NfsServer::recall_export(const NfsExport& removed) {
  recall([id = removed.id()](const NfsDelegationPlace& place) { return place.export_id == id; });
}

void NfsServer::recall_purged_versions() {
  const RequestContext context(service_.clock.now() + service_.request_timeout, "nfs");
  std::set<TreeNumber> trees;
  for (const NfsDelegationPlace& place : state_->clients().delegated())
    trees.insert(place.tree);
  for (const TreeNumber tree : trees) {
    const Result<bool> purged = service_.files.drop_if_purged(context, tree);
    // A registry that cannot be asked now is asked again.
    if (!purged || !*purged) continue;
    service_.recent.forget(tree);
    recall([tree](const NfsDelegationPlace& place) { return place.tree == tree; });
  }
}

// ---- Calls

// Also the probe of a client that would like TLS: an answer as to any other means "no".
void NfsServer::answer_null(const RpcCall& call, RpcReturn back) {
  const std::shared_ptr<RpcConnection> connection = back.shared_connection();
  std::unique_ptr<TlsStream> tls;
  if (call.caller.flavour == RpcFlavour::kTls && tls_ != nullptr && connection->may_start_tls()) {
    Result<std::unique_ptr<TlsStream>> accepted = tls_->accept();
    if (accepted) tls = *std::move(accepted);
  }
  if (tls == nullptr) return answer_plainly(back, call, RpcAccepted::kSuccess);
  XdrWriter writer = begin_rpc_record();
  write_rpc_answer(writer, call.xid, RpcAccepted::kSuccess, kRpcStartTls);
  back.send(writer);
  connection->start_tls(std::move(tls));
}

void NfsServer::on_call(Slice record, RpcReturn back) {
  XdrReader reader(record.bytes());
  auto read = read_rpc_call(reader);
  if (!read) {
    back.connection().close(RpcEnd::kMalformed);
    return;
  }
  if (const auto* const rejection = std::get_if<RpcRejection>(&*read)) {
    XdrWriter writer = begin_rpc_record();
    write_rpc_rejection(writer, *rejection);
    back.send(writer);
    return;
  }
  RpcCall& call = std::get<RpcCall>(*read);
  if (call.program != kNfsProgram) {
    return answer_plainly(back, call, RpcAccepted::kProgramUnavailable);
  }
  if (call.version != kNfsVersion) {
    XdrWriter writer = begin_rpc_record();
    write_rpc_mismatch(writer, call.xid, kNfsVersion);
    back.send(writer);
    return;
  }
  const auto count_procedure = [this](NfsMetricProcedure procedure) {
    service_.metrics.counter(MetricId::kNfsRequests, {static_cast<std::size_t>(procedure)}).add();
  };
  if (call.procedure == kNfsProcedureNull) {
    count_procedure(NfsMetricProcedure::kNull);
    return answer_null(call, std::move(back));
  }
  if (call.procedure != kNfsProcedureCompound) {
    return answer_plainly(back, call, RpcAccepted::kProcedureUnavailable);
  }
  if (call.caller.flavour == RpcFlavour::kTls) {
    XdrWriter writer = begin_rpc_record();
    write_rpc_rejection(writer, {.xid = call.xid});
    back.send(writer);
    return;
  }
  count_procedure(NfsMetricProcedure::kCompound);
  std::optional<Gate::Pass> pass = calls_.enter();
  if (!pass) return;
  const std::size_t arguments = reader.position();
  std::make_shared<NfsCompound>(service_, std::move(call), std::move(record), arguments,
                                std::move(back), *std::move(pass))
      ->run();
}

}  // namespace millrace
