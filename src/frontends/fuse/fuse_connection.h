#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/executor.h"
#include "base/request_context.h"
#include "frontends/fuse/fuse_callers.h"
#include "frontends/fuse/fuse_calls.h"
#include "frontends/fuse/fuse_device.h"
#include "frontends/fuse/fuse_errno.h"
#include "frontends/fuse/fuse_files.h"
#include "frontends/fuse/fuse_kernel.h"
#include "frontends/fuse/fuse_pins.h"
#include "frontends/fuse/fuse_replies.h"
#include "metrics/metrics.h"
#include "vfs/tree.h"

namespace millrace {

// How files are opened. The kernel takes one way for the life of a mount.
enum class FuseOpening : std::uint8_t {
  // The kernel tells us of every open and close, and reads complete files by itself.
  kPassthrough,
  // It tells us of none: a file in the page cache costs no request at all. For small files.
  kStateless,
};

// What a mount shows, and how.
struct FuseView {
  NodeNumber root{};
  // All below the root is inside one version, and so true for ever.
  bool is_immutable = false;
  FuseOpening opening = FuseOpening::kPassthrough;
  std::uint32_t uid = 0;  // Owner of all nodes: versions have none.
  std::uint32_t gid = 0;
};

// What a connection is made with. The referred-to outlive it.
struct FuseParts {
  Tree& tree;
  const Clock& clock;
  Executor& late_answers;  // Writes them. Whoever waits for a store would hold them up there.
  Metrics& metrics;
  FuseCallers& callers;
  Duration timeout{};  // Of a request.
  // Called once the mount has ended, by any thread. Must not wait.
  std::function<void()> ended = [] {};
};

// All that the answers to the kernel's requests are made from. Safe from any thread.
struct FuseConnection {
  FuseConnection(FuseDevice opened, OpenTable table, const FuseView& shown, const FuseParts& with)
      : device(std::move(opened)),
        view(shown),
        parts(with),
        replies(with.late_answers),
        files(with.tree, device, std::move(table), shown.opening == FuseOpening::kPassthrough) {}

  // The kernel calls the root of every mount 1.
  std::uint64_t kernel_number(NodeNumber node) const {
    return node == view.root ? FUSE_ROOT_ID : node.value();
  }
  NodeNumber node(std::uint64_t kernel_number) const {
    return kernel_number == FUSE_ROOT_ID ? view.root : NodeNumber(kernel_number);
  }
  fuse_attr attributes(const NodeAttributes& node) const;
  // A child of `directory`, with how long that may be believed.
  fuse_entry_out entry(NodeNumber directory, const NodeAttributes& child) const;
  // How long the kernel may believe what it was told, in seconds.
  static std::uint64_t seconds(NodeLifetime lifetime);
  // Names in a version lead to the same node for ever, or to none for ever.
  static NodeLifetime name_lifetime(NodeNumber directory) {
    return place_of(directory) == NodePlace::kVersion ? NodeLifetime::kForever
                                                      : NodeLifetime::kShort;
  }

  // For reading. Blocks when the file has to be opened.
  Result<std::shared_ptr<OpenFile>> file(const RequestContext& context, NodeNumber node) {
    if (std::shared_ptr<OpenFile> pinned = pins.file(node)) return pinned;
    return files.file(context, node);
  }

  const FuseDevice device;
  const FuseView view;
  const FuseParts parts;
  FuseReplies replies;
  FuseCalls calls;
  FuseFiles files;
  FusePins pins;
};

// One request that is being answered, from its arrival to its answer: exactly one, EIO if it is
// dropped. Move-only; one thread at a time owns it. In an attempt (fuse_attempt.h) that was refused
// something it is not answered, but handed back.
class FuseCall {
 public:
  FuseCall(FuseConnection& connection, const fuse_in_header& header);
  FuseCall(FuseCall&& other) noexcept;
  FuseCall& operator=(FuseCall&&) = delete;
  ~FuseCall();

  FuseConnection& connection() const { return *connection_; }
  const RequestContext& context() const { return context_; }
  std::uint64_t unique() const { return unique_; }
  NodeNumber node() const { return node_; }

  void answer(ByteView first = {}, ByteView second = {});
  template <class T>
  void answer_with(const T& value) {
    answer(std::as_bytes(std::span(&value, 1)));
  }
  void fail(const Status& status, FuseAttempt attempt);
  void fail_with(int error);

 private:
  // Where the answer goes; null when it was handed back instead.
  FuseConnection* end();

  FuseConnection* connection_;
  std::uint64_t unique_;
  NodeNumber node_;
  RequestContext context_;
};

}  // namespace millrace
