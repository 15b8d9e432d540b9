#include "frontends/nfs4/nfs_compound.h"

#include <utility>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {

NfsCompound::NfsCompound(NfsService& service, RpcCall call, Slice record, std::size_t arguments,
                         RpcReturn back, Gate::Pass pass)
    : pass_(std::move(pass)),
      service_(service),
      call_(std::move(call)),
      record_(std::move(record)),
      back_(std::move(back)),
      context_(back_->connection()
                   .context(call_.caller.credentials.uid)
                   .with_deadline(service.clock.now() + service.request_timeout)),
      view_(service.files, service.exports.table(),
            {.address = back_->connection().peer(),
             .caller = call_.caller,
             .transport = back_->connection().transport()},
            service.started),
      arguments_(record_.bytes().subspan(arguments)),
      results_(begin_rpc_record()) {}

std::string NfsCompound::principal() const {
  return fmt::format("{}:{}", static_cast<unsigned>(call_.caller.flavour),
                     call_.caller.credentials.uid);
}

// ---- What operations ask

NfsResult<NfsPlace> NfsCompound::place() const {
  if (!current_) return std::unexpected(NfsStatus::kNoFileHandle);
  return current_->place;
}

NfsResult<NfsNode> NfsCompound::node() const {
  if (!current_) return std::unexpected(NfsStatus::kNoFileHandle);
  return view_.node(context_, current_->place);
}

NfsResult<NfsStateid> NfsCompound::meant(const NfsStateid& sent) const {
  const bool means_current = minor_version_ > 0 && sent == NfsStateid{.seqid = 1};
  if (!means_current) return sent;
  if (!current_ || !current_->stateid) return std::unexpected(NfsStatus::kBadStateid);
  return *current_->stateid;
}

void NfsCompound::retry(std::shared_ptr<const std::string> reply) {
  retried_ = true;
  replay_ = std::move(reply);
}

bool NfsCompound::must_move() {
  moves_ = connection().on_loop_thread();
  return moves_;
}

// ---- The engine

void NfsCompound::run() {
  if (!std::exchange(begun_, true)) begin();
  while (!done_) {
    if (!step()) return;
  }
  answer();
}

void NfsCompound::begin() {
  write_rpc_answer(results_, call_.xid, RpcAccepted::kSuccess);
  result_begin_ = results_.mark();
  const std::string_view tag = arguments_.text(kNfsTagBytesMax);
  minor_version_ = arguments_.u32();
  operations_ = arguments_.u32();
  if (!arguments_.ok()) {
    results_ = begin_rpc_record();
    write_rpc_answer(results_, call_.xid, RpcAccepted::kGarbageArguments);
    done_ = true;
    return;
  }
  results_.u32(0);
  results_.text(tag);
  count_at_ = results_.mark();
  results_.u32(0);
  if (minor_version_ > kNfsMinorVersionMax) return fail_whole(NfsStatus::kMinorVersMismatch);
  if (operations_ > kNfsOperationsMax) {
    return fail_whole(minor_version_ == 0 ? NfsStatus::kResource : NfsStatus::kTooManyOps);
  }
  done_ = operations_ == 0;
}

void NfsCompound::fail_whole(NfsStatus status) {
  status_ = status;
  results_.patch_u32(result_begin_, static_cast<std::uint32_t>(status));
  done_ = true;
}

// Outside of a session only a few operations are known, and those alone.
NfsStatus NfsCompound::check_order(std::uint32_t number) const {
  if (minor_version_ == 0) return NfsStatus::kOk;
  if (number == static_cast<std::uint32_t>(NfsOperation::kSequence))
    return index_ == 0 ? NfsStatus::kOk : NfsStatus::kSequencePos;
  if (slot_) return NfsStatus::kOk;
  if (!begins_nfs_session(number)) return NfsStatus::kOpNotInSession;
  return operations_ == 1 ? NfsStatus::kOk : NfsStatus::kNotOnlyOp;
}

bool NfsCompound::step() {
  const XdrReader before = arguments_;
  number_ = arguments_.u32();
  const NfsOperationRow* row = find_nfs_operation(number_, minor_version_);
  operation_begin_ = results_.mark();
  keeps_result_ = moves_ = suspends_ = false;
  results_.u32(row != nullptr ? number_ : static_cast<std::uint32_t>(NfsOperation::kIllegal));
  results_.u32(0);
  if (!arguments_.ok()) return end_step(NfsStatus::kBadXdr);
  if (retried_) return end_step(NfsStatus::kRetryUncachedRep);
  if (row == nullptr) return end_step(NfsStatus::kOpIllegal);
  const NfsStatus order = check_order(number_);
  if (order != NfsStatus::kOk) return end_step(order);

  if (row->waits == NfsWaits::kAlways && must_move()) return move(before);
  std::optional<AtHandOnly> at_hand;
  if (row->waits == NfsWaits::kPerhaps && connection().on_loop_thread())
    at_hand.emplace(AtHandOnly::Reach::kMemory);
  NfsStatus status = row->execute(*this);
  if (moves_) return move(before);
  // Whoever comes second goes on: the answer may have come before the operation returned.
  if (suspends_) {
    if (wait_.exchange(Wait::kWaiting) != Wait::kDelivered) return false;
    wait_ = Wait::kNone;
  }
  auto then = std::exchange(then_, {});
  if (at_hand && at_hand->refused()) return move(before);
  if (then) status = then();
  return end_step(status);
}

// The operation begins again where it may wait.
bool NfsCompound::move(const XdrReader& arguments) {
  arguments_ = arguments;
  results_.rewind(operation_begin_);
  service_.work.resume([self = shared_from_this()] { self->run(); });
  return false;
}

void NfsCompound::deliver() {
  if (wait_.exchange(Wait::kDelivered) != Wait::kWaiting) return;
  connection().resume([self = shared_from_this()] {
    self->wait_ = Wait::kNone;
    if (self->end_step(std::exchange(self->then_, {})())) self->run();
  });
}

NfsStatus NfsCompound::check_size() const {
  if (!slot_) return NfsStatus::kOk;
  const NfsChannelAttributes& terms = slot_->session().terms().fore;
  // The head of the RPC counts, the mark of the record does not.
  if (results_.size() - kRpcMarkBytes > terms.response_bytes_max) return NfsStatus::kRepTooBig;
  if (slot_->must_keep_reply() && results_.size() > terms.cached_response_bytes_max)
    return NfsStatus::kRepTooBigToCache;
  return NfsStatus::kOk;
}

// Always true: there is a next step, or none is needed.
bool NfsCompound::end_step(NfsStatus status) {
  if (status == NfsStatus::kOk && !arguments_.ok()) status = NfsStatus::kBadXdr;
  if (status == NfsStatus::kOk) status = check_size();
  XdrWriter::Mark at = operation_begin_;
  at.written += sizeof(std::uint32_t);
  if (status != NfsStatus::kOk && !keeps_result_) {
    results_.rewind({.written = at.written + sizeof(std::uint32_t),
                     .attachments = operation_begin_.attachments});
  }
  results_.patch_u32(at, static_cast<std::uint32_t>(status));
  count(number_, status);
  status_ = status;
  ++index_;
  done_ = replay_ != nullptr || status != NfsStatus::kOk || index_ == operations_;
  return true;
}

void NfsCompound::answer() {
  if (replay_ != nullptr) {
    results_.rewind(result_begin_);
    results_.fixed(as_bytes(*replay_));
  } else if (count_at_.written > 0) {
    results_.patch_u32(result_begin_, static_cast<std::uint32_t>(status_));
    results_.patch_u32(count_at_, index_);
  }
  if (slot_) {
    slot_->session().client().count(index_, read_bytes_);
  } else if (client_ != nullptr) {
    client_->count(index_, read_bytes_);
  }
  if (slot_ && slot_->keeps_reply() && !results_.has_attachments()) {
    slot_->finish(as_text(results_.written().subspan(result_begin_.written)));
  }
  // The slot is free before the client can know.
  slot_.reset();
  back_->send(results_);
  if (after_answer_) after_answer_();
}

void NfsCompound::count(std::uint32_t number, NfsStatus status) {
  const auto outcome = static_cast<std::size_t>(
      status == NfsStatus::kOk ? NfsMetricOutcome::kOk : NfsMetricOutcome::kError);
  service_.metrics.counter(MetricId::kNfsOperations, {nfs_operation_index(number), outcome}).add();
}

}  // namespace millrace
