#include "frontends/fuse/fuse_passthrough.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

bool has_sys_admin() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

}  // namespace

Status passthrough_support() {
  utsname system{};
  ::uname(&system);
  int major = 0;
  int minor = 0;
  std::sscanf(system.release, "%d.%d", &major, &minor);  // NOLINT(cert-err34-c): 0.0 is "old".
  if (std::pair(major, minor) < std::pair(6, 9)) {
    return {StatusCode::kUnsupported,
            fmt::format("FUSE passthrough needs Linux 6.9, and this is {}", system.release)};
  }
  if (!has_sys_admin()) {
    return {StatusCode::kPermissionDenied,
            "FUSE passthrough needs root, or CAP_SYS_ADMIN in a container"};
  }
  return {};
}

}  // namespace millrace
