#include "frontends/nfs4/nfs_callback.h"

#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "frontends/nfs4/nfs_state_numbers.h"

namespace millrace {
namespace {

Status check_callback_answer(const Result<Slice>& record) {
  if (!record) return record.error();
  XdrReader reader(record->bytes());
  const Result<RpcAnswer> answer = read_rpc_answer(reader);
  return answer ? answer->outcome : answer.error();
}

RpcCall callback_of(const NfsSession& session, std::uint32_t procedure) {
  return {
      .program = session.terms().callback_program,
      .version = kNfsCallbackVersion,
      .procedure = procedure,
      .caller = {
          .flavour = RpcFlavour::kSys, .credentials = {.uid = 0, .gid = 0}, .machine = "millrace"}};
}

// CB_SEQUENCE and CB_RECALL_ANY for all read delegations.
std::string recall_arguments(const NfsSession& session, std::uint32_t number) {
  constexpr std::uint32_t kSlot = 0;
  constexpr std::uint32_t kReadDelegations = 1U << 0;
  XdrWriter writer;
  writer.text("");
  writer.u32(session.terms().minor_version);
  writer.u32(0);  // An id that only 4.0 looks at.
  writer.u32(2);
  writer.u32(kNfsCallbackSequence);
  writer.fixed(session.id().value());
  writer.u32(number);
  writer.u32(kSlot);
  writer.u32(kSlot);
  writer.boolean(false);
  writer.u32(0);  // No calls that it refers to.
  writer.u32(kNfsCallbackRecallAny);
  writer.u32(0);  // How many may be kept.
  writer.u32(1);
  writer.u32(kReadDelegations);
  return std::string(as_text(writer.written()));
}

// Whether CB_SEQUENCE was counted, whatever followed.
bool counts_callback(const Result<Slice>& record) {
  if (!record) return false;
  XdrReader reader(record->bytes());
  const Result<RpcAnswer> answer = read_rpc_answer(reader);
  if (!answer || !answer->outcome.ok()) return false;
  reader.u32();  // The status of all.
  reader.text(kNfsTagBytesMax);
  const bool answered = reader.u32() > 0 && reader.u32() == kNfsCallbackSequence;
  return answered && reader.enumeration<NfsStatus>() == NfsStatus::kOk && reader.ok();
}

}  // namespace

void recall_nfs_delegations(const std::shared_ptr<RpcConnection>& connection,
                            const std::shared_ptr<NfsSession>& session) {
  const std::optional<std::uint32_t> number = session->begin_callback();
  if (!number) return;
  connection->call(
      callback_of(*session, kNfsCallbackCompound), recall_arguments(*session, *number),
      Completion<Slice>(inline_executor(), [connection, session](const Result<Slice>& record) {
        const bool counted = counts_callback(record);
        if (!counted) {
          log_info("a client does not hear that delegations are recalled",
                   {{"client", connection->peer().to_string()}});
        }
        if (session->end_callback(counted) && counted) recall_nfs_delegations(connection, session);
      }));
}

void probe_nfs_callbacks(NfsCompound& call, const std::shared_ptr<NfsSession>& session) {
  RpcCall probe = callback_of(*session, kNfsProcedureNull);
  Completion<Slice> done(inline_executor(),
                         [&sessions = call.service().state.sessions(),
                          weak = std::weak_ptr(session), connection = call.connection().id(),
                          peer = call.connection().peer()](const Result<Slice>& record) {
                           const Status status = check_callback_answer(record);
                           const std::shared_ptr<NfsSession> probed = weak.lock();
                           if (status.ok() || probed == nullptr) return;
                           log_info("callbacks do not reach a client",
                                    {{"client", peer.to_string()}, {"error", status.to_string()}});
                           (void)sessions.bind(*probed, connection, NfsChannelWish::kFore);
                         });
  call.after_answer([connection = call.connection().shared_from_this(), probe = std::move(probe),
                     done = std::move(done)]() mutable {
    connection->call(std::move(probe), {}, std::move(done));
  });
}

}  // namespace millrace
