#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "frontends/nfs4/nfs_client_files.h"
#include "frontends/nfs4/nfs_delegated.h"
#include "frontends/nfs4/nfs_owner_turns.h"
#include "frontends/nfs4/nfs_types.h"

namespace millrace {

// How far a client has got with claiming what it held before a restart of ours.
enum class NfsReclaim : std::uint8_t {
  // Nobody here knew it before: it has nothing to claim, and says so by RECLAIM_COMPLETE.
  kNothing,
  // It is one of those that we knew. It may claim, and open nothing anew until it is done.
  kAllowed,
  // RECLAIM_COMPLETE was sent.
  kDone,
};

// A client as it is shown to people.
struct NfsClientInfo {
  std::string owner;  // Any bytes.
  std::string principal;
  bool has_sessions = false;  // 4.1 or 4.2.
  std::size_t sessions = 0;
  std::size_t opens = 0;
  Duration idle{};
  std::uint64_t operations = 0;
  std::uint64_t read_bytes = 0;
};

// One instance of a client: what EXCHANGE_ID or SETCLIENTID has made. A client that restarts is
// another one.
//
// Made by NfsClients. All methods are safe from any thread.
class NfsClient {
 public:
  NfsClient(NfsClientId id, NfsClientOwner owner, std::string principal, std::uint32_t minor,
            NfsFileTables& tables, TimePoint now)
      : id_(id),
        owner_(std::move(owner)),
        principal_(std::move(principal)),
        minor_version_(minor),
        files_(id, minor > 0, tables),
        turns_(files_, 2 * tables.options.owners_per_client_max),
        renewed_(now) {}
  NfsClient(const NfsClient&) = delete;
  NfsClient& operator=(const NfsClient&) = delete;

  NfsClientId id() const { return id_; }
  const NfsClientOwner& owner() const { return owner_; }
  // Who sent it, as its credentials say.
  const std::string& principal() const { return principal_; }
  // 4.0 has no sessions: stateids and owners follow other rules.
  bool has_sessions() const { return minor_version_ > 0; }

  TimePoint renewed() const { return renewed_.load(std::memory_order_relaxed); }
  void renew(TimePoint now) { renewed_.store(now, std::memory_order_relaxed); }

  NfsReclaim reclaim() const { return reclaim_.load(); }
  void allow_reclaim() { reclaim_ = NfsReclaim::kAllowed; }
  // kCompleteAlready the second time.
  NfsStatus complete_reclaim() {
    return reclaim_.exchange(NfsReclaim::kDone) == NfsReclaim::kDone ? NfsStatus::kCompleteAlready
                                                                     : NfsStatus::kOk;
  }

  // Whether it may open or lock now: by a claim from before a restart, or anew. kNoGrace, kGrace.
  // Nothing that is read-only conflicts with what is claimed later, so that nobody else waits.
  NfsStatus check_claim(bool reclaim) const {
    const NfsReclaim state = reclaim_.load();
    if (reclaim) return state == NfsReclaim::kAllowed ? NfsStatus::kOk : NfsStatus::kNoGrace;
    return state == NfsReclaim::kDone || !has_sessions() ? NfsStatus::kOk : NfsStatus::kGrace;
  }

  NfsClientFiles& files() { return files_; }
  NfsDelegated& delegated() { return delegated_; }
  // Only of clients without sessions.
  NfsOwnerTurns& turns() { return turns_; }

  // What it has done, for those who look on.
  void count(std::uint64_t operations, std::uint64_t read_bytes) {
    operations_.fetch_add(operations, std::memory_order_relaxed);
    read_bytes_.fetch_add(read_bytes, std::memory_order_relaxed);
  }
  NfsClientInfo info(TimePoint now) const {
    return {.owner = owner_.id,
            .principal = principal_,
            .has_sessions = has_sessions(),
            .opens = files_.opens(),
            .idle = now - renewed(),
            .operations = operations_.load(std::memory_order_relaxed),
            .read_bytes = read_bytes_.load(std::memory_order_relaxed)};
  }

  // Connections that carry callbacks, over all sessions.
  int back_channels() const { return back_channels_.load(); }
  void add_back_channels(int count) { back_channels_ += count; }

 private:
  const NfsClientId id_;
  const NfsClientOwner owner_;
  const std::string principal_;
  const std::uint32_t minor_version_;
  NfsClientFiles files_;
  NfsOwnerTurns turns_;
  NfsDelegated delegated_;
  std::atomic<TimePoint> renewed_;
  std::atomic<NfsReclaim> reclaim_ = NfsReclaim::kNothing;
  std::atomic<int> back_channels_ = 0;
  std::atomic<std::uint64_t> operations_ = 0;
  std::atomic<std::uint64_t> read_bytes_ = 0;
};

}  // namespace millrace
