#include "frontends/fuse/fuse_connection.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "frontends/fuse/fuse_attempt.h"

namespace millrace {
namespace {

// As good as for ever, and far from where the kernel's arithmetic ends.
constexpr std::uint64_t kForeverSeconds = std::uint64_t{10} * 365 * 24 * 3600;
constexpr std::uint64_t kStatBlockBytes = 512;

std::uint32_t mode_of(const NodeAttributes& node) {
  switch (node.kind) {
    case NodeKind::kDirectory:
      return S_IFDIR | node.permissions;
    case NodeKind::kSymlink:
      return S_IFLNK | node.permissions;
    case NodeKind::kFile:
      break;
  }
  return S_IFREG | node.permissions;
}

}  // namespace

std::uint64_t FuseConnection::seconds(NodeLifetime lifetime) {
  if (lifetime == NodeLifetime::kForever) return kForeverSeconds;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(kNameLifetime).count());
}

fuse_attr FuseConnection::attributes(const NodeAttributes& node) const {
  using std::chrono::nanoseconds;
  using std::chrono::seconds;
  const auto modified = std::chrono::duration_cast<nanoseconds>(node.modified.time_since_epoch());
  const auto whole = std::chrono::floor<seconds>(modified);
  fuse_attr attr{};
  attr.ino = node.number.value();
  attr.size = node.size;
  attr.blocks = (node.size + kStatBlockBytes - 1) / kStatBlockBytes;
  attr.atime = attr.mtime = attr.ctime = static_cast<std::uint64_t>(whole.count());
  attr.atimensec = attr.mtimensec = attr.ctimensec =
      static_cast<std::uint32_t>((modified - whole).count());
  attr.mode = mode_of(node);
  attr.nlink = 1;
  attr.uid = view.uid;
  attr.gid = view.gid;
  attr.blksize = 128 * 1024;
  return attr;
}

fuse_entry_out FuseConnection::entry(NodeNumber directory, const NodeAttributes& child) const {
  fuse_entry_out out{};
  out.nodeid = kernel_number(child.number);
  out.entry_valid = seconds(name_lifetime(directory));
  out.attr_valid = seconds(child.lifetime);
  out.attr = attributes(child);
  return out;
}

FuseCall::FuseCall(FuseConnection& connection, const fuse_in_header& header)
    : connection_(&connection),
      unique_(header.unique),
      node_(connection.node(header.nodeid)),
      context_(
          connection.parts.clock.now() + connection.parts.timeout,
          connection.parts.callers.caller(header.uid, header.pid, connection.parts.clock.now())) {
  connection.calls.add(unique_, header.pid, context_.shared_cancellation());
}

FuseCall::FuseCall(FuseCall&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)),
      unique_(other.unique_),
      node_(other.node_),
      context_(other.context_) {}

FuseCall::~FuseCall() {
  if (connection_ != nullptr) fail_with(EIO);
}

FuseConnection* FuseCall::end() {
  if (FuseAtHandAttempt::take_back(*this)) return nullptr;
  return std::exchange(connection_, nullptr);
}

void FuseCall::answer(ByteView first, ByteView second) {
  FuseConnection* const connection = end();
  if (connection == nullptr) return;
  connection->device.answer(unique_, first, second);
  // Only now: who stops the session waits until no call is left.
  connection->calls.remove(unique_);
}

void FuseCall::fail(const Status& status, FuseAttempt attempt) {
  fail_with(fuse_errno(status, attempt, place_of(node_)));
}

void FuseCall::fail_with(int error) {
  FuseConnection* const connection = end();
  if (connection == nullptr) return;
  connection->device.fail(unique_, error);
  connection->calls.remove(unique_);
}

}  // namespace millrace
