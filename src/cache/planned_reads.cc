#include "cache/planned_reads.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

// Of the cache: other jobs plan too.
constexpr std::uint64_t kAheadShare = 4;

UnitRange common_units(UnitRange one, UnitRange other) {
  const std::uint32_t first = std::max(one.first, other.first);
  return {first, std::max(first, std::min(one.end(), other.end())) - first};
}

UnitRange units_of_pieces(std::uint32_t first, std::uint32_t count) {
  return {first * kPlannedPieceUnits, count * kPlannedPieceUnits};
}

// Those of a piece that are in the range, a bit each.
std::uint32_t units_in_piece(std::uint32_t piece, UnitRange range) {
  const UnitRange units = common_units(units_of_pieces(piece, 1), range);
  return ((1U << units.count) - 1) << (units.first % kPlannedPieceUnits);
}

// Calls `visit` with the runs of neighbours among them.
template <class Visitor>
void for_each_run(std::uint32_t piece, std::uint32_t units, const Visitor& visit) {
  for (std::uint32_t unit = 0; units >> unit != 0;) {
    unit += static_cast<std::uint32_t>(std::countr_zero(units >> unit));
    const auto count = static_cast<std::uint32_t>(std::countr_one(units >> unit));
    visit(UnitRange{piece * kPlannedPieceUnits + unit, count});
    unit += count;
  }
}

std::uint64_t bytes_of_units(const ObjectVersion& object, std::uint32_t piece,
                             std::uint32_t units) {
  std::uint64_t bytes = 0;
  for_each_run(piece, units, [&](UnitRange run) { bytes += bytes_of(run, object.size()).length; });
  return bytes;
}

std::uint64_t piece_id(std::uint32_t object, std::uint32_t piece) {
  return std::uint64_t{object} << 32 | piece;
}

Status plan_is_gone(PlanId plan) {
  return {StatusCode::kNotFound, fmt::format("there is no read plan {} (any more)", plan.value())};
}

}  // namespace

PlannedReads::PlannedReads(const ReadParts& parts, ObjectTable& objects,
                           std::uint64_t ahead_bytes_max)
    : parts_(parts), objects_(objects), ahead_bytes_max_(ahead_bytes_max) {}

PlannedReads::~PlannedReads() = default;

std::size_t PlannedReads::directory_of(const ObjectVersion& object) {
  const auto& all = parts_.directories.all();
  const CacheDirectory* const directory = &parts_.directories.of(object.digest());
  return static_cast<std::size_t>(
      std::ranges::find(all, directory, [](const auto& each) { return each.get(); }) - all.begin());
}

std::uint64_t PlannedReads::ahead_bytes_max() const {
  std::uint64_t limit_bytes = UINT64_MAX;
  for (const auto& directory : parts_.directories.all())
    limit_bytes = std::min(limit_bytes, directory->space().limit_bytes());
  return std::min(ahead_bytes_max_, limit_bytes / kAheadShare);
}

std::vector<PlannedReads::PieceRun> PlannedReads::append(Plan& plan,
                                                         const std::vector<PlannedRead>& reads) {
  std::vector<PieceRun> runs;
  runs.reserve(reads.size());
  for (const PlannedRead& read : reads) {
    const auto [number, is_new] = plan.numbers.try_emplace(
        read.object.digest(), static_cast<std::uint32_t>(plan.objects.size()));
    if (is_new) {
      plan.objects.push_back(read.object);
      plan.payers.push_back(read.account == nullptr ? plan.account : read.account);
    }
    const std::uint64_t begin = std::min(read.range.offset, read.object.size());
    const std::uint64_t end = begin + std::min(read.range.length, read.object.size() - begin);
    const auto first = static_cast<std::uint32_t>(begin / kPlannedPieceBytes);
    const auto past =
        static_cast<std::uint32_t>((end + kPlannedPieceBytes - 1) / kPlannedPieceBytes);
    PieceRun run{
        .object = number->second, .first = first, .count = begin == end ? 0 : past - first};
    run.is_bounded = read.around != PlannedRead::kEverything;
    run.fetched =
        common_units(units_of_pieces(run.first, run.count), units_of({0, read.object.size()}));
    if (run.is_bounded) {
      // At least what is read, whatever the job said.
      const std::uint64_t around_begin = std::min(read.around.offset, begin);
      const std::uint64_t around_end =
          std::max(std::min(read.around.end(), read.object.size()), end);
      run.fetched = common_units(run.fetched, units_of({around_begin, around_end - around_begin}));
    }
    runs.push_back(run);
  }
  return runs;
}

std::vector<std::vector<CacheSpace::PlannedUse>> PlannedReads::uses_of(
    const Plan& plan, const std::vector<PieceRun>& runs) {
  std::vector<std::vector<CacheSpace::PlannedUse>> uses(parts_.directories.all().size());
  for (const PieceRun& run : runs) {
    const ObjectVersion& object = plan.objects[run.object];
    auto& of_directory = uses[directory_of(object)];
    for (std::uint32_t n = 0; n < run.blocks(); ++n) {
      const std::uint32_t block = run.first_block() + n;
      const ByteRange bytes = bytes_of({block * kBlockUnits, kBlockUnits}, object.size());
      of_directory.push_back({object.digest(), block, static_cast<std::uint32_t>(bytes.length)});
    }
  }
  return uses;
}

Result<PlanId> PlannedReads::announce(const RequestContext& context,
                                      const std::vector<PlannedRead>& reads) {
  MR_RETURN_IF_ERROR(context.check(parts_.clock));
  Plan plan;
  plan.account = context.account();
  const std::vector<PieceRun> runs = append(plan, reads);
  const auto uses = uses_of(plan, runs);
  const auto& directories = parts_.directories.all();
  for (std::size_t i = 0; i < directories.size(); ++i) {
    Result<PlanId> part = directories[i]->space().announce(uses[i]);
    if (!part) {
      for (std::size_t j = 0; j < i; ++j)
        directories[j]->space().withdraw(plan.directory_plans[j]);
      return failure(std::move(part).error());
    }
    plan.directory_plans.push_back(*part);
    plan.directory_positions.push_back(0);
  }
  plan.runs.assign(runs.begin(), runs.end());
  std::vector<Prefetch> prefetches;
  PlanId id;
  {
    MutexLock lock(mutex_);
    id = PlanId(++last_id_);
    prefetches = take_prefetches(plans_.emplace(id, std::move(plan)).first->second);
  }
  send(prefetches);
  return id;
}

Status PlannedReads::extend(const RequestContext& context, PlanId id,
                            const std::vector<PlannedRead>& reads) {
  MR_RETURN_IF_ERROR(context.check(parts_.clock));
  std::vector<Prefetch> prefetches;
  {
    MutexLock lock(mutex_);
    const auto found = plans_.find(id);
    if (found == plans_.end()) return plan_is_gone(id);
    Plan& plan = found->second;
    const std::vector<PieceRun> runs = append(plan, reads);
    const auto uses = uses_of(plan, runs);
    const auto& directories = parts_.directories.all();
    for (std::size_t i = 0; i < directories.size(); ++i)
      MR_RETURN_IF_ERROR(directories[i]->space().extend(plan.directory_plans[i], uses[i]));
    plan.runs.insert(plan.runs.end(), runs.begin(), runs.end());
    prefetches = take_prefetches(plan);
  }
  send(prefetches);
  return {};
}

Status PlannedReads::advance(PlanId id, std::uint64_t reads_done) {
  std::vector<Prefetch> prefetches;
  {
    MutexLock lock(mutex_);
    const auto found = plans_.find(id);
    if (found == plans_.end()) return plan_is_gone(id);
    Plan& plan = found->second;
    if (reads_done > plan.done + plan.runs.size()) {
      return {StatusCode::kInvalidArgument,
              fmt::format("the plan has {} reads, and {} cannot be done",
                          plan.done + plan.runs.size(), reads_done)};
    }
    // Reports of concurrent readers may overtake each other.
    for (; plan.done < reads_done; ++plan.done) {
      const PieceRun& run = plan.runs.front();
      plan.directory_positions[directory_of(plan.objects[run.object])] += run.blocks();
      if (plan.fetched > plan.done) {
        leave(plan, run);
      } else {
        ++plan.fetched;
      }
      plan.runs.pop_front();
    }
    const auto& directories = parts_.directories.all();
    for (std::size_t i = 0; i < directories.size(); ++i) {
      MR_RETURN_IF_ERROR(
          directories[i]->space().advance(plan.directory_plans[i], plan.directory_positions[i]));
    }
    prefetches = take_prefetches(plan);
  }
  send(prefetches);
  return {};
}

void PlannedReads::withdraw(PlanId id) {
  MutexLock lock(mutex_);
  const auto found = plans_.find(id);
  if (found == plans_.end()) return;
  const auto& directories = parts_.directories.all();
  for (std::size_t i = 0; i < directories.size(); ++i)
    directories[i]->space().withdraw(found->second.directory_plans[i]);
  for (const ObjectVersion& version : found->second.objects) {
    if (const auto object = objects_.find(version.digest()))
      object->set_planned(PlannedFetches::kNone);
  }
  plans_.erase(found);
}

std::vector<PlannedReads::Prefetch> PlannedReads::take_prefetches(Plan& plan) {
  std::vector<Prefetch> prefetches;
  // Where in those a piece is: what several reads want of one is sent for together.
  std::unordered_map<PieceId, std::size_t> places;
  const std::uint64_t bytes_max = ahead_bytes_max();
  while (plan.fetched < plan.done + plan.runs.size() && plan.ahead_bytes < bytes_max) {
    const PieceRun& run = plan.runs[plan.fetched - plan.done];
    const ObjectVersion& object = plan.objects[run.object];
    for (std::uint32_t piece = run.first; piece < run.end(); ++piece) {
      const PieceId id = piece_id(run.object, piece);
      PieceAhead& ahead = plan.ahead[id];
      ++ahead.reads;
      const PieceUnits units = units_in_piece(piece, run.fetched) & ~ahead.sent_for;
      if (units == 0) continue;
      ahead.sent_for |= units;
      plan.ahead_bytes += bytes_of_units(object, piece, units);
      const auto [place, is_new] = places.try_emplace(id, prefetches.size());
      if (is_new) {
        prefetches.push_back({.object = object,
                              .piece = piece,
                              .is_bounded = run.is_bounded,
                              .account = plan.payers[run.object]});
      }
      prefetches[place->second].units |= units;
    }
    ++plan.fetched;
  }
  return prefetches;
}

void PlannedReads::leave(Plan& plan, const PieceRun& run) {
  for (std::uint32_t piece = run.first; piece < run.end(); ++piece) {
    const auto found = plan.ahead.find(piece_id(run.object, piece));
    if (--found->second.reads > 0) continue;
    plan.ahead_bytes -= bytes_of_units(plan.objects[run.object], piece, found->second.sent_for);
    plan.ahead.erase(found);
  }
}

void PlannedReads::send(const std::vector<Prefetch>& prefetches) {
  for (const Prefetch& prefetch : prefetches) {
    const std::shared_ptr<CachedObject> object = objects_.find_or_add(prefetch.object);
    object->set_planned(prefetch.is_bounded ? PlannedFetches::kBounded : PlannedFetches::kPieces);
    for_each_run(prefetch.piece, prefetch.units, [&](UnitRange units) {
      fetch_ahead(parts_, object, units, std::min(parts_.fetch_units_max, kPlannedPieceUnits),
                  prefetch.account);
    });
  }
}

}  // namespace millrace
