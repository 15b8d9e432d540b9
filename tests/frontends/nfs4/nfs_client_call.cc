#include "tests/frontends/nfs4/nfs_client_call.h"

#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace millrace::testing {
namespace {

constexpr std::uint32_t kRpcVersion = 2;
constexpr std::uint32_t kAuthNone = 0;
constexpr std::uint32_t kAuthSys = 1;
constexpr std::uint32_t kLastFragment = 0x80000000;
constexpr std::size_t kAnyBytes = std::size_t{1} << 31;

void write_credentials(XdrWriter& writer, const NfsCaller& caller) {
  if (!caller.is_known) {
    writer.u32(kAuthNone);
    writer.u32(0);
    return;
  }
  XdrWriter body;
  body.u32(1);  // Stamp.
  body.text("tests");
  body.u32(caller.uid);
  body.u32(caller.gid);
  body.u32(static_cast<std::uint32_t>(caller.groups.size()));
  for (const std::uint32_t group : caller.groups)
    body.u32(group);
  writer.u32(kAuthSys);
  writer.opaque(body.written());
}

std::int64_t read_seconds(XdrReader& reader) {
  const std::int64_t seconds = reader.i64();
  reader.u32();
  return seconds;
}

// Those that are a number, and no more.
const std::map<NfsAttribute, std::uint64_t NfsAttributeValues::*>& long_attributes() {
  using V = NfsAttributeValues;
  static const std::map<NfsAttribute, std::uint64_t V::*> members = {
      {NfsAttribute::kChange, &V::change},
      {NfsAttribute::kSize, &V::size},
      {NfsAttribute::kFileId, &V::file_id},
      {NfsAttribute::kMaxRead, &V::read_bytes_max},
      {NfsAttribute::kMaxWrite, &V::write_bytes_max},
      {NfsAttribute::kSpaceUsed, &V::space_used},
      {NfsAttribute::kMountedOnFileId, &V::mounted_on_file_id}};
  return members;
}

const std::map<NfsAttribute, std::uint32_t NfsAttributeValues::*>& short_attributes() {
  using V = NfsAttributeValues;
  static const std::map<NfsAttribute, std::uint32_t V::*> members = {
      {NfsAttribute::kFhExpireType, &V::expire_type},
      {NfsAttribute::kLeaseTime, &V::lease_seconds},
      {NfsAttribute::kMode, &V::mode},
      {NfsAttribute::kNumLinks, &V::links}};
  return members;
}

void read_attribute(XdrReader& reader, NfsAttribute attribute, NfsAttributeValues& into) {
  using enum NfsAttribute;
  if (const auto found = long_attributes().find(attribute); found != long_attributes().end()) {
    into.*found->second = reader.u64();
    return;
  }
  if (const auto found = short_attributes().find(attribute); found != short_attributes().end()) {
    into.*found->second = reader.u32();
    return;
  }
  switch (attribute) {
    case kSupportedAttrs:
      for (std::uint32_t words = reader.count(8); words > 0; --words)
        into.supported.push_back(reader.u32());
      return;
    case kType:
      into.type = reader.enumeration<NfsFileType>();
      return;
    case kFsid:
      into.fsid_major = reader.u64();
      into.fsid_minor = reader.u64();
      return;
    case kRdattrError:
      into.error = reader.enumeration<NfsStatus>();
      return;
    case kFilehandle:
      into.handle = reader.text(kNfsHandleBytesMax);
      return;
    case kOwner:
      into.owner = reader.text(kNfsOpaqueBytesMax);
      return;
    case kOwnerGroup:
      into.group = reader.text(kNfsOpaqueBytesMax);
      return;
    case kTimeAccess:
    case kTimeMetadata:
      read_seconds(reader);
      return;
    case kTimeModify:
      into.modified_seconds = read_seconds(reader);
      return;
    case kRawDev:
      reader.u64();
      return;
    default:
      throw std::runtime_error(
          fmt::format("the test client does not know attribute {}", fmt::underlying(attribute)));
  }
}

}  // namespace

void write_bitmap(XdrWriter& writer, std::initializer_list<NfsAttribute> attributes) {
  std::vector<std::uint32_t> words;
  for (const NfsAttribute attribute : attributes) {
    const auto number = static_cast<std::uint32_t>(attribute);
    if (words.size() <= number / 32) words.resize(number / 32 + 1);
    words[number / 32] |= std::uint32_t{1} << (number % 32);
  }
  writer.u32(static_cast<std::uint32_t>(words.size()));
  for (const std::uint32_t word : words)
    writer.u32(word);
}

void write_stateid(XdrWriter& writer, const NfsStateid& stateid) {
  writer.u32(stateid.seqid);
  writer.fixed(stateid.other);
}

NfsStateid read_stateid(XdrReader& reader) {
  NfsStateid stateid;
  stateid.seqid = reader.u32();
  stateid.other = reader.fixed_array<12>();
  return stateid;
}

bool NfsAttributeValues::has(NfsAttribute attribute) const {
  const auto number = static_cast<std::uint32_t>(attribute);
  return number / 32 < mask.size() && (mask[number / 32] >> (number % 32) & 1) != 0;
}

NfsAttributeValues read_attributes(XdrReader& reader) {
  NfsAttributeValues values;
  for (std::uint32_t words = reader.count(8); words > 0; --words)
    values.mask.push_back(reader.u32());
  XdrReader inside(reader.opaque(kAnyBytes));
  for (std::uint32_t number = 0; number < values.mask.size() * 32; ++number) {
    const auto attribute = static_cast<NfsAttribute>(number);
    if (values.has(attribute)) read_attribute(inside, attribute, values);
  }
  if (!inside.ok() || inside.remaining() != 0) {
    throw std::runtime_error("the attributes are not as long as they say");
  }
  return values;
}

NfsCall::NfsCall(std::uint32_t minor_version, const NfsCaller& caller, std::string_view tag) {
  writer_.u32(0);  // The record's mark, its transaction, and that it is a call: record() fills in.
  writer_.u32(0);
  writer_.u32(0);
  writer_.u32(kRpcVersion);
  writer_.u32(kNfsProgram);
  writer_.u32(kNfsVersion);
  writer_.u32(kNfsProcedureCompound);
  write_credentials(writer_, caller);
  writer_.u32(kAuthNone);
  writer_.u32(0);
  writer_.text(tag);
  writer_.u32(minor_version);
  count_ = writer_.mark();
  writer_.u32(0);
}

XdrWriter& NfsCall::op(std::uint32_t number) {
  set_operations(operations_ + 1);
  writer_.u32(number);
  return writer_;
}

XdrWriter& NfsCall::op(NfsOperation operation) { return op(static_cast<std::uint32_t>(operation)); }

void NfsCall::set_operations(std::uint32_t count) {
  operations_ = count;
  writer_.patch_u32(count_, count);
}

void NfsCall::append(ByteView bytes, std::uint32_t operations) {
  set_operations(operations_ + operations);
  writer_.fixed(bytes);
}

NfsCall& NfsCall::put_root_fh() {
  op(NfsOperation::kPutRootFh);
  return *this;
}

NfsCall& NfsCall::put_fh(std::string_view handle) {
  op(NfsOperation::kPutFh).text(handle);
  return *this;
}

NfsCall& NfsCall::get_fh() {
  op(NfsOperation::kGetFh);
  return *this;
}

NfsCall& NfsCall::save_fh() {
  op(NfsOperation::kSaveFh);
  return *this;
}

NfsCall& NfsCall::restore_fh() {
  op(NfsOperation::kRestoreFh);
  return *this;
}

NfsCall& NfsCall::lookup(std::string_view name) {
  op(NfsOperation::kLookup).text(name);
  return *this;
}

NfsCall& NfsCall::lookup_parent() {
  op(NfsOperation::kLookupP);
  return *this;
}

NfsCall& NfsCall::get_attr(std::initializer_list<NfsAttribute> attributes) {
  write_bitmap(op(NfsOperation::kGetAttr), attributes);
  return *this;
}

NfsCall& NfsCall::access(std::uint32_t bits) {
  op(NfsOperation::kAccess).u32(bits);
  return *this;
}

NfsCall& NfsCall::read_link() {
  op(NfsOperation::kReadLink);
  return *this;
}

NfsCall& NfsCall::read(const NfsStateid& stateid, std::uint64_t offset, std::uint32_t count) {
  XdrWriter& writer = op(NfsOperation::kRead);
  write_stateid(writer, stateid);
  writer.u64(offset);
  writer.u32(count);
  return *this;
}

NfsCall& NfsCall::read_dir(std::uint64_t cookie, NfsVerifier verifier, std::uint32_t dircount,
                           std::uint32_t maxcount, std::initializer_list<NfsAttribute> attributes) {
  XdrWriter& writer = op(NfsOperation::kReadDir);
  writer.u64(cookie);
  writer.fixed(verifier.value());
  writer.u32(dircount);
  writer.u32(maxcount);
  write_bitmap(writer, attributes);
  return *this;
}

NfsCall& NfsCall::open(const NfsOpenWish& wish) {
  XdrWriter& writer = op(NfsOperation::kOpen);
  writer.u32(wish.seqid);
  writer.u32(wish.access);
  writer.u32(wish.deny);
  writer.u64(wish.client.value());
  writer.text(wish.owner);
  writer.enumeration(NfsOpenType::kNoCreate);
  if (wish.name.empty()) {
    writer.enumeration(NfsOpenClaim::kFh);
  } else {
    writer.enumeration(NfsOpenClaim::kNull);
    writer.text(wish.name);
  }
  return *this;
}

NfsCall& NfsCall::close(const NfsStateid& stateid, std::uint32_t seqid) {
  XdrWriter& writer = op(NfsOperation::kClose);
  writer.u32(seqid);
  write_stateid(writer, stateid);
  return *this;
}

NfsCall& NfsCall::sequence(const NfsSessionId& session, std::uint32_t seqid, std::uint32_t slot,
                           std::uint32_t highest_slot, bool keep_reply) {
  XdrWriter& writer = op(NfsOperation::kSequence);
  writer.fixed(session.value());
  writer.u32(seqid);
  writer.u32(slot);
  writer.u32(highest_slot);
  writer.boolean(keep_reply);
  return *this;
}

std::vector<std::byte> NfsCall::record(std::uint32_t xid) const {
  const ByteView written = writer_.written();
  XdrWriter head;
  head.u32(kLastFragment | static_cast<std::uint32_t>(written.size() - 4));
  head.u32(xid);
  std::vector<std::byte> bytes(head.written().begin(), head.written().end());
  bytes.insert(bytes.end(), written.begin() + 8, written.end());
  return bytes;
}

NfsAnswer::NfsAnswer(ByteView reply) : reader_(reply), reply_(reply) { read_head(); }

void NfsAnswer::read_head() {
  constexpr std::uint32_t kReply = 1;
  xid_ = reader_.u32();
  if (reader_.u32() != kReply) throw std::runtime_error("what came is no reply");
  is_accepted_ = reader_.u32() == 0;
  if (is_accepted_) {
    reader_.u32();  // The verifier's flavour.
    verifier_ = reader_.text(kNfsOpaqueBytesMax);
    accept_status_ = reader_.u32();
  }
  if (!reader_.ok()) throw std::runtime_error("the reply is cut off");
  if (!is_accepted_ || accept_status_ != 0 || reader_.remaining() == 0) return;
  status_ = reader_.enumeration<NfsStatus>();
  reader_.text(kNfsTagBytesMax);
  operations_ = reader_.u32();
  if (!reader_.ok()) throw std::runtime_error("the compound's answer is cut off");
}

void NfsAnswer::keep() {
  kept_.assign(reply_.begin(), reply_.end());
  reply_ = kept_;
  reader_ = XdrReader(reply_);
  read_head();
}

NfsStatus NfsAnswer::next(NfsOperation operation) {
  const auto found = reader_.enumeration<NfsOperation>();
  const auto status = reader_.enumeration<NfsStatus>();
  if (!reader_.ok() || found != operation) {
    throw std::runtime_error(fmt::format("expected the result of operation {}, found {}{}",
                                         fmt::underlying(operation), fmt::underlying(found),
                                         reader_.ok() ? "" : ", and no more"));
  }
  return status;
}

XdrReader& NfsAnswer::good(NfsOperation operation) {
  const NfsStatus status = next(operation);
  if (status != NfsStatus::kOk) {
    throw std::runtime_error(fmt::format("operation {} has status {}", fmt::underlying(operation),
                                         fmt::underlying(status)));
  }
  return reader_;
}

}  // namespace millrace::testing
