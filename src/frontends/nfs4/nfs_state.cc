#include "frontends/nfs4/nfs_state.h"

#include <utility>

namespace millrace {

Result<std::unique_ptr<NfsState>> NfsState::open(Disk& disk, const std::string& folder,
                                                 const NfsStateOptions& options, Clock& clock,
                                                 Random& random) {
  MR_RETURN_IF_ERROR(disk.make_directories(folder));
  MR_ASSIGN_OR_RETURN(NfsServerIdentity identity,
                      NfsServerIdentity::open(disk, folder + "/identity", random));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<NfsClientRecords> records,
                      NfsClientRecords::open(disk, folder + "/clients"));
  return std::unique_ptr<NfsState>(
      new NfsState(std::move(identity), std::move(records), options, clock, random));
}

NfsState::NfsState(NfsServerIdentity identity, std::unique_ptr<NfsClientRecords> records,
                   const NfsStateOptions& options, Clock& clock, Random& random)
    : options_(options),
      identity_(std::move(identity)),
      records_(std::move(records)),
      client_ids_(identity_.life()),
      session_memory_(options),
      files_{.options = options,
             .life = identity_.life(),
             .delegations = NfsDelegations({random.next(), random.next()})},
      clients_(client_ids_, *records_, session_memory_, files_, clock, random) {}

NfsResult<NfsStateid> NfsState::open_file(NfsClient& client, const NfsOpenRequest& request) {
  if (const NfsStatus status = client.check_claim(request.reclaim); status != NfsStatus::kOk)
    return std::unexpected(status);
  NfsResult<NfsStateid> stateid = client.files().open(request);
  if (!stateid && stateid.error() == NfsStatus::kShareDenied && clients_.drop_gone() > 0)
    stateid = client.files().open(request);
  return stateid;
}

std::expected<NfsStateid, NfsLockFailure> NfsState::lock_file(NfsClient& client,
                                                              const NfsLockRequest& request) {
  if (const NfsStatus status = client.check_claim(request.reclaim); status != NfsStatus::kOk)
    return std::unexpected(NfsLockFailure{status});
  std::expected<NfsStateid, NfsLockFailure> stateid = client.files().lock(request);
  if (!stateid && stateid.error().status == NfsStatus::kDenied && clients_.drop_gone() > 0)
    stateid = client.files().lock(request);
  return stateid;
}

void NfsState::sweep() { clients_.sweep(); }

}  // namespace millrace
