#include "tests/servers/nginx_server.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "tests/servers/loopback.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

std::string contents(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Debian keeps nginx in /usr/sbin, which is not on the PATH of an ordinary user.
std::string program() {
  for (const char* path : {"/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"}) {
    if (fs::exists(path)) return path;
  }
  throw std::runtime_error("nginx is not installed; `make setup` installs it (nginx-light)");
}

}  // namespace

NginxServer::NginxServer(std::string root, const NginxOptions& options) {
  if (!fs::is_directory(root)) throw std::runtime_error(root + " is not a directory");
  std::string name = "/tmp/millrace-nginx-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  directory_ = name;
  std::string failure;
  for (int attempt = 0; attempt < 3; ++attempt) {
    port_ = free_port();
    endpoint_ = fmt::format("http://127.0.0.1:{}", port_);
    write_config(fs::absolute(root), options);
    if (start()) return;
  }
  failure = contents(directory_ + "/error.log") + contents(directory_ + "/output");
  fs::remove_all(directory_);
  throw std::runtime_error("nginx does not start: " + failure);
}

NginxServer::~NginxServer() {
  process_.reset();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void NginxServer::write_config(const std::string& root, const NginxOptions& options) const {
  std::ofstream out(directory_ + "/nginx.conf");
  // Workers of a root master would run as nobody, who cannot read a test's directory.
  if (geteuid() == 0) out << "user root;\n";
  out << fmt::format(R"(daemon off;
worker_processes {workers};
worker_rlimit_nofile 8192;
pid {dir}/nginx.pid;
error_log {dir}/error.log error;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  sendfile on;
  sendfile_max_chunk 2m;
  tcp_nopush on;
  # A benchmark must not pay for new connections or for opening the same files again.
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  open_file_cache max=10000;
  default_type application/octet-stream;
  types {{ }}
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    root {root};
    limit_rate {rate};
  }}
}}
)",
                     fmt::arg("workers", options.workers), fmt::arg("dir", directory_),
                     fmt::arg("port", port_), fmt::arg("root", root),
                     fmt::arg("rate", options.limit_rate_bytes_per_second));
}

bool NginxServer::start() {
  ChildOptions options;
  options.output_file = directory_ + "/output";
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{program(), "-c", directory_ + "/nginx.conf", "-p", directory_, "-e",
                               directory_ + "/error.log"},
      options);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline && process_->running()) {
    // The pid file tells that it is our nginx that has the port.
    if (fs::exists(directory_ + "/nginx.pid") && accepts_connections(port_)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  process_.reset();
  return false;
}

}  // namespace millrace::testing
