#include "frontends/fuse/fuse_operations.h"

namespace millrace {

void fuse_statfs(FuseCall call, const FuseRequest& /*request*/) {
  constexpr std::uint32_t kStatfsBlockBytes = 4096;
  constexpr std::uint32_t kNameBytesMax = 255;
  const Result<TreeUsage> usage = call.connection().parts.tree.usage(call.context(), call.node());
  if (!usage) return call.fail(usage.error(), FuseAttempt::kNode);
  fuse_statfs_out out{};
  out.st.bsize = out.st.frsize = kStatfsBlockBytes;
  out.st.blocks =
      (usage->bytes + kStatfsBlockBytes - 1) / kStatfsBlockBytes;  // All of them in use.
  out.st.files = usage->nodes;
  out.st.namelen = kNameBytesMax;
  call.answer_with(out);
}

}  // namespace millrace
