#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/nfs4/nfs_attribute.h"
#include "frontends/nfs4/nfs_protocol.h"
#include "frontends/nfs4/nfs_state_numbers.h"
#include "frontends/nfs4/nfs_types.h"
#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"

namespace millrace::testing {

// Who a call says that it comes from.
struct NfsCaller {
  bool is_known = true;  // False: AUTH_NONE.
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};
};

struct NfsOpenWish {
  std::string name;                         // Empty: the current file (CLAIM_FH).
  std::uint32_t access = kShareAccessRead;  // With wishes for delegations in it.
  std::uint32_t deny = kShareDenyNone;
  std::string owner = "owner";
  NfsClientId client = {};  // Only 4.0 looks at it.
  std::uint32_t seqid = 0;  // The same.
};

// One COMPOUND, operation by operation. What has no method of its own is written by op().
// Thread-compatible.
class NfsCall {
 public:
  explicit NfsCall(std::uint32_t minor_version = 1, const NfsCaller& caller = {},
                   std::string_view tag = "");

  // Counts an operation; its arguments are written into the result.
  XdrWriter& op(NfsOperation operation);
  XdrWriter& op(std::uint32_t number);

  NfsCall& put_root_fh();
  NfsCall& put_fh(std::string_view handle);
  NfsCall& get_fh();
  NfsCall& save_fh();
  NfsCall& restore_fh();
  NfsCall& lookup(std::string_view name);
  NfsCall& lookup_parent();
  NfsCall& get_attr(std::initializer_list<NfsAttribute> attributes);
  NfsCall& access(std::uint32_t bits);
  NfsCall& read_link();
  NfsCall& read(const NfsStateid& stateid, std::uint64_t offset, std::uint32_t count);
  NfsCall& read_dir(std::uint64_t cookie, NfsVerifier verifier, std::uint32_t dircount,
                    std::uint32_t maxcount, std::initializer_list<NfsAttribute> attributes);
  NfsCall& open(const NfsOpenWish& wish);
  NfsCall& close(const NfsStateid& stateid, std::uint32_t seqid = 0);
  NfsCall& sequence(const NfsSessionId& session, std::uint32_t seqid, std::uint32_t slot,
                    std::uint32_t highest_slot, bool keep_reply);

  // Bytes that claim to be so many operations.
  void append(ByteView bytes, std::uint32_t operations);

  // The record as it goes over the wire, with this transaction id. The call stays as it is.
  std::vector<std::byte> record(std::uint32_t xid) const;
  std::uint32_t operations() const { return operations_; }
  // Where the number of operations stands, for those who lie about it.
  void set_operations(std::uint32_t count);

 private:
  XdrWriter writer_;
  XdrWriter::Mark count_;
  std::uint32_t operations_ = 0;
};

void write_bitmap(XdrWriter& writer, std::initializer_list<NfsAttribute> attributes);
void write_stateid(XdrWriter& writer, const NfsStateid& stateid);
NfsStateid read_stateid(XdrReader& reader);

// The attributes that tests look at; those that the server left out stay as they are here.
struct NfsAttributeValues {
  std::vector<std::uint32_t> mask;
  std::vector<std::uint32_t> supported;
  NfsFileType type = {};
  std::uint32_t expire_type = 0;
  std::uint64_t change = 0;
  std::uint64_t size = 0;
  std::uint64_t fsid_major = 0;
  std::uint64_t fsid_minor = 0;
  std::uint32_t lease_seconds = 0;
  NfsStatus error = NfsStatus::kOk;
  std::string handle;
  std::uint64_t file_id = 0;
  std::uint64_t read_bytes_max = 0;
  std::uint64_t write_bytes_max = 0;
  std::uint32_t mode = 0;
  std::uint32_t links = 0;
  std::string owner;
  std::string group;
  std::uint64_t space_used = 0;
  std::int64_t modified_seconds = 0;
  std::uint64_t mounted_on_file_id = 0;

  bool has(NfsAttribute attribute) const;
  bool operator==(const NfsAttributeValues&) const = default;
};
// A fattr4. Throws std::runtime_error for an attribute that is not above.
NfsAttributeValues read_attributes(XdrReader& reader);

// The answer to a call: its results are read in order, with next() before each.
//
// Throws std::runtime_error when the bytes are not what the protocol says. Move-only.
class NfsAnswer {
 public:
  // Of a whole RPC reply. The bytes are not copied: keep() does that.
  explicit NfsAnswer(ByteView reply);
  NfsAnswer(NfsAnswer&&) noexcept = default;
  NfsAnswer& operator=(NfsAnswer&&) noexcept = default;

  // Outlives the connection's buffer from now on. Before anything is read.
  void keep();

  std::uint32_t xid() const { return xid_; }
  // Whether RPC took the call; with accept_status what it said (0: a result follows).
  bool is_accepted() const { return is_accepted_; }
  std::uint32_t accept_status() const { return accept_status_; }
  // The body of the verifier that came with it.
  const std::string& verifier() const { return verifier_; }
  // Of the whole compound.
  NfsStatus status() const { return status_; }
  std::uint32_t operations() const { return operations_; }

  // The status of the next result, which must be of this operation. Its fields follow in reader().
  NfsStatus next(NfsOperation operation);
  // next(), which must be a success.
  XdrReader& good(NfsOperation operation);
  XdrReader& reader() { return reader_; }
  // Not more and not less has been read than there was.
  bool is_finished() const { return reader_.ok() && reader_.remaining() == 0; }

 private:
  void read_head();

  std::vector<std::byte> kept_;
  XdrReader reader_;
  ByteView reply_;
  std::uint32_t xid_ = 0;
  bool is_accepted_ = false;
  std::uint32_t accept_status_ = 0;
  std::string verifier_;
  NfsStatus status_ = NfsStatus::kOk;
  std::uint32_t operations_ = 0;
};

}  // namespace millrace::testing
