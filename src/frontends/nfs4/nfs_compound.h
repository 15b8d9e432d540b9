#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/completion.h"
#include "base/gate.h"
#include "base/request_context.h"
#include "frontends/nfs4/nfs_service.h"
#include "frontends/nfs4/nfs_types.h"
#include "frontends/nfs4/nfs_view.h"
#include "frontends/nfs4/rpc_connection.h"
#include "frontends/nfs4/rpc_message.h"
#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"

namespace millrace {

struct NfsOperationRow;

// A file handle with the stateid that goes with it (RFC 8881, 16.2.3.1.2).
struct NfsCurrent {
  NfsPlace place;
  std::optional<NfsStateid> stateid = std::nullopt;
};

// One COMPOUND, from its arguments to its answer: operations are decoded, executed and encoded one
// by one.
//
// Begins on the loop of its connection. An operation that must wait moves it to the work executor;
// one whose answer comes later suspends it. One thread at a time has it, and whoever will go on
// with it keeps it alive.
class NfsCompound : public std::enable_shared_from_this<NfsCompound> {
 public:
  // The arguments of the call begin at `arguments` in its record.
  NfsCompound(NfsService& service, RpcCall call, Slice record, std::size_t arguments,
              RpcReturn back, Gate::Pass pass);

  void run();

  // What operations are made of.
  NfsService& service() { return service_; }
  XdrReader& arguments() { return arguments_; }
  XdrWriter& results() { return results_; }
  const RequestContext& context() const { return context_; }
  const NfsView& view() const { return view_; }
  const RpcCaller& caller() const { return call_.caller; }
  // Who calls, as the state has it.
  std::string principal() const;
  RpcConnection& connection() const { return back_->connection(); }
  std::uint32_t minor_version() const { return minor_version_; }
  std::uint32_t operations() const { return operations_; }
  // Of this operation, from 0.
  std::uint32_t index() const { return index_; }
  std::uint32_t record_bytes() const { return static_cast<std::uint32_t>(record_.size()); }

  std::optional<NfsCurrent>& current() { return current_; }
  std::optional<NfsCurrent>& saved() { return saved_; }
  // kNoFileHandle when there is none.
  NfsResult<NfsPlace> place() const;
  // The node of the current file handle.
  NfsResult<NfsNode> node() const;
  // A stateid that a client sent, with the current one in its place where it says so.
  NfsResult<NfsStateid> meant(const NfsStateid& sent) const;

  // Null before SEQUENCE, and always in 4.0.
  NfsSlotUse* slot() { return slot_ ? &*slot_ : nullptr; }
  void begin_slot(NfsSlotUse use) { slot_.emplace(std::move(use)); }
  // This was answered before: with that, or with kRetryUncachedRep when it is null.
  void retry(std::shared_ptr<const std::string> reply);

  // Whose call it is, where no session says so: 4.0 tells by what operations name.
  void note_client(std::shared_ptr<NfsClient> client) { client_ = std::move(client); }
  // What the client is counted for.
  void count_read(std::uint64_t bytes) { read_bytes_ += bytes; }
  // To be done once the answer is on its way.
  void after_answer(Task task) { after_answer_ = std::move(task); }
  // The operation wrote a result although it fails.
  void keep_result() { keeps_result_ = true; }
  // What may wait is done elsewhere: the operation returns at once when this is true, and begins
  // again there.
  bool must_move();
  // The operation's answer comes later: `then` writes it, and says how it went. The operation
  // returns at once.
  template <class T>
  Completion<T> later(std::move_only_function<NfsStatus(NfsCompound&, Result<T>)> then);

 private:
  enum class Wait : std::uint8_t { kNone, kWaiting, kDelivered };

  void begin();
  void fail_whole(NfsStatus status);
  // False when it goes on elsewhere.
  bool step();
  NfsStatus execute(const NfsOperationRow& row);
  NfsStatus check_order(std::uint32_t number) const;
  NfsStatus check_size() const;
  bool end_step(NfsStatus status);
  bool move(const XdrReader& arguments);
  void deliver();
  void answer();
  void count(std::uint32_t number, NfsStatus status);

  const Gate::Pass pass_;  // Destroyed last: then the server may go.
  NfsService& service_;
  const RpcCall call_;
  const Slice record_;
  std::optional<RpcReturn> back_;
  const RequestContext context_;
  const NfsView view_;
  XdrReader arguments_;
  XdrWriter results_;

  bool begun_ = false;
  bool done_ = false;
  std::uint32_t minor_version_ = 0;
  std::uint32_t operations_ = 0;
  std::uint32_t index_ = 0;
  NfsStatus status_ = NfsStatus::kOk;
  // Places in the results.
  XdrWriter::Mark result_begin_;
  XdrWriter::Mark count_at_;

  std::optional<NfsCurrent> current_;
  std::optional<NfsCurrent> saved_;
  std::optional<NfsSlotUse> slot_;
  std::shared_ptr<NfsClient> client_;
  bool retried_ = false;
  std::shared_ptr<const std::string> replay_;
  std::uint64_t read_bytes_ = 0;
  Task after_answer_;

  // Of the operation under way.
  std::uint32_t number_ = 0;
  XdrWriter::Mark operation_begin_;
  bool keeps_result_ = false;
  bool moves_ = false;
  bool suspends_ = false;
  std::atomic<Wait> wait_ = Wait::kNone;
  std::move_only_function<NfsStatus()> then_;
};

template <class T>
Completion<T> NfsCompound::later(std::move_only_function<NfsStatus(NfsCompound&, Result<T>)> then) {
  suspends_ = true;
  return Completion<T>(inline_executor(), [self = shared_from_this(),
                                           then = std::move(then)](Result<T> answer) mutable {
    self->then_ = [call = self.get(), then = std::move(then),
                   answer = std::move(answer)]() mutable { return then(*call, std::move(answer)); };
    self->deliver();
  });
}

}  // namespace millrace
