#include "frontends/fuse/fuse_init.h"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::uint32_t kMinorMin = 31;  // Linux 5.4: reads of 1 MiB, listings that are kept.
constexpr std::uint32_t kMinorMax = 40;  // Linux 6.9: passthrough.
constexpr std::uint32_t kReadBytesMax = 1024 * 1024;
constexpr std::uint32_t kPageBytes = 4096;
// The least that the kernel takes. Nothing is written.
constexpr std::uint32_t kWriteBytesMax = 4096;
// Reads by way of the page cache that the kernel sends side by side, those that somebody waits for
// and those ahead of readers. The most that it takes: those that wait for a store which hangs must
// not hold up others.
constexpr std::uint16_t kReadsMax = 65535;
// From here on it sends none ahead of readers. Its own 9 are too few for a store far away.
constexpr std::uint16_t kReadsAheadMax = 192;

// Not FUSE_ASYNC_DIO: whoever reads with O_DIRECT could then not be killed before the answer.
std::uint64_t wanted_features(const FuseView& view) {
  std::uint64_t features = FUSE_ASYNC_READ | FUSE_EXPORT_SUPPORT | FUSE_DO_READDIRPLUS |
                           FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_INIT_EXT |
                           FUSE_NO_OPENDIR_SUPPORT | FUSE_NO_OPEN_SUPPORT | fuse_kernel::kHasResend;
  // Aliases are symlinks that move.
  if (view.is_immutable) features |= FUSE_CACHE_SYMLINKS;
  if (view.opening == FuseOpening::kPassthrough) features |= fuse_kernel::kPassthrough;
  return features;
}

}  // namespace

Result<fuse_kernel::InitOut> fuse_init_answer(const FuseRequest& request, const FuseView& view) {
  // Older kernels send less; the rest stays 0.
  constexpr std::size_t kOldBytes = 16;
  MR_ASSIGN_OR_RETURN(const auto old, (request.body<std::array<std::byte, kOldBytes>>()));
  fuse_init_in in{};
  std::memcpy(&in, old.data(), kOldBytes);
  if (in.major != FUSE_KERNEL_VERSION || in.minor < kMinorMin) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the kernel speaks FUSE {}.{}; {}.{} (Linux 5.4) or newer is needed",
                               in.major, in.minor, FUSE_KERNEL_VERSION, kMinorMin));
  }
  if ((in.flags & FUSE_INIT_EXT) != 0) {
    MR_ASSIGN_OR_RETURN(in, request.body<fuse_init_in>());
  }
  const std::uint64_t offered = in.flags | (std::uint64_t{in.flags2} << 32);
  const std::uint64_t features = offered & wanted_features(view);

  fuse_kernel::InitOut out;
  out.major = FUSE_KERNEL_VERSION;
  out.minor = std::min(in.minor, kMinorMax);
  out.max_readahead = kReadBytesMax;
  out.flags = static_cast<std::uint32_t>(features);
  out.flags2 = static_cast<std::uint32_t>(features >> 32);
  out.max_background = kReadsMax;
  out.congestion_threshold = kReadsAheadMax;
  out.max_write = kWriteBytesMax;
  out.time_gran = 1;
  out.max_pages = kReadBytesMax / kPageBytes;
  // Files that are handed over lie on a plain file system, not on one that is itself stacked.
  if ((features & fuse_kernel::kPassthrough) != 0) out.max_stack_depth = 1;
  return out;
}

}  // namespace millrace
