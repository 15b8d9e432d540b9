#include "frontends/nfs4/nfs_state.h"

#include <utility>

#include "base/at_hand.h"

namespace millrace {

Result<std::unique_ptr<NfsState>> NfsState::open(Disk& disk, const std::string& folder,
                                                 const NfsStateOptions& options, Clock& clock,
                                                 Random& random) {
  MR_RETURN_IF_ERROR(disk.make_directories(folder));
  MR_ASSIGN_OR_RETURN(NfsServerIdentity identity,
                      NfsServerIdentity::open(disk, folder + "/identity", random));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<NfsClientRecords> records,
                      NfsClientRecords::open(disk, folder + "/clients"));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<NfsClientRecords> records40,
                      NfsClientRecords::open(disk, folder + "/clients-4.0"));
  return std::unique_ptr<NfsState>(new NfsState(std::move(identity), std::move(records),
                                                std::move(records40), options, clock, random));
}

NfsState::NfsState(NfsServerIdentity identity, std::unique_ptr<NfsClientRecords> records,
                   std::unique_ptr<NfsClientRecords> records40, const NfsStateOptions& options,
                   Clock& clock, Random& random)
    : options_(options),
      identity_(std::move(identity)),
      records_(std::move(records)),
      records40_(std::move(records40)),
      reclaimers_(*records_, options, clock),
      reclaimers40_(*records40_, options, clock),
      client_ids_(identity_.life()),
      session_memory_(options),
      files_{.options = options,
             .life = identity_.life(),
             .delegations = NfsDelegations({random.next(), random.next()})},
      clients_(client_ids_, reclaimers_, session_memory_, files_, clock, random),
      clients40_(client_ids_, reclaimers40_, files_, clock, random) {}

bool NfsState::drop_gone() {
  const std::size_t dropped = clients_.drop_gone();
  return dropped + clients40_.drop_gone() > 0;
}

std::vector<NfsClientInfo> NfsState::list_clients() const {
  std::vector<NfsClientInfo> infos = clients_.list();
  for (NfsClientInfo& info : clients40_.list())
    infos.push_back(std::move(info));
  return infos;
}

NfsResult<NfsStateid> NfsState::open_file(NfsClient& client, const NfsOpenRequest& request) {
  if (const NfsStatus status = client.check_claim(request.reclaim); status != NfsStatus::kOk)
    return std::unexpected(status);
  NfsResult<NfsStateid> stateid = client.files().open(request);
  if (!stateid && stateid.error() == NfsStatus::kShareDenied && AtHandOnly::may_wait().ok() &&
      drop_gone())
    stateid = client.files().open(request);
  return stateid;
}

std::expected<NfsStateid, NfsLockFailure> NfsState::lock_file(NfsClient& client,
                                                              const NfsLockRequest& request) {
  if (const NfsStatus status = client.check_claim(request.reclaim); status != NfsStatus::kOk)
    return std::unexpected(NfsLockFailure{status});
  std::expected<NfsStateid, NfsLockFailure> stateid = client.files().lock(request);
  if (!stateid && stateid.error().status == NfsStatus::kDenied && drop_gone())
    stateid = client.files().lock(request);
  return stateid;
}

void NfsState::sweep() {
  clients_.sweep();
  clients40_.sweep();
  reclaimers_.sweep();
  reclaimers40_.sweep();
}

}  // namespace millrace
