#include "platform/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

#include <fmt/format.h>

#include "platform/file.h"

namespace millrace {

std::string describe_this_process(std::string_view program) {
  // Not gethostname(2), which may leave a long name without its end.
  struct utsname system{};
  const bool known = ::uname(&system) == 0 && system.nodename[0] != '\0';
  return fmt::format("{}, process {} on {}", program, ::getpid(),
                     known ? system.nodename : "an unnamed host");
}

std::uint64_t resident_bytes() {
  // Size, then resident, in pages: proc(5).
  const auto file = File::open("/proc/self/statm", O_RDONLY);
  std::array<std::byte, 128> bytes{};
  const auto size = file ? file->read_at(0, bytes) : Result<std::size_t>(0);
  if (!size || *size == 0) return 0;
  std::string_view text = as_text(ByteView(bytes).first(*size));
  text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  std::uint64_t pages = 0;
  std::from_chars(text.data(), text.data() + text.size(), pages);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void make_room_for_descriptors() {
  constexpr std::size_t kDescriptors = 4096;
  const File root = File::adopt(::open("/", O_PATH | O_CLOEXEC), "/");
  const auto last = static_cast<int>(std::min(descriptor_limit(), kDescriptors)) - 1;
  // The table stays as large when the highest is closed again.
  const File highest = File::adopt(::fcntl(root.descriptor(), F_DUPFD_CLOEXEC, last), "/");
}

std::size_t descriptor_limit() {
  rlimit limit{};
  // What POSIX promises to everybody.
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : _POSIX_OPEN_MAX;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  make_room_for_descriptors();
}

}  // namespace millrace
