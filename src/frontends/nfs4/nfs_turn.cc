#include "frontends/nfs4/nfs_turn.h"

#include <string>
#include <utility>
#include <variant>

namespace millrace {
namespace {

// As kept: the status, the current file handle, and what followed the status.
std::string pack_answer(NfsCompound& call, NfsStatus status, ByteView result) {
  XdrWriter writer;
  writer.enumeration(status);
  if (call.current()) {
    writer.opaque(call.service().handles.encode(call.view().handle_of(call.current()->place)));
  } else {
    writer.opaque({});
  }
  writer.fixed(result);
  return std::string(as_text(writer.written()));
}

NfsStatus answer_again(NfsCompound& call, const std::string& kept) {
  XdrReader reader(as_bytes(kept));
  const auto status = reader.enumeration<NfsStatus>();
  const std::optional<NfsHandle> handle =
      call.service().handles.decode(reader.opaque(kNfsHandleBytesMax));
  if (handle) {
    NfsResult<NfsPlace> place = call.view().find(*handle);
    if (!place) return place.error();
    call.current() = {.place = *std::move(place)};
  }
  call.results().fixed(reader.fixed(reader.remaining()));
  call.keep_result();
  return status;
}

// Not owned: the slot keeps the session, and that its client.
std::shared_ptr<NfsClient> session_client(NfsCompound& call) {
  return {std::shared_ptr<void>(), &call.slot()->session().client()};
}

NfsResult<std::shared_ptr<NfsClient>> noted(NfsCompound& call,
                                            NfsResult<std::shared_ptr<NfsClient>> client) {
  if (client) call.note_client(*client);
  return client;
}

}  // namespace

NfsResult<std::shared_ptr<NfsClient>> client_of(NfsCompound& call, const NfsStateid& stateid) {
  if (call.slot() != nullptr) return session_client(call);
  return noted(call, call.service().state.clients40().find(stateid));
}

NfsResult<std::shared_ptr<NfsClient>> client_of(NfsCompound& call, NfsClientId sent) {
  if (call.slot() != nullptr) return session_client(call);
  return noted(call, call.service().state.clients40().find(sent));
}

NfsStatus run_in_turn(NfsCompound& call,
                      const std::function<NfsResult<NfsOwnerTurns::Begun>()>& begin,
                      const std::function<NfsStatus(NfsOwnerTurn* turn)>& operation) {
  if (call.minor_version() > 0) return operation(nullptr);
  NfsResult<NfsOwnerTurns::Begun> begun = begin();
  if (!begun) return begun.error();
  if (const auto* const kept = std::get_if<std::string>(&*begun)) return answer_again(call, *kept);
  auto& turn = std::get<NfsOwnerTurn>(*begun);
  const std::size_t before = call.results().mark().written;
  const NfsStatus status = operation(&turn);
  const bool has_result = status == NfsStatus::kOk || status == NfsStatus::kDenied;
  turn.finish(status,
              pack_answer(call, status,
                          has_result ? call.results().written().subspan(before) : ByteView()));
  return status;
}

}  // namespace millrace
