#include <dirent.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "frontends/fuse/fuse_operations.h"

namespace millrace {
namespace {

// Offsets of the kernel: 1 is behind ".", 2 behind "..", and then the tree's cookies follow.
constexpr std::uint64_t kDots = 2;
// The most that the kernel asks for at a time.
constexpr std::uint32_t kListingBytesMax = 1024 * 1024;

std::uint32_t listed_type(NodeKind kind) {
  switch (kind) {
    case NodeKind::kDirectory:
      return DT_DIR;
    case NodeKind::kSymlink:
      return DT_LNK;
    case NodeKind::kFile:
      break;
  }
  return DT_REG;
}

// A listing in the kernel's form, no longer than asked for.
class FuseListing {
 public:
  FuseListing(std::uint32_t bytes_max, bool with_attributes)
      : bytes_max_(std::min(bytes_max, kListingBytesMax)), with_attributes_(with_attributes) {
    bytes_.reserve(bytes_max_);
  }

  // False when it does not fit any more. Without attributes the kernel asks for them by itself,
  // when somebody wants them.
  bool add(std::string_view name, std::uint64_t number, std::uint32_t type, std::uint64_t offset,
           const std::optional<fuse_entry_out>& attributes) {
    const std::size_t head = with_attributes_ ? sizeof(fuse_entry_out) : 0;
    const std::size_t length = FUSE_DIRENT_ALIGN(head + FUSE_NAME_OFFSET + name.size());
    if (bytes_.size() + length > bytes_max_) return false;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + length);
    if (with_attributes_ && attributes) put(at, &*attributes, sizeof(fuse_entry_out));
    fuse_dirent entry{};
    entry.ino = number;
    entry.off = offset;
    entry.namelen = static_cast<std::uint32_t>(name.size());
    entry.type = type;
    put(at + head, &entry, FUSE_NAME_OFFSET);
    put(at + head + FUSE_NAME_OFFSET, name.data(), name.size());
    return true;
  }
  ByteView bytes() const { return bytes_; }

 private:
  void put(std::size_t at, const void* from, std::size_t length) {
    std::memcpy(bytes_.data() + at, from, length);
  }

  const std::size_t bytes_max_;
  const bool with_attributes_;
  std::vector<std::byte> bytes_;
};

// "." and "..", whose attributes the kernel has.
Result<bool> list_dots(FuseCall& call, std::uint64_t offset, FuseListing& listing) {
  if (offset == 0 && !listing.add(".", call.node().value(), DT_DIR, 1, {})) return false;
  if (offset >= kDots) return true;
  const FuseConnection& connection = call.connection();
  NodeNumber parent = call.node();
  if (parent != connection.view.root) {
    MR_ASSIGN_OR_RETURN(parent, connection.parts.tree.parent(call.context(), call.node()));
  }
  return listing.add("..", parent.value(), DT_DIR, kDots, {});
}

Status list(FuseCall& call, std::uint64_t offset, FuseListing& listing) {
  MR_ASSIGN_OR_RETURN(const bool goes_on, list_dots(call, offset, listing));
  if (!goes_on) return {};
  const FuseConnection& connection = call.connection();
  const std::uint64_t cookie = offset > kDots ? offset - kDots : 0;
  return connection.parts.tree.read_directory(
      call.context(), call.node(), cookie, [&](const NodeEntry& child) {
        const NodeAttributes& node = child.attributes;
        std::optional<fuse_entry_out> attributes;
        if (child.has_attributes) attributes = connection.entry(call.node(), node);
        return listing.add(child.name, node.number.value(), listed_type(node.kind),
                           child.cookie + kDots, attributes);
      });
}

void answer_listing(FuseCall call, const FuseRequest& request, bool with_attributes) {
  const Result<fuse_read_in> in = request.body<fuse_read_in>();
  if (!in) return call.fail(in.error(), FuseAttempt::kNode);
  FuseListing listing(in->size, with_attributes);
  const Status status = list(call, in->offset, listing);
  // What is listed already goes out; the failure comes again with the next request.
  if (!status.ok() && listing.bytes().empty()) return call.fail(status, FuseAttempt::kNode);
  call.answer(listing.bytes());
}

}  // namespace

void fuse_readdir(FuseCall call, const FuseRequest& request) {
  answer_listing(std::move(call), request, false);
}

void fuse_readdirplus(FuseCall call, const FuseRequest& request) {
  answer_listing(std::move(call), request, true);
}

}  // namespace millrace
