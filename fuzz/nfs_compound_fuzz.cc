#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "daemon/gateway.h"
#include "dataset/directory_source.h"
#include "dataset/publisher.h"
#include "fuzz/fuzzed_nfs.h"
#include "tests/frontends/nfs4/nfs_client_call.h"

namespace {

using namespace millrace;
using millrace::testing::NfsAnswer;
using millrace::testing::NfsCall;
using millrace::testing::NfsCaller;

constexpr std::size_t kCallsPerInput = 8;
// Servers are made so many at a time: most inputs then cover nothing but what they do themselves.
constexpr std::size_t kServersPerBatch = 64;

// A published version in a directory that goes with the process.
class FuzzedTree {
 public:
  FuzzedTree() {
    set_log_level(LogLevel::kOff);
    std::filesystem::create_directories(directory_ + "/tree/d/e");
    for (const char* const name : {"small", "a", "b", "c"})
      std::ofstream(directory_ + "/tree/d/" + name) << "hello";
    std::filesystem::create_symlink("d/small", directory_ + "/tree/link");
    const EnvironmentLookup environment =
        [this](const std::string& name) -> std::optional<std::string> {
      return name == "HOME" ? std::optional(directory_) : std::nullopt;
    };
    const auto loaded = load_settings({.config_file = "", .values = {}}, environment).value();
    application_ = Application::start(loaded.settings, environment).value();
    gateway_ = Gateway::open(*application_, MissingRoot::kCreate).value();
    publish_tree();
  }
  ~FuzzedTree() {
    servers_.clear();
    gateway_.reset();
    application_.reset();
    std::filesystem::remove_all(directory_);
  }

  // One that nobody has used.
  std::unique_ptr<FuzzedNfs> take_server() {
    if (servers_.empty()) {
      while (servers_.size() < kServersPerBatch)
        servers_.push_back(std::make_unique<FuzzedNfs>(parts()));
      file_ = servers_.back()->handle_of("/datasets/a/v1/d/small");
      directory_handle_ = servers_.back()->handle_of("/datasets/a/v1/d");
    }
    std::unique_ptr<FuzzedNfs> server = std::move(servers_.back());
    servers_.pop_back();
    return server;
  }
  const std::string& file() const { return file_; }
  const std::string& directory() const { return directory_handle_; }

 private:
  FuzzedNfs::Parts parts() {
    return {
        .files = gateway_->files(),
        .exports = exports_,
        .metrics = gateway_->metrics(),
        .connection = {.loop = loop_, .handler = handler_, .limits = limits_, .scratch = scratch_}};
  }
  // Of connections that never begin.
  struct NoHandler final : RpcHandler {
    void on_call(Slice /*record*/, RpcReturn /*back*/) override { std::abort(); }
    void on_closed(RpcConnection& /*connection*/, RpcEnd /*end*/) override { std::abort(); }
  };

  static std::string made_directory() {
    std::string name = "/tmp/millrace-fuzz-XXXXXX";
    fuzz_require(::mkdtemp(name.data()) != nullptr);
    return name;
  }
  void publish_tree() {
    const auto source = DirectorySource::open_root(directory_ + "/tree").value();
    fuzz_require(publish(RequestContext::background(),
                         {.store = gateway_->store(),
                          .registry = gateway_->registry(),
                          .buffers = gateway_->buffers(),
                          .clock = system_clock(),
                          .random = system_random(),
                          .state_directory = directory_ + "/publish"},
                         *source, VersionRef::parse("a@v1").value(), {})
                     .has_value());
  }

  const std::string directory_ = made_directory();
  NfsExports exports_{parse_nfs_exports("/datasets,squash=none").value()};
  std::unique_ptr<Application> application_;
  std::unique_ptr<Gateway> gateway_;
  NoHandler handler_;
  const RpcConnectionLimits limits_;
  std::vector<std::byte> scratch_;
  EventLoop loop_{"fuzz"};
  std::vector<std::unique_ptr<FuzzedNfs>> servers_;
  std::string file_;
  std::string directory_handle_;
};

// Calls of an input, one after the other. Each has a head of four bytes, and then so many bytes of
// operations as the last two say:
//   minor version, SEQUENCE, file handle, what happens before: two bits each, from below;
//   operations (four bits), caller, connection, callbacks are lost.
class Calls {
 public:
  Calls(FuzzedNfs& server, const FuzzedTree& tree, std::string_view input)
      : server_(server), tree_(tree), input_(input) {}

  bool run_next() {
    if (input_.size() < kHeadBytes) return false;
    const unsigned kind = byte(0);
    const unsigned sender = byte(1);
    const std::size_t size =
        std::min<std::size_t>(byte(2) | byte(3) << 8, input_.size() - kHeadBytes);
    const std::string_view operations = input_.substr(kHeadBytes, size);
    input_.remove_prefix(kHeadBytes + size);

    happen(kind >> 6);
    NfsCall call(kind & 3, caller(sender >> 4 & 3));
    const unsigned sequence = kind >> 2 & 3;
    if (sequence != 0) {
      call.sequence(server_.session(), sequence == 2 ? sequence_ : sequence_ + 1, 0, 0,
                    sequence == 3);
    }
    put_handle(call, kind >> 4 & 3);
    call.append(as_bytes(operations), sender & 15);
    FuzzedConnection& connection = server_.connection(sender >> 6 & 1);
    connection.set_callbacks((sender & 128) != 0  ? FuzzedCallbacks::kLost
                             : (sender & 64) != 0 ? FuzzedCallbacks::kGarbled
                                                  : FuzzedCallbacks::kAnswered);
    // 4.0 does not know it.
    send(connection, call, (kind & 3) != 0 && sequence % 2 == 1);
    return true;
  }

 private:
  static constexpr std::size_t kHeadBytes = 4;

  unsigned byte(std::size_t at) const { return static_cast<unsigned char>(input_[at]); }

  static NfsCaller caller(unsigned which) {
    if (which == 1) return {.uid = 1000, .gid = 1000};
    return {.is_known = which != 2};
  }

  void happen(unsigned what) {
    if (what == 1) server_.clock().advance(FuzzedNfs::kLease / 2);
    if (what == 2) {
      server_.clock().advance(FuzzedNfs::kLease * 30);
      server_.state().sweep();
    }
    if (what == 3) server_.recall();
  }

  void put_handle(NfsCall& call, unsigned which) const {
    if (which == 1) call.put_root_fh();
    if (which == 2) call.put_fh(tree_.directory());
    if (which == 3) call.put_fh(tree_.file());
  }

  // There is one answer that can be read.
  void send(FuzzedConnection& connection, const NfsCall& call, bool uses_slot) {
    const std::vector<std::byte> record = call.record(1);
    const std::vector<XdrPiece> pieces =
        server_.run(connection, Slice::copy_of(ByteView(record).subspan(kRpcMarkBytes)));
    std::string bytes;
    for (const XdrPiece& piece : pieces)
      bytes += piece.memory.text();
    fuzz_require(bytes.size() > kRpcMarkBytes);
    XdrReader mark(as_bytes(bytes));
    fuzz_require(mark.u32() == (kRpcLastFragment | (bytes.size() - kRpcMarkBytes)));
    NfsAnswer answer(as_bytes(bytes).subspan(kRpcMarkBytes));
    fuzz_require(answer.is_accepted() && answer.xid() == 1);
    if (answer.accept_status() != 0) return;
    // What looks like a retry gets the answer to something else.
    if (!uses_slot || answer.operations() == 0) return;
    fuzz_require(answer.operations() <= call.operations());
    // The slot has been used when its SEQUENCE was good.
    if (answer.next(NfsOperation::kSequence) == NfsStatus::kOk) ++sequence_;
  }

  FuzzedNfs& server_;
  const FuzzedTree& tree_;
  std::string_view input_;
  std::uint32_t sequence_ = 0;  // Of the last call on slot 0.
};

}  // namespace

// Calls to a server with a session and a client of 4.0: operations behind a good SEQUENCE and the
// handle of a file or directory, or without either. Whatever they are, each has one answer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzedTree tree;
  const std::unique_ptr<FuzzedNfs> server = tree.take_server();
  Calls calls(*server, tree, fuzz_text(data, size));
  for (std::size_t i = 0; i < kCallsPerInput && calls.run_next(); ++i) {
  }
  return 0;
}
