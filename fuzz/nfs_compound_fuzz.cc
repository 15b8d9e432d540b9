#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "daemon/gateway.h"
#include "dataset/directory_source.h"
#include "dataset/publisher.h"
#include "frontends/nfs4/nfs_server.h"
#include "fuzz/fuzz_input.h"
#include "tests/frontends/nfs4/nfs_client_session.h"

namespace {

using namespace millrace;
using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using millrace::testing::NfsSession;

// A served version in a directory that goes with the process.
class FuzzedServer {
 public:
  FuzzedServer() {
    set_log_level(LogLevel::kOff);
    std::filesystem::create_directories(directory_ + "/tree/d");
    std::ofstream(directory_ + "/tree/d/small") << "hello";
    std::filesystem::create_symlink("d/small", directory_ + "/tree/link");
    const EnvironmentLookup environment =
        [this](const std::string& name) -> std::optional<std::string> {
      return name == "HOME" ? std::optional(directory_) : std::nullopt;
    };
    const auto loaded = load_settings({.config_file = "", .values = {}}, environment).value();
    application_ = Application::start(loaded.settings, environment).value();
    gateway_ = Gateway::open(*application_, MissingRoot::kCreate).value();
    publish_tree();
    server_ = NfsServer::start({.files = gateway_->files(),
                                .clock = gateway_->clock(),
                                .work = gateway_->work(),
                                .metrics = gateway_->metrics(),
                                .exports = exports_,
                                .random = system_random(),
                                .disk = gateway_->disk()},
                               {.port = 0, .state_directory = directory_ + "/nfs"})
                  .value();
    connect();
  }
  ~FuzzedServer() {
    session_.reset();
    server_.reset();
    gateway_.reset();
    application_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Anew where the last input has ended the session or the connection. As another client: one that
  // is known has nothing more to reclaim.
  void connect() {
    session_.reset();
    connection_ = std::make_unique<NfsConnection>(server_->port());
    session_ = std::make_unique<NfsSession>(
        *connection_, millrace::testing::NfsSessionOptions{
                          .owner = "fuzz " + std::to_string(++clients_), .minor_version = 2});
    file_ = session_->lookup("/datasets/a/v1/d/small");
  }
  NfsSession& session() { return *session_; }
  NfsConnection& connection() { return *connection_; }
  const std::string& file() const { return file_; }

 private:
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
  NfsExports exports_{parse_nfs_exports("/datasets").value()};
  std::unique_ptr<Application> application_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<NfsServer> server_;
  std::unique_ptr<NfsConnection> connection_;
  std::unique_ptr<NfsSession> session_;
  int clients_ = 0;
  std::string file_;
};

}  // namespace

// Operations of a client that has a session, behind a good SEQUENCE and the handle of a file, or
// without either. Whatever they are, there is one answer that can be read, or the connection ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzedServer server;
  if (size < 2 || size > 4096) return 0;
  const unsigned kind = data[0] % 4;
  const std::uint32_t operations = data[1] % 12;
  NfsCall call = kind == 3 ? NfsCall(data[0] / 4 % 4) : server.session().call();
  if (kind == 1) call.put_fh(server.file());
  if (kind == 2) call.put_root_fh();
  call.append(as_bytes(fuzz_text(data + 2, size - 2)), operations);
  try {
    auto answer = server.connection().run(call);
    const bool is_result = answer.is_accepted() && answer.accept_status() == 0;
    fuzz_require(!is_result || answer.operations() <= call.operations());
    if (kind == 3) return 0;
    // The slot has been used when its SEQUENCE was good.
    if (is_result && answer.next(NfsOperation::kSequence) == NfsStatus::kOk) return 0;
  } catch (const std::runtime_error&) {
    // The server has ended the connection, or the session.
  }
  server.connect();
  return 0;
}
