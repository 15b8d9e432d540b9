#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/block_read.h"
#include "cache/cache_directories.h"
#include "cache/object_table.h"
#include "cache/object_version.h"
#include "cache/read_plan.h"

namespace millrace {

// A read that a job will make.
struct PlannedRead {
  static constexpr ByteRange kEverything{0, UINT64_MAX};

  ObjectVersion object;
  ByteRange range;
  // What the job reads besides, near in time: of the pieces that the range is in, so much is
  // fetched with it. The rest may be what others read, elsewhere.
  ByteRange around = kEverything;
  // Who pays for what is fetched of the object; null: the account of who announces it.
  std::shared_ptr<FetchAccount> account = {};
};

// Jobs that know their future reads say so: what they read next is fetched before they ask, in
// their order, and what they read furthest in the future is evicted first.
//
// A plan is a sequence of reads, numbered from 0. The job extends it (the next epoch, before this
// one ends), says how far it has come, and withdraws it when it ends. A plan that is wrong costs
// fetches and space, never right bytes.
//
// All methods are safe from any thread, and block only for the index of a long plan.
class PlannedReads {
 public:
  // `ahead_bytes_max`: how far ahead of the job to fetch, in a cache that is large enough.
  PlannedReads(const ReadParts& parts, ObjectTable& objects, std::uint64_t ahead_bytes_max);
  ~PlannedReads();

  // kResourceExhausted when there are too many plans, or they are too long: then the job reads like
  // one without.
  Result<PlanId> announce(const RequestContext& context, const std::vector<PlannedRead>& reads);
  // kNotFound when it was withdrawn.
  Status extend(const RequestContext& context, PlanId plan, const std::vector<PlannedRead>& reads);
  // The job has done all reads before this number.
  Status advance(PlanId plan, std::uint64_t reads_done);
  void withdraw(PlanId plan);

 private:
  // Pieces of one object, read together.
  struct PieceRun {
    std::uint32_t object = 0;  // In Plan::objects.
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    UnitRange fetched = {};  // Of those pieces.
    bool is_bounded = false;

    std::uint32_t end() const { return first + count; }
    std::uint32_t first_block() const { return first / kBlockPieces; }
    std::uint32_t blocks() const {
      return count == 0 ? 0 : (end() - 1) / kBlockPieces - first_block() + 1;
    }
  };
  // A piece by its object and its number there, and units of a piece, a bit each.
  using PieceId = std::uint64_t;
  using PieceUnits = std::uint32_t;
  static_assert(kPlannedPieceUnits < 32);
  struct PieceAhead {
    std::uint32_t reads = 0;
    PieceUnits sent_for = 0;
  };
  struct Plan {
    std::shared_ptr<FetchAccount> account;
    std::vector<ObjectVersion> objects;
    std::vector<std::shared_ptr<FetchAccount>> payers;  // Of each object.
    std::unordered_map<ObjectDigest, std::uint32_t> numbers;
    std::deque<PieceRun> runs;  // Of the reads from `done` on.
    std::uint64_t done = 0;     // Reads that the job has made.
    std::uint64_t fetched = 0;  // Reads that were sent for.
    // Pieces of the reads between the two, how many of those each has, and the bytes that were sent
    // for: samples that lie side by side share what is fetched.
    std::unordered_map<PieceId, PieceAhead> ahead;
    std::uint64_t ahead_bytes = 0;
    // By directory: its own plan, and how many of its blocks the job has read.
    std::vector<PlanId> directory_plans;
    std::vector<std::uint64_t> directory_positions;
  };
  struct Prefetch {
    ObjectVersion object;
    std::uint32_t piece = 0;
    PieceUnits units = 0;
    bool is_bounded = false;
    std::shared_ptr<FetchAccount> account;
  };

  std::vector<PieceRun> append(Plan& plan, const std::vector<PlannedRead>& reads);
  std::vector<std::vector<CacheSpace::PlannedUse>> uses_of(const Plan& plan,
                                                           const std::vector<PieceRun>& runs);
  std::size_t directory_of(const ObjectVersion& object);
  // What may be ahead of one job: a part of the cache at most, so that what it fetches does not
  // push out what it has yet to read.
  std::uint64_t ahead_bytes_max() const;
  static void leave(Plan& plan, const PieceRun& run);
  std::vector<Prefetch> take_prefetches(Plan& plan) MR_REQUIRES(mutex_);
  void send(const std::vector<Prefetch>& prefetches);

  const ReadParts& parts_;
  ObjectTable& objects_;
  const std::uint64_t ahead_bytes_max_;

  Mutex mutex_;
  std::map<PlanId, Plan> plans_ MR_GUARDED_BY(mutex_);
  std::uint64_t last_id_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
