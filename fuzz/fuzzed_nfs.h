#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "base/mutex.h"
#include "frontends/nfs4/nfs_callback.h"
#include "frontends/nfs4/nfs_compound.h"
#include "frontends/nfs4/nfs_service.h"
#include "fuzz/forgetful_disk.h"
#include "fuzz/fuzz_input.h"

namespace millrace {

// The loop of a server's connections and its executor for what may wait, as turns that one thread
// takes: what is fuzzed has neither sockets nor threads, and the same input does the same again.
//
// Tasks may come from any thread, as the cache's do; the rest is for the one that takes the turns.
class FuzzedTurns final : public Executor {
 public:
  Status submit(Task task) override {
    resume(std::move(task));
    return {};
  }
  void resume(Task task) override { add({.task = std::move(task)}); }
  std::string_view name() const override { return "fuzz"; }

  void resume_on_loop(Task task) { add({.task = std::move(task), .on_loop = true}); }
  bool on_loop() const { return on_loop_; }

  // One turn; waits for it to come. Whoever waits for ever is found by the fuzzer's time-out.
  void take() MR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (turns_.empty())
      changed_.wait(mutex_);
    Turn turn = std::move(turns_.front());
    turns_.pop_front();
    lock.unlock();
    run(std::move(turn));
  }
  void take_all() MR_EXCLUDES(mutex_) {
    while (has_some())
      take();
  }
  void run_on_loop(Task task) { run({.task = std::move(task), .on_loop = true}); }

 private:
  struct Turn {
    Task task;
    bool on_loop = false;
  };
  void add(Turn turn) MR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    turns_.push_back(std::move(turn));
    changed_.notify_all();
  }
  bool has_some() MR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return !turns_.empty();
  }
  void run(Turn turn) {
    on_loop_ = turn.on_loop;
    turn.task();
    on_loop_ = false;
  }

  bool on_loop_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Turn> turns_ MR_GUARDED_BY(mutex_);
};

// What a client does with callbacks.
enum class FuzzedCallbacks : std::uint8_t { kAnswered, kLost, kGarbled };

// A connection that keeps the answer to its call.
class FuzzedConnection final : public RpcConnection {
 public:
  FuzzedConnection(const Parts& parts, NfsConnectionId id, FuzzedTurns& turns)
      : RpcConnection(parts, id, {}, NetworkAddress::parse("127.0.0.1").value()), turns_(turns) {}

  bool on_loop_thread() const override { return turns_.on_loop(); }
  void resume(Task task) override { turns_.resume_on_loop(std::move(task)); }
  void answer(std::vector<XdrPiece> pieces) override {
    fuzz_require(!answer_);
    answer_ = std::move(pieces);
  }
  void call(RpcCall call, std::string arguments, Completion<Slice> done) override {
    const Slice record = callback_answer(call, arguments);
    turns_.resume_on_loop([record, done = std::move(done)]() mutable {
      if (record.empty()) {
        done.complete(failure(StatusCode::kUnavailable, "lost"));
      } else {
        done.complete(record);
      }
    });
  }
  void set_callbacks(FuzzedCallbacks callbacks) { callbacks_ = callbacks; }

  bool is_answered() const { return answer_.has_value(); }
  std::vector<XdrPiece> take_answer() { return *std::exchange(answer_, std::nullopt); }

 private:
  Slice callback_answer(const RpcCall& call, const std::string& arguments) const {
    if (callbacks_ == FuzzedCallbacks::kLost) return {};
    if (callbacks_ == FuzzedCallbacks::kGarbled) return Slice::copy_of(arguments + "garbled");
    XdrWriter writer;
    write_rpc_answer(writer, call.xid, RpcAccepted::kSuccess);
    writer.u32(0);
    writer.text("");
    for (const std::uint32_t word : {1U, kNfsCallbackSequence, 0U})
      writer.u32(word);
    return Slice::copy_of(writer.written());
  }

  FuzzedTurns& turns_;
  FuzzedCallbacks callbacks_ = FuzzedCallbacks::kAnswered;
  std::optional<std::vector<XdrPiece>> answer_;
};

// The NFS server of one input: its state, a session, a client of 4.0 and two
// connections. All numbers in it are the same each time, so that inputs can name what they made.
class FuzzedNfs {
 public:
  // What is made once, and outlives it.
  struct Parts {
    FileSystem& files;
    NfsExports& exports;
    Metrics& metrics;
    RpcConnection::Parts connection;
  };
  explicit FuzzedNfs(const Parts& parts)
      : state_(NfsState::open(disk_, "/nfs", {.lease = kLease}, clock_, random_).value()),
        service_{.files = parts.files,
                 .exports = parts.exports,
                 .state = *state_,
                 .metrics = parts.metrics,
                 .clock = clock_,
                 .work = turns_,
                 .handles = NfsHandles({1, 2}),
                 .started = clock_.wall_now(),
                 .request_timeout = kForever,
                 .reads = NfsReadBudget(128 * kMiB)} {
    for (const std::uint64_t id : {1, 2}) {
      connections_.push_back(
          std::make_shared<FuzzedConnection>(parts.connection, NfsConnectionId(id), turns_));
      state_->sessions().connection_opened(NfsConnectionId(id));
    }
    add_clients();
  }
  ~FuzzedNfs() { turns_.take_all(); }

  static constexpr Duration kLease = std::chrono::hours(1);
  // The tree's clock is the system's, which is far from ours.
  static constexpr Duration kForever = std::chrono::years(10);

  ManualClock& clock() { return clock_; }
  NfsState& state() { return *state_; }
  FuzzedConnection& connection(std::size_t index) { return *connections_[index]; }
  const NfsSessionId& session() const { return session_; }
  // The handle at a path of the tree, from the root of the first export.
  std::string handle_of(const std::string& path) {
    const RpcCaller caller{.flavour = RpcFlavour::kSys, .credentials = {}, .machine = {}};
    const NfsView view(service_.files, service_.exports.table(),
                       {.address = connections_.front()->peer(), .caller = caller},
                       service_.started);
    const NodeAttributes node = service_.files.resolve(RequestContext::background(), path).value();
    const NfsHandle handle = view.handle_of(
        {.exported = &service_.exports.table()->exports().front(), .node = node.number});
    return std::string(as_text(service_.handles.encode(handle)));
  }

  // The answer to a call as it comes off the wire, without its mark; empty when it was none.
  std::vector<XdrPiece> run(FuzzedConnection& connection, Slice record) {
    XdrReader reader(record.bytes());
    auto read = read_rpc_call(reader);
    fuzz_require(read.has_value());
    turns_.run_on_loop([&] {
      std::make_shared<NfsCompound>(service_, std::get<RpcCall>(*std::move(read)),
                                    std::move(record), reader.position(),
                                    RpcReturn(connection.shared_from_this()), *calls_.enter())
          ->run();
    });
    while (!connection.is_answered())
      turns_.take();
    turns_.take_all();
    return connection.take_answer();
  }
  // As when all that is delegated is gone.
  void recall() {
    for (const auto& session : state_->clients().take_delegated([](auto&) { return true; })) {
      const std::optional<NfsConnectionId> id = session->back_channel();
      if (id)
        turns_.run_on_loop([&] { recall_nfs_delegations(connections_[id->value() - 1], session); });
    }
    turns_.take_all();
  }

 private:
  void add_clients() {
    const NfsChannelAttributes fore{.request_bytes_max = kNfsReadBytesMax,
                                    .response_bytes_max = kNfsReadBytesMax,
                                    .cached_response_bytes_max = 4096,
                                    .operations_max = 24,
                                    .requests_max = 4};
    const auto client =
        state_->clients()
            .exchange_id({.owner = {.verifier = {}, .id = "fuzz"}, .principal = "1:0"})
            .value();
    session_ = state_->clients()
                   .create_session({.client = client.client,
                                    .sequence = client.sequence,
                                    .flags = kSessionBackChannel,
                                    .fore = fore,
                                    .back = {.request_bytes_max = 4096,
                                             .response_bytes_max = 4096,
                                             .operations_max = 2,
                                             .requests_max = 1},
                                    .callback_program = 0x40000000,
                                    .principal = "1:0",
                                    .connection = NfsConnectionId(1)})
                   .value()
                   .session;
    state_->sessions().find(session_)->client().complete_reclaim();
    const auto old =
        state_->clients40().set_client_id({.verifier = {}, .id = "fuzz"}, "1:0").value();
    fuzz_require(state_->clients40().confirm(old.client, old.confirm, "1:0") == NfsStatus::kOk);
  }

  ForgetfulDisk disk_;
  ManualClock clock_;
  SeededRandom random_{1};
  FuzzedTurns turns_;
  const std::unique_ptr<NfsState> state_;
  NfsService service_;
  Gate calls_;
  std::vector<std::shared_ptr<FuzzedConnection>> connections_;
  NfsSessionId session_;
};

}  // namespace millrace
