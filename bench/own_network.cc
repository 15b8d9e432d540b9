#include "bench/own_network.h"

#include <arpa/inet.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <net/if.h>

#include "platform/file.h"

namespace millrace::bench {
namespace {

constexpr const char* kCongestionSetting = "/proc/sys/net/ipv4/tcp_congestion_control";

void set_interface(unsigned long what, ifreq request, const char* name) {
  const File socket =
      File::adopt(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "network interfaces");
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  if (::ioctl(socket.descriptor(), what, &request) != 0)
    throw std::runtime_error(fmt::format("loopback stays down: {}", std::strerror(errno)));
}

// A network begins with a loopback that is down. It gets a second address, because where there is
// none but 127.0.0.1 the C library takes IPv4 for switched off, and peers do not start.
void raise_loopback() {
  ifreq up{};
  up.ifr_flags = IFF_UP;
  set_interface(SIOCSIFFLAGS, up, "lo");
  ifreq address{};
  sockaddr_in other{};
  other.sin_family = AF_INET;
  ::inet_pton(AF_INET, "192.0.2.1", &other.sin_addr);
  std::memcpy(&address.ifr_addr, &other, sizeof other);
  set_interface(SIOCSIFADDR, address, "lo:1");
}

// Networks other than the first may only have a congestion control by which everybody may pace
// himself. That list is changed for the moment in which ours is made.
class AllowedForAMoment {
 public:
  explicit AllowedForAMoment(const std::string& congestion)
      : file_("/proc/sys/net/ipv4/tcp_allowed_congestion_control", std::ios::in | std::ios::out) {
    std::getline(file_, before_);
    write(before_ + " " + congestion);
  }
  ~AllowedForAMoment() { write(before_); }
  AllowedForAMoment(const AllowedForAMoment&) = delete;
  AllowedForAMoment& operator=(const AllowedForAMoment&) = delete;

 private:
  void write(const std::string& allowed) {
    file_.clear();
    file_.seekp(0);
    file_ << allowed << std::flush;
  }

  std::fstream file_;
  std::string before_;
};

}  // namespace

std::string congestion_control() {
  std::string name;
  std::ifstream(kCongestionSetting) >> name;
  return name;
}

void enter_own_network(const std::string& congestion) {
  const AllowedForAMoment allowed(congestion);
  if (::unshare(CLONE_NEWNET) != 0) {
    fmt::print("no network of its own ({}): TCP is this machine's\n", std::strerror(errno));
    return;
  }
  raise_loopback();
  std::ofstream(kCongestionSetting) << congestion << std::flush;
  if (congestion_control() != congestion) {
    throw std::runtime_error(
        fmt::format("this kernel has no congestion control '{}'; see "
                    "/proc/sys/net/ipv4/tcp_available_congestion_control",
                    congestion));
  }
}

}  // namespace millrace::bench
