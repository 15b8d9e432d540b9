#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/frontends/nfs4/nfs_client_connection.h"

namespace millrace::testing {

struct NfsSessionOptions {
  std::string owner = "test client";
  NfsVerifier verifier = {};
  std::uint32_t minor_version = 1;
  std::uint32_t slots = 64;
  bool backchannel = true;
  NfsCaller caller = {};
};

// What an open gave.
struct NfsOpened {
  NfsStateid stateid = {};  // All zeros when only the delegation's counts (OPEN_XOR_DELEGATION).
  NfsDelegation delegation = NfsDelegation::kNone;
  NfsStateid delegation_stateid = {};
  std::string handle;
  std::uint32_t flags = 0;
};

// Of an answer to OPEN, up to its end. Throws when the open failed.
NfsOpened read_opened(NfsAnswer& answer);

struct NfsListed {
  std::string name;
  std::uint64_t cookie = 0;
  NfsAttributeValues attributes;
};

// A client of NFSv4.1 or 4.2 with one session, over a connection that may be shared with others.
// Any number of calls can be under way, one per slot.
//
// Lifecycle: the constructor makes the client id and the session, and says that there is nothing
// to reclaim. Nothing is destroyed at the end: destroy() does that. Throws std::runtime_error where
// the server does not do as it should. Thread-compatible.
class NfsSession {
 public:
  NfsSession(NfsConnection& connection, NfsSessionOptions options);

  // A call that begins with this slot's SEQUENCE. The next one of the slot may begin when its
  // answer has come.
  NfsCall call(std::uint32_t slot = 0, bool keep_reply = false);
  // Sends it with the next flush; receive() tells which slot has its answer.
  void send(std::uint32_t slot, const NfsCall& call);
  // An answer whose SEQUENCE succeeded and was read, and its slot.
  std::pair<std::uint32_t, NfsAnswer> receive();
  // The only call under way, on slot 0; the result of SEQUENCE was read.
  NfsAnswer run(const NfsCall& call);
  // Over another connection than the session's own.
  NfsAnswer run_over(NfsConnection& connection, const NfsCall& call);
  // As the server gave it: slots may be used up to this one, from the next call on.
  std::uint32_t highest_slot() const { return highest_slot_; }
  std::uint32_t status_flags() const { return status_flags_; }
  void use_slots(std::uint32_t count) { seqids_.resize(count); }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(seqids_.size()); }

  const NfsSessionId& id() const { return id_; }
  NfsClientId client() const { return client_; }
  const NfsServerOwner& server() const { return server_; }
  std::uint32_t create_flags() const { return create_flags_; }
  NfsConnection& connection() { return connection_; }

  // The handle at a path from the root: "/datasets/a/v1".
  std::string lookup(std::string_view path);
  NfsAttributeValues attributes(const std::string& handle,
                                std::initializer_list<NfsAttribute> wanted);
  // With its file's handle when `directory` is that of a directory and the wish has a name.
  NfsOpened open(const std::string& handle, const NfsOpenWish& wish);
  void close(const std::string& handle, const NfsStateid& stateid);
  // All of it, 1 MiB at a time, without an open (the anonymous stateid).
  std::string read_file(const std::string& handle);
  std::vector<NfsListed> list(const std::string& directory, std::uint32_t reply_bytes_max,
                              std::initializer_list<NfsAttribute> wanted);
  // The session, then the client.
  void destroy();

 private:
  std::uint32_t exchange_id();
  void create_session(std::uint32_t seqid);
  void read_sequence(NfsAnswer& answer);

  NfsConnection& connection_;
  const NfsSessionOptions options_;
  NfsClientId client_;
  NfsServerOwner server_;
  NfsSessionId id_;
  std::uint32_t create_flags_ = 0;
  std::uint32_t highest_slot_ = 0;
  std::uint32_t status_flags_ = 0;
  std::vector<std::uint32_t> seqids_;             // Of each slot's last call.
  std::map<std::uint32_t, std::uint32_t> slots_;  // Of calls under way, by transaction.
};

}  // namespace millrace::testing
