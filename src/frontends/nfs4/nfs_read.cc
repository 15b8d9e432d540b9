#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cache/unit.h"
#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_status.h"
#include "frontends/nfs4/nfs_turn.h"
#include "platform/file.h"

namespace millrace {
namespace {

// Smaller ones cost less when they are copied.
constexpr std::uint64_t kSendfileBytesMin = 64 * kKiB;

// A reply that is kept is kept whole.
bool must_copy(NfsCompound& call) { return call.slot() != nullptr && call.slot()->keeps_reply(); }

NfsStatus write_read(NfsCompound& call, XdrPiece piece, bool at_end) {
  call.service().metrics.counter(MetricId::kNfsReadBytes).add(piece.size());
  call.count_read(piece.size());
  XdrWriter& writer = call.results();
  writer.boolean(at_end);
  if (piece.size() == 0 || must_copy(call)) {
    writer.opaque(piece.memory.bytes());
  } else {
    writer.attach(std::move(piece));
  }
  return NfsStatus::kOk;
}

// The bytes, which keep their share of the budget until they are sent.
Slice with_share(const Slice& bytes, NfsReadBudget::Share share) {
  using Kept = std::pair<Slice, NfsReadBudget::Share>;
  return Slice::borrow(bytes.bytes(), std::make_shared<Kept>(bytes, std::move(share)));
}

// A file whose open nobody checked: a client that reads without one, or a file that was not read
// lately. May wait.
NfsResult<std::shared_ptr<OpenFile>> open_to_read(NfsCompound& call) {
  const NfsResult<NfsNode> node = call.node();
  if (!node) return std::unexpected(node.error());
  if (node->attributes.kind == NodeKind::kDirectory) return std::unexpected(NfsStatus::kIsDir);
  if (node->attributes.kind == NodeKind::kSymlink) return std::unexpected(NfsStatus::kInval);
  if (const NfsStatus access = call.view().check(*node, {.read = true}); access != NfsStatus::kOk)
    return std::unexpected(access);
  Result<std::shared_ptr<OpenFile>> file =
      call.service().recent.file(call.context(), node->place.node);
  if (!file) return std::unexpected(nfs_status_of(file.error(), NfsAttempt::kNode));
  return *std::move(file);
}

bool is_special(const NfsStateid& stateid) {
  return stateid == kAnonymousStateid || stateid == bypass_stateid();
}

// The range as a part of a file that the kernel has in memory: neither read nor copied by us.
std::optional<XdrPiece> find_whole(NfsCompound& call, const std::shared_ptr<OpenFile>& file,
                                   ByteRange range) {
  if (range.length < kSendfileBytesMin || file->size() <= kSmallObjectBytesMax || must_copy(call))
    return std::nullopt;
  const NodeNumber node = call.current()->place.node;
  NfsWholeFiles& wholes = call.service().wholes;
  std::shared_ptr<const CompleteObject> whole = wholes.find(node);
  if (whole == nullptr) wholes.look(node, file, call.context());
  if (whole == nullptr || whole->size() != file->size() ||
      !is_in_memory(whole->descriptor(), range)) {
    return std::nullopt;
  }
  return XdrPiece{.memory = {}, .file = std::move(whole), .range = range};
}

NfsStatus read_from(NfsCompound& call, const std::shared_ptr<OpenFile>& file, std::uint64_t offset,
                    std::uint32_t count) {
  const std::uint64_t size = file->size();
  if (offset >= size) return write_read(call, {}, true);
  const ByteRange range{offset, std::min<std::uint64_t>(count, size - offset)};
  const bool at_end = range.end() == size;
  if (range.empty()) return write_read(call, {}, at_end);
  if (std::optional<XdrPiece> whole = find_whole(call, file, range))
    return write_read(call, *std::move(whole), at_end);
  Completion<Slice> done = call.later<Slice>([at_end](NfsCompound& later, Result<Slice> bytes) {
    if (!bytes) return nfs_status_of(bytes.error(), NfsAttempt::kData);
    return write_read(later, {.memory = std::move(*bytes)}, at_end);
  });
  call.service().reads.reserve(
      call.connection().id(), range.length, call.service().work,
      [file, range, context = call.context(), done = std::move(done)](auto share) mutable {
        file->read(context, range,
                   Completion<Slice>(inline_executor(),
                                     [done = std::move(done), share](Result<Slice> bytes) mutable {
                                       if (bytes) bytes = with_share(*bytes, std::move(share));
                                       done.complete(std::move(bytes));
                                     }));
      });
  return NfsStatus::kOk;
}

NfsStatus check_stateid(NfsCompound& call, const NfsStateid& stateid, NodeNumber node) {
  if (call.slot() == nullptr) {
    const NfsStatus status =
        call.service().state.clients40().check(stateid, node, kShareAccessRead);
    // So that the read is counted for its client.
    if (status == NfsStatus::kOk && !is_special(stateid)) (void)client_of(call, stateid);
    return status;
  }
  return call.slot()->session().client().files().check(stateid, node, kShareAccessRead);
}

}  // namespace

NfsStatus nfs_read(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const NfsStateid sent = read_nfs_stateid(reader);
  const std::uint64_t offset = reader.u64();
  const std::uint32_t count = std::min(reader.u32(), kNfsReadBytesMax);
  if (!reader.ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  if (!stateid) return stateid.error();

  // Whoever has the file open was allowed to read it then.
  std::shared_ptr<OpenFile> file;
  if (!is_special(*stateid)) file = call.service().recent.known(place->node);
  const NfsStatus status = check_stateid(call, *stateid, place->node);
  if (status != NfsStatus::kOk) return status;
  if (file == nullptr) {
    NfsResult<std::shared_ptr<OpenFile>> opened = open_to_read(call);
    if (!opened) return opened.error();
    file = *std::move(opened);
  }
  return read_from(call, file, offset, count);
}

}  // namespace millrace
