#include <algorithm>

#include "base/siphash.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

// Two requests that differ only behind this are taken for the same.
constexpr std::size_t kFingerprintBytesMax = 4096;

// Of all that follows SEQUENCE. A client that errs gains nothing by a collision, so the key is no
// secret.
std::uint64_t fingerprint_of(XdrReader rest) {
  const std::size_t from = rest.position();
  const std::size_t size = std::min(rest.remaining(), kFingerprintBytesMax);
  return siphash({rest.remaining(), 0}, rest.between(from, from + size));
}

}  // namespace

NfsStatus nfs_sequence(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const NfsSessionId id(reader.fixed_array<16>());
  NfsSequenceRequest request;
  request.call.sequence = reader.u32();
  request.call.slot = reader.u32();
  reader.u32();  // The highest slot that it uses: they are kept whatever it says.
  request.cache_this = reader.boolean();
  if (!reader.ok()) return NfsStatus::kBadXdr;
  request.call.fingerprint = fingerprint_of(reader);
  request.operations = call.operations();
  request.request_bytes = call.record_bytes();

  const std::shared_ptr<NfsSession> session = call.service().state.sessions().find(id);
  if (session == nullptr) return NfsStatus::kBadSession;
  auto begun = session->begin(request);
  if (!begun) return begun.error();
  NfsSequenceAnswer answer;
  if (auto* const use = std::get_if<NfsSlotUse>(&*begun)) {
    answer = use->answer();
    call.begin_slot(std::move(*use));
  } else {
    NfsRetry& retry = std::get<NfsRetry>(*begun);
    answer = retry.answer;
    call.retry(std::move(retry.reply));
  }
  XdrWriter& writer = call.results();
  writer.fixed(id.value());
  writer.u32(request.call.sequence);
  writer.u32(request.call.slot);
  writer.u32(answer.highest_slot);
  writer.u32(answer.target_highest_slot);
  writer.u32(answer.status_flags);
  return NfsStatus::kOk;
}

}  // namespace millrace
