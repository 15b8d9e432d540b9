#include <algorithm>

#include "frontends/nfs4/nfs_getattr.h"
#include "frontends/nfs4/nfs_listed_attributes.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

// 0 is the beginning, and 1 and 2 are reserved: the tree's cookies follow.
constexpr std::uint64_t kReservedCookies = 2;
// The end of the list, and whether it is that of the directory.
constexpr std::uint64_t kListEndBytes = 8;
// The verifier, and the end of a list without entries.
constexpr std::uint32_t kListBytesMin = 16;
// Besides the entries, in the answer of a COMPOUND.
constexpr std::uint64_t kListRoomBytes = 1024;

// A directory that has so many will fill the answer.
constexpr std::uint64_t kManyEntries = 64;

struct ReadDirArguments {
  std::uint64_t cookie = 0;
  std::uint64_t verifier = 0;
  std::uint32_t bytes_max = 0;
  NfsBitmap wanted;
};

NfsResult<ReadDirArguments> read_arguments(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  ReadDirArguments arguments;
  arguments.cookie = reader.u64();
  arguments.verifier = reader.u64();
  reader.u32();  // How much of it may be names: only a hint.
  arguments.bytes_max = reader.u32();
  arguments.wanted = NfsBitmap::read(reader);
  if (!reader.ok()) return std::unexpected(NfsStatus::kBadXdr);
  if (arguments.wanted.contains_any(kNfsWriteOnlyAttributes))
    return std::unexpected(NfsStatus::kInval);
  if (arguments.cookie > 0 && arguments.cookie <= kReservedCookies)
    return std::unexpected(NfsStatus::kBadCookie);
  // Ours is always 0: cookies never go stale.
  if (arguments.verifier != 0)
    return std::unexpected(arguments.cookie == 0 ? NfsStatus::kInval : NfsStatus::kNotSame);
  return arguments;
}

// How large the answer of the whole COMPOUND may become.
std::uint64_t answer_bytes_max(NfsCompound& call) {
  std::uint64_t bytes_max = kNfsRecordBytesMax;
  if (NfsSlotUse* const slot = call.slot()) {
    const NfsChannelAttributes& terms = slot->session().terms().fore;
    bytes_max =
        std::min<std::uint64_t>(bytes_max, slot->keeps_reply() ? terms.cached_response_bytes_max
                                                               : terms.response_bytes_max);
  }
  return bytes_max;
}

// Entries as far as they fit.
class Listing {
 public:
  Listing(XdrWriter& results, std::uint64_t size_max, const NfsAttributeWriter& attributes,
          const NfsBitmap& wanted)
      : results_(results), size_max_(size_max), attributes_(attributes, wanted) {}

  bool add(std::string_view name, const NfsNode& child, std::uint64_t cookie) {
    const XdrWriter::Mark before = results_.mark();
    results_.boolean(true);
    results_.u64(cookie + kReservedCookies);
    results_.text(name);
    attributes_.write(results_, child);
    if (results_.size() + kListEndBytes > size_max_) {
      results_.rewind(before);
      full_ = true;
      return false;
    }
    if (++entries_ == kManyEntries) results_.reserve(size_max_ - results_.size());
    return true;
  }
  // NfsListedAttributes::lacks().
  bool lacks(const NfsNode& child) const { return attributes_.lacks(child); }
  bool full() const { return full_; }
  std::uint64_t entries() const { return entries_; }

 private:
  XdrWriter& results_;
  const std::uint64_t size_max_;
  NfsListedAttributes attributes_;
  std::uint64_t entries_ = 0;
  bool full_ = false;
};

}  // namespace

NfsStatus nfs_readdir(NfsCompound& call) {
  const NfsResult<ReadDirArguments> arguments = read_arguments(call);
  if (!arguments) return arguments.error();
  const NfsResult<NfsNode> directory = call.node();
  if (!directory) return directory.error();
  if (directory->attributes.kind != NodeKind::kDirectory) return NfsStatus::kNotDir;
  if (const NfsStatus access = call.view().check(*directory, {.read = true});
      access != NfsStatus::kOk) {
    return access;
  }
  if (arguments->bytes_max < kListBytesMin) return NfsStatus::kTooSmall;

  XdrWriter& results = call.results();
  const std::uint64_t size_max =
      std::min(results.size() + arguments->bytes_max, answer_bytes_max(call) - kListRoomBytes);
  results.u64(0);
  const NfsAttributeWriter attributes = nfs_attribute_writer(call, arguments->wanted, *directory);
  Listing listing(results, size_max, attributes, arguments->wanted);
  const std::uint64_t after = arguments->cookie == 0 ? 0 : arguments->cookie - kReservedCookies;
  NfsStatus unknown = NfsStatus::kOk;
  const auto show = [&](std::string_view name, const NfsNode& child, std::uint64_t cookie) {
    if (!listing.lacks(child)) return listing.add(name, child, cookie);
    const NfsResult<NfsNode> whole = call.view().node(call.context(), child.place);
    if (!whole) unknown = whole.error();
    return whole && listing.add(name, *whole, cookie);
  };
  NfsStatus status = call.view().read_directory(call.context(), directory->place, after, show);
  if (status == NfsStatus::kOk) status = unknown;
  // What is listed already goes out; the failure comes again with the next request.
  if (status != NfsStatus::kOk && listing.entries() == 0) return status;
  if (listing.full() && listing.entries() == 0) return NfsStatus::kTooSmall;
  results.boolean(false);
  results.boolean(status == NfsStatus::kOk && !listing.full());
  return NfsStatus::kOk;
}

}  // namespace millrace
