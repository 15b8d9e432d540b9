#include "frontends/nfs4/nfs_operations.h"

namespace millrace {

NfsStatus nfs_putfh(NfsCompound& call) {
  const ByteView bytes = call.arguments().opaque(kNfsHandleBytesMax);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const std::optional<NfsHandle> handle = call.service().handles.decode(bytes);
  if (!handle) return NfsStatus::kBadHandle;
  NfsResult<NfsPlace> place = call.view().find(*handle);
  if (!place && place.error() == NfsStatus::kStale && call.view().is_foreign(*handle)) {
    if (call.must_move()) return NfsStatus::kOk;
    const NfsStatus status = call.view().adopt(call.context(), *handle);
    if (status != NfsStatus::kOk) return status;
    place = call.view().find(*handle);
  }
  if (!place) return place.error();
  call.current() = {.place = *std::move(place)};
  return NfsStatus::kOk;
}

NfsStatus nfs_putrootfh(NfsCompound& call) {
  call.current() = {.place = NfsView::root()};
  return NfsStatus::kOk;
}

NfsStatus nfs_getfh(NfsCompound& call) {
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  call.results().opaque(call.service().handles.encode(call.view().handle_of(*place)));
  return NfsStatus::kOk;
}

NfsStatus nfs_savefh(NfsCompound& call) {
  if (!call.current()) return NfsStatus::kNoFileHandle;
  call.saved() = call.current();
  return NfsStatus::kOk;
}

NfsStatus nfs_restorefh(NfsCompound& call) {
  if (!call.saved()) return NfsStatus::kRestoreFh;
  call.current() = call.saved();
  return NfsStatus::kOk;
}

}  // namespace millrace
