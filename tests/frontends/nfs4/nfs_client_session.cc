#include "tests/frontends/nfs4/nfs_client_session.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace millrace::testing {
namespace {

constexpr std::uint32_t kCallbackProgram = 0x40000000;

void write_channel(XdrWriter& writer, std::uint32_t operations, std::uint32_t requests) {
  writer.u32(0);
  writer.u32(kNfsReadBytesMax + 1044);  // As Linux asks: 1 MiB and what stands around it.
  writer.u32(kNfsReadBytesMax + 904);
  writer.u32(7584);
  writer.u32(operations);
  writer.u32(requests);
  writer.u32(0);
}

NfsChannelAttributes read_channel(XdrReader& reader) {
  NfsChannelAttributes attributes;
  attributes.header_pad_bytes = reader.u32();
  attributes.request_bytes_max = reader.u32();
  attributes.response_bytes_max = reader.u32();
  attributes.cached_response_bytes_max = reader.u32();
  attributes.operations_max = reader.u32();
  attributes.requests_max = reader.u32();
  for (std::uint32_t rdma = reader.count(1); rdma > 0; --rdma)
    reader.u32();
  return attributes;
}

// Of OPEN's answer; what there is to say about delegations that were not given is passed over.
void read_open_delegation(XdrReader& reader, NfsOpened& into) {
  into.delegation = reader.enumeration<NfsDelegation>();
  switch (into.delegation) {
    case NfsDelegation::kNone:
      return;
    case NfsDelegation::kRead:
      into.delegation_stateid = read_stateid(reader);
      reader.boolean();  // Recalled already.
      for (int i = 0; i < 3; ++i)
        reader.u32();  // nfsace4: type, flag, mask.
      reader.text(kNfsOpaqueBytesMax);
      return;
    case NfsDelegation::kNoneExt: {
      const auto why = reader.enumeration<NfsWhyNoDelegation>();
      if (why == NfsWhyNoDelegation::kContention || why == NfsWhyNoDelegation::kResource) {
        reader.boolean();
      }
      return;
    }
    case NfsDelegation::kWrite:
      break;
  }
  throw std::runtime_error("a delegation that nobody asked for");
}

}  // namespace

NfsOpened read_opened(NfsAnswer& answer) {
  XdrReader& reader = answer.good(NfsOperation::kOpen);
  NfsOpened opened;
  opened.stateid = read_stateid(reader);
  reader.boolean();
  reader.u64();
  reader.u64();
  opened.flags = reader.u32();
  for (std::uint32_t words = reader.count(8); words > 0; --words)
    reader.u32();
  read_open_delegation(reader, opened);
  return opened;
}

NfsSession::NfsSession(NfsConnection& connection, NfsSessionOptions options)
    : connection_(connection), options_(std::move(options)), seqids_(options_.slots) {
  create_session(exchange_id());
  NfsCall done = call();
  done.op(NfsOperation::kReclaimComplete).boolean(false);
  run(done).good(NfsOperation::kReclaimComplete);
}

std::uint32_t NfsSession::exchange_id() {
  NfsCall call(options_.minor_version, options_.caller);
  XdrWriter& writer = call.op(NfsOperation::kExchangeId);
  writer.fixed(options_.verifier.value());
  writer.text(options_.owner);
  writer.u32(0);  // Flags.
  writer.enumeration(NfsStateProtect::kNone);
  writer.u32(0);  // No implementation id.
  NfsAnswer answer = connection_.run(call);
  XdrReader& reader = answer.good(NfsOperation::kExchangeId);
  client_ = NfsClientId(reader.u64());
  const std::uint32_t seqid = reader.u32();
  reader.u32();
  if (reader.enumeration<NfsStateProtect>() != NfsStateProtect::kNone) {
    throw std::runtime_error("state protection that nobody asked for");
  }
  server_.minor_id = reader.u64();
  server_.major_id = reader.text(kNfsOpaqueBytesMax);
  server_.scope = reader.text(kNfsOpaqueBytesMax);
  return seqid;
}

void NfsSession::create_session(std::uint32_t seqid) {
  NfsCall call(options_.minor_version, options_.caller);
  XdrWriter& writer = call.op(NfsOperation::kCreateSession);
  writer.u64(client_.value());
  writer.u32(seqid);
  writer.u32(options_.backchannel ? kSessionBackChannel : 0);
  write_channel(writer, 16, options_.slots);
  write_channel(writer, 2, 1);
  writer.u32(kCallbackProgram);
  writer.u32(1);  // One flavour for callbacks: none.
  writer.u32(0);
  NfsAnswer answer = connection_.run(call);
  XdrReader& reader = answer.good(NfsOperation::kCreateSession);
  id_ = NfsSessionId(reader.fixed_array<16>());
  reader.u32();
  create_flags_ = reader.u32();
  const NfsChannelAttributes fore = read_channel(reader);
  read_channel(reader);
  if (!answer.is_finished()) throw std::runtime_error("CREATE_SESSION has an odd answer");
  seqids_.resize(std::min(options_.slots, fore.requests_max));
  highest_slot_ = fore.requests_max - 1;
}

NfsCall NfsSession::call(std::uint32_t slot, bool keep_reply) {
  NfsCall call(options_.minor_version, options_.caller);
  call.sequence(id_, ++seqids_.at(slot), slot, slots() - 1, keep_reply);
  return call;
}

void NfsSession::send(std::uint32_t slot, const NfsCall& call) {
  slots_[connection_.send(call)] = slot;
}

void NfsSession::read_sequence(NfsAnswer& answer) {
  XdrReader& reader = answer.good(NfsOperation::kSequence);
  if (reader.fixed_array<16>() != id_.value()) throw std::runtime_error("another session");
  reader.u32();
  reader.u32();
  reader.u32();
  highest_slot_ = reader.u32();
  status_flags_ = reader.u32();
}

std::pair<std::uint32_t, NfsAnswer> NfsSession::receive() {
  NfsAnswer answer = connection_.receive();
  const auto found = slots_.find(answer.xid());
  if (found == slots_.end()) throw std::runtime_error("a reply to nothing");
  const std::uint32_t slot = found->second;
  slots_.erase(found);
  read_sequence(answer);
  return {slot, std::move(answer)};
}

NfsAnswer NfsSession::run(const NfsCall& call) { return run_over(connection_, call); }

NfsAnswer NfsSession::run_over(NfsConnection& connection, const NfsCall& call) {
  NfsAnswer answer = connection.run(call);
  read_sequence(answer);
  return answer;
}

std::string NfsSession::lookup(std::string_view path) {
  NfsCall call = this->call();
  call.put_root_fh();
  std::size_t names = 0;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    call.lookup(path.substr(1, end - 1));
    path.remove_prefix(end);
    ++names;
  }
  NfsAnswer answer = run(call.get_fh());
  answer.good(NfsOperation::kPutRootFh);
  for (; names > 0; --names)
    answer.good(NfsOperation::kLookup);
  return std::string(answer.good(NfsOperation::kGetFh).text(kNfsHandleBytesMax));
}

NfsAttributeValues NfsSession::attributes(const std::string& handle,
                                          std::initializer_list<NfsAttribute> wanted) {
  NfsAnswer answer = run(call().put_fh(handle).get_attr(wanted));
  answer.good(NfsOperation::kPutFh);
  return read_attributes(answer.good(NfsOperation::kGetAttr));
}

NfsOpened NfsSession::open(const std::string& handle, const NfsOpenWish& wish) {
  NfsAnswer answer = run(call(0, true).put_fh(handle).open(wish).get_fh());
  answer.good(NfsOperation::kPutFh);
  NfsOpened opened = read_opened(answer);
  opened.handle = answer.good(NfsOperation::kGetFh).text(kNfsHandleBytesMax);
  return opened;
}

void NfsSession::close(const std::string& handle, const NfsStateid& stateid) {
  NfsAnswer answer = run(call(0, true).put_fh(handle).close(stateid));
  answer.good(NfsOperation::kPutFh);
  answer.good(NfsOperation::kClose);
}

std::string NfsSession::read_file(const std::string& handle) {
  std::string content;
  while (true) {
    NfsAnswer answer = run(call().put_fh(handle).read({}, content.size(), kNfsReadBytesMax));
    answer.good(NfsOperation::kPutFh);
    XdrReader& reader = answer.good(NfsOperation::kRead);
    const bool is_end = reader.boolean();
    const std::string_view bytes = reader.text(kNfsReadBytesMax);
    content += bytes;
    if (is_end) return content;
    if (bytes.empty()) throw std::runtime_error("nothing was read, and it is not the end");
  }
}

std::vector<NfsListed> NfsSession::list(const std::string& directory, std::uint32_t reply_bytes_max,
                                        std::initializer_list<NfsAttribute> wanted) {
  std::vector<NfsListed> entries;
  NfsVerifier verifier;
  while (true) {
    const std::uint64_t cookie = entries.empty() ? 0 : entries.back().cookie;
    NfsAnswer answer = run(call().put_fh(directory).read_dir(cookie, verifier, reply_bytes_max,
                                                             reply_bytes_max, wanted));
    answer.good(NfsOperation::kPutFh);
    XdrReader& reader = answer.good(NfsOperation::kReadDir);
    verifier = NfsVerifier(reader.fixed_array<8>());
    while (reader.boolean()) {
      NfsListed entry;
      entry.cookie = reader.u64();
      entry.name = reader.text(kNfsNameBytesMax);
      entry.attributes = read_attributes(reader);
      entries.push_back(std::move(entry));
    }
    if (reader.boolean()) return entries;
    if (!answer.is_finished()) throw std::runtime_error("READDIR has an odd answer");
  }
}

void NfsSession::destroy() {
  NfsCall session(options_.minor_version, options_.caller);
  session.op(NfsOperation::kDestroySession).fixed(id_.value());
  connection_.run(session).good(NfsOperation::kDestroySession);
  NfsCall client(options_.minor_version, options_.caller);
  client.op(NfsOperation::kDestroyClientId).u64(client_.value());
  connection_.run(client).good(NfsOperation::kDestroyClientId);
}

}  // namespace millrace::testing
