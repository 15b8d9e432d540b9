#include "dataset/registry_writer.h"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

namespace millrace {

std::string WriterIdentity::describe() const {
  return fmt::format("{}@{}, process {}", user, host, pid);
}

WriterIdentity this_process_writer() {
  WriterIdentity writer{.user = std::to_string(::getuid()),
                        .host = "unnamed",
                        .pid = static_cast<std::uint64_t>(::getpid())};
  struct passwd entry{};
  struct passwd* found = nullptr;
  // An entry that does not fit is as good as none: the number stands for it.
  std::array<char, 16384> memory{};
  if (::getpwuid_r(::getuid(), &entry, memory.data(), memory.size(), &found) == 0 &&
      found != nullptr && found->pw_name[0] != '\0') {
    writer.user = found->pw_name;
  }
  struct utsname system{};
  if (::uname(&system) == 0 && system.nodename[0] != '\0') writer.host = system.nodename;
  return writer;
}

}  // namespace millrace
