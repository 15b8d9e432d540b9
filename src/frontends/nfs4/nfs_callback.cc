#include "frontends/nfs4/nfs_callback.h"

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

}  // namespace

void probe_nfs_callbacks(NfsCompound& call, const std::shared_ptr<NfsSession>& session) {
  RpcCall probe{
      .program = session->terms().callback_program,
      .version = kNfsCallbackVersion,
      .procedure = kNfsProcedureNull,
      .caller = {
          .flavour = RpcFlavour::kSys, .credentials = {.uid = 0, .gid = 0}, .machine = "millrace"}};
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
  call.after_answer(
      [connection = call.connection().shared_from_this(), probe = std::move(probe),
       done = std::move(done)]() mutable { connection->call(std::move(probe), std::move(done)); });
}

}  // namespace millrace
