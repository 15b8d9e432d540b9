#include "tests/servers/nfs_guest.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/bytes.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

// Under a sanitizer's load on two cores the guest has a fraction of one.
constexpr auto kBootMax = std::chrono::minutes(3);
constexpr std::size_t kConsoleTailBytes = 3000;

// Where tools/setup unpacks the guest's kernel and busybox.
constexpr const char* kGuestPackages = MILLRACE_SOURCE_DIR "/build/nfs_guest";
constexpr const char* kGuestKernels = MILLRACE_SOURCE_DIR "/build/nfs_guest/boot";
constexpr const char* kMakeImage = MILLRACE_SOURCE_DIR "/tests/nfs_guest/make_image";

// The socket of qemu, which makes it a moment after its start.
int connect_to(const std::string& path, steady_clock::time_point deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  while (steady_clock::now() < deadline) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return -1;
}

}  // namespace

bool NfsGuest::available() { return fs::exists(kGuestKernels); }

NfsGuest::NfsGuest() {
  std::string name = "/tmp/millrace-guest-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error(fmt::format("{}: {}", name, std::strerror(errno)));
  }
  directory_ = name;
  try {
    boot();
  } catch (...) {
    machine_.reset();
    fs::remove_all(directory_);
    throw;
  }
}

NfsGuest::~NfsGuest() {
  if (line_ >= 0) ::close(line_);
  machine_.reset();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void NfsGuest::boot() {
  const CommandResult made = run_command({kMakeImage, kGuestPackages, directory_});
  if (made.status != 0) throw std::runtime_error("no image for the guest: " + made.output);
  machine_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{"qemu-system-x86_64",
                               "-accel",
                               "tcg,thread=multi",
                               "-cpu",
                               "max",
                               "-smp",
                               "2",
                               "-m",
                               "1024",
                               "-display",
                               "none",
                               "-no-reboot",
                               "-nodefaults",
                               "-kernel",
                               directory_ + "/kernel",
                               "-initrd",
                               directory_ + "/initrd",
                               "-append",
                               "console=ttyS0 panic=-1 quiet",
                               "-serial",
                               fmt::format("file:{}/console", directory_),
                               "-serial",
                               fmt::format("unix:{}/line,server=on,wait=off", directory_),
                               "-netdev",
                               "user,id=net",
                               "-device",
                               "virtio-net-pci,netdev=net,romfile="},
      ChildOptions{.output_file = directory_ + "/qemu", .environment = {}});
  const auto deadline = steady_clock::now() + kBootMax;
  line_ = connect_to(directory_ + "/line", deadline);
  const std::string greeting = line_ < 0 ? "" : read_line(deadline);
  if (!greeting.starts_with("ready ")) {
    std::ostringstream said;
    said << std::ifstream(directory_ + "/qemu").rdbuf() << console();
    throw std::runtime_error("the guest does not boot: " + said.str());
  }
  kernel_ = greeting.substr(greeting.find(' ') + 1);
}

CommandResult NfsGuest::run(const std::string& script, std::chrono::milliseconds timeout) {
  const std::string line = base64_encode(as_bytes(script)) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t sent = ::send(line_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return {.status = 124, .output = "the guest is gone\n" + console()};
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  const std::string answer = read_line(steady_clock::now() + timeout);
  const std::size_t blank = answer.find(' ');
  if (blank == std::string::npos) {
    return {.status = 124, .output = "no answer of the guest\n" + console()};
  }
  const auto output = base64_decode(answer.substr(blank + 1));
  if (!output) return {.status = 124, .output = "not base64: " + answer};
  return {.status = std::stoi(answer), .output = std::string(as_text(*output))};
}

std::string NfsGuest::console() const {
  std::ostringstream text;
  text << std::ifstream(directory_ + "/console").rdbuf();
  const std::string all = text.str();
  return all.substr(all.size() - std::min(all.size(), kConsoleTailBytes));
}

std::string NfsGuest::read_line(steady_clock::time_point deadline) {
  while (true) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      std::erase(line, '\r');
      return line;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd waiting{.fd = line_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return "";
    char bytes[4096];
    const ssize_t count = ::recv(line_, bytes, sizeof bytes, 0);
    if (count <= 0) return "";
    received_.append(bytes, static_cast<std::size_t>(count));
  }
}

}  // namespace millrace::testing
