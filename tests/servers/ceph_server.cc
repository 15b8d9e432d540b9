#include "tests/servers/ceph_server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "tests/servers/child_process.h"
#include "tests/servers/signed_request.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

// The script, from MILLRACE_SOURCE_DIR (the build defines it, ctest sets it) or, for a test program
// run by hand, from a parent of the working directory.
std::string script() {
  std::vector<fs::path> roots;
  if (const char* root = getenv("MILLRACE_SOURCE_DIR"); root != nullptr) roots.emplace_back(root);
#ifdef MILLRACE_SOURCE_DIR
  roots.emplace_back(MILLRACE_SOURCE_DIR);
#endif
  for (fs::path up = fs::current_path(); up != up.parent_path(); up = up.parent_path()) {
    roots.push_back(up);
  }
  for (const fs::path& root : roots) {
    if (fs::exists(root / "tools" / "ceph")) return root / "tools" / "ceph";
  }
  throw std::runtime_error("tools/ceph not found: set MILLRACE_SOURCE_DIR to the repository");
}

// The daemons belong to the watchdog of the script, not to the thread that happens to start them.
CommandResult run_script(std::vector<std::string> words, ChildOptions options = {}) {
  words.insert(words.begin(), script());
  options.die_with_parent = false;
  return run_command(words, options, std::chrono::minutes(3));
}

void require(const CommandResult& result, std::string_view what) {
  if (result.status == 0) return;
  throw std::runtime_error(fmt::format("{} failed with status {}: {}", what, result.status,
                                       result.output.empty() ? "no output" : result.output));
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Ceph's admin socket: a JSON command and a zero byte one way, a length (big endian) and as many
// bytes the other way. The `ceph` program does the same in half a second of Python.
std::string ask_admin_socket(const std::string& path, const std::string& command) {
  const auto failed = [&](std::string_view step) {
    return std::runtime_error(fmt::format("{}: {}: {}", path, step, std::strerror(errno)));
  };
  const std::unique_ptr<int, void (*)(int*)> fd(
      new int(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), [](int* open) {
        ::close(*open);
        delete open;
      });
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error(path + ": path too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(*fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw failed("connect");
  }
  const auto length = static_cast<ssize_t>(command.size() + 1);
  if (::send(*fd, command.c_str(), command.size() + 1, MSG_NOSIGNAL) != length) {
    throw failed("send");
  }
  std::string reply;
  std::array<char, 4096> bytes;
  for (ssize_t count = 0; (count = ::recv(*fd, bytes.data(), bytes.size(), 0)) > 0;) {
    reply.append(bytes.data(), static_cast<std::size_t>(count));
  }
  if (reply.size() < sizeof(std::uint32_t)) throw failed("no reply");
  return reply.substr(sizeof(std::uint32_t));
}

}  // namespace

CephServer::CephServer(const CephOptions& options) : owner_(getpid()) {
  std::string failure;
  // Somebody else may take a port between the script's choice and the daemon's bind.
  for (int attempt = 0; attempt < options.start_attempts_max; ++attempt) {
    try {
      start(options);
      return;
    } catch (const std::runtime_error& error) {
      failure = error.what();
    }
  }
  throw std::runtime_error("Ceph does not start: " + failure);
}

CephServer::~CephServer() {
  if (getpid() != owner_) return;
  const CommandResult result = run_script({"stop", directory_});
  if (result.status != 0) fmt::print(stderr, "tools/ceph stop: {}\n", result.output);
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

CephServer& CephServer::shared() {
  static std::mutex mutex;
  static std::unique_ptr<CephServer> server;
  static std::string failure;
  const std::lock_guard lock(mutex);
  if (!server && failure.empty()) {
    try {
      auto started = std::make_unique<CephServer>();
      started->create_bucket(kSharedBucket);
      server = std::move(started);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  if (!server) throw std::runtime_error(failure);
  return *server;
}

void CephServer::start(const CephOptions& options) {
  // Directly under /tmp, whatever TMPDIR says: the path of an admin socket has at most 107 bytes.
  std::string name = "/tmp/millrace-ceph-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  directory_ = name;
  ChildOptions child;
  child.environment = {{"STORE", options.bluestore ? "bluestore" : "memstore"},
                       {"SIZE", fmt::format("{}", options.store_bytes)},
                       {"ACCESS_KEY", access_key_},
                       {"SECRET_KEY", secret_key_},
                       {"TLS", options.tls ? "1" : ""},
                       {"KEEP", ""}};
  const auto result =
      run_script({"start", directory_, "--parent", fmt::format("{}", getpid())}, child);
  if (result.status != 0) {
    // The script ends what it started, unless it was killed itself.
    (void)run_script({"stop", directory_});
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  require(result, "tools/ceph start");
  endpoint_ = first_line(directory_ + "/url");
  if (options.tls) tls_endpoint_ = first_line(directory_ + "/tls_url");
}

void CephServer::create_bucket(std::string_view name) {
  const SignedAnswer answer = send_signed({.method = "PUT",
                                           .url = fmt::format("{}/{}", endpoint_, name),
                                           .access_key = access_key_,
                                           .secret_key = secret_key_});
  if (answer.status == 200 || answer.status == 409) return;
  throw std::runtime_error(fmt::format("creating bucket {}: status {} {} {}", name, answer.status,
                                       answer.error, answer.body));
}

void CephServer::set_max_concurrent_requests(int count) {
  const std::string reply = ask_admin_socket(
      directory_ + "/client.rgw.asok",
      fmt::format(R"({{"prefix":"config set","var":"rgw_max_concurrent_requests","val":["{}"]}})",
                  count));
  if (reply.find("success") == std::string::npos) {
    throw std::runtime_error("rgw_max_concurrent_requests: " + reply);
  }
}

void CephServer::kill_gateway() {
  require(run_script({"kill-gateway", directory_}), "tools/ceph kill-gateway");
}

void CephServer::restart_gateway() {
  kill_gateway();  // Nothing when it is dead already.
  require(run_script({"start-gateway", directory_}), "tools/ceph start-gateway");
}

}  // namespace millrace::testing
