#include "platform/process.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

namespace millrace {

std::string describe_this_process(std::string_view program) {
  // Not gethostname(2), which may leave a long name without its end.
  struct utsname system{};
  const bool known = ::uname(&system) == 0 && system.nodename[0] != '\0';
  return fmt::format("{}, process {} on {}", program, ::getpid(),
                     known ? system.nodename : "an unnamed host");
}

}  // namespace millrace
