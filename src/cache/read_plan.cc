#include "cache/read_plan.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

Status no_such_plan(PlanId plan) {
  return {StatusCode::kNotFound,
          fmt::format("there is no read plan {}; it was withdrawn", plan.value())};
}

}  // namespace

Status ReadPlans::check_room(const ReadPlanStretch& reads) const {
  if (reads.memory_bytes() <= limits_.memory_bytes_max - memory_bytes_) return {};
  return {StatusCode::kResourceExhausted,
          fmt::format("a read plan of {} reads needs {} bytes, and of {} for plans {} are in use; "
                      "announce less at once",
                      reads.size(), reads.memory_bytes(), limits_.memory_bytes_max, memory_bytes_)};
}

Result<PlanId> ReadPlans::announce(ReadPlanStretch reads) {
  if (plans_.size() >= limits_.plans_max) {
    return failure(
        StatusCode::kResourceExhausted,
        fmt::format("there are {} read plans already, the most there may be", plans_.size()));
  }
  MR_RETURN_IF_ERROR(check_room(reads));
  const PlanId id(++last_id_);
  append(plans_[id], std::move(reads));
  return id;
}

Status ReadPlans::extend(PlanId plan, ReadPlanStretch reads) {
  const auto found = plans_.find(plan);
  if (found == plans_.end()) return no_such_plan(plan);
  MR_RETURN_IF_ERROR(check_room(reads));
  append(found->second, std::move(reads));
  return {};
}

void ReadPlans::append(Plan& plan, ReadPlanStretch reads) {
  if (reads.size() == 0) return;
  memory_bytes_ += reads.memory_bytes();
  const std::uint64_t first_position = plan.end_position;
  const std::uint64_t first_byte = plan.end_byte;
  plan.end_position += reads.size();
  plan.end_byte += reads.bytes_before(reads.size());
  plan.stretches.push_back(
      {.first_position = first_position, .first_byte = first_byte, .reads = std::move(reads)});
}

Result<std::uint64_t> ReadPlans::advance(PlanId plan, std::uint64_t position,
                                         const std::function<void(BlockId)>& changed) {
  const auto found = plans_.find(plan);
  if (found == plans_.end()) return failure(no_such_plan(plan));
  Plan& advancing = found->second;
  if (position > advancing.end_position) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("position {} is past the {} reads that plan {} announced", position,
                               advancing.end_position, plan.value()));
  }
  const std::uint64_t byte_before = advancing.byte;
  while (advancing.position < position)
    step(advancing, changed);
  return advancing.byte - byte_before;
}

void ReadPlans::step(Plan& plan, const std::function<void(BlockId)>& changed) {
  PlacedStretch& stretch = plan.stretches.front();
  const std::size_t index = plan.position - stretch.first_position;
  const PlannedBlock read = stretch.reads.read(index);
  const bool was_next = stretch.reads.consume(index);
  ++plan.position;
  plan.byte += read.bytes;
  if (plan.position == stretch.end_position()) {
    memory_bytes_ -= stretch.reads.memory_bytes();
    plan.stretches.pop_front();
  }
  if (was_next) changed(read.block);
}

bool ReadPlans::withdraw(PlanId plan) {
  const auto found = plans_.find(plan);
  if (found == plans_.end()) return false;
  for (const PlacedStretch& stretch : found->second.stretches)
    memory_bytes_ -= stretch.reads.memory_bytes();
  plans_.erase(found);
  return true;
}

std::optional<std::uint64_t> ReadPlans::next_position(const Plan& plan, BlockId block) {
  for (const PlacedStretch& stretch : plan.stretches) {
    const auto index = stretch.reads.next_read(block);
    if (index) return stretch.first_position + *index;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ReadPlans::position_after(const Plan& plan, BlockId block,
                                                       std::uint64_t position) {
  for (const PlacedStretch& stretch : plan.stretches) {
    if (stretch.end_position() <= position) continue;
    const auto index = stretch.first_position <= position
                           ? stretch.reads.read_after(position - stretch.first_position)
                           : stretch.reads.next_read(block);
    if (index) return stretch.first_position + *index;
  }
  return std::nullopt;
}

const ReadPlans::PlacedStretch& ReadPlans::stretch_at(const Plan& plan, std::uint64_t position) {
  return *std::ranges::find_if(plan.stretches, [position](const PlacedStretch& stretch) {
    return position < stretch.end_position();
  });
}

std::uint64_t ReadPlans::distance_bytes(const Plan& plan, std::uint64_t position) {
  const PlacedStretch& stretch = stretch_at(plan, position);
  return stretch.first_byte + stretch.reads.bytes_before(position - stretch.first_position) -
         plan.byte;
}

std::optional<NextUse> ReadPlans::next_use(BlockId block) const {
  return next_use_after_read(block, PlanId());
}

std::optional<NextUse> ReadPlans::next_use_after_read(BlockId block, PlanId reader) const {
  std::optional<NextUse> nearest;
  for (const auto& [id, plan] : plans_) {
    auto position = next_position(plan, block);
    if (position && id == reader) position = position_after(plan, block, *position);
    if (!position) continue;
    const std::uint64_t distance = distance_bytes(plan, *position);
    if (nearest && nearest->distance_bytes <= distance) continue;
    nearest = NextUse{.plan = id, .position = *position, .distance_bytes = distance};
  }
  return nearest;
}

std::optional<std::uint64_t> ReadPlans::distance_bytes(PlanId plan, std::uint64_t position) const {
  const auto found = plans_.find(plan);
  if (found == plans_.end() || position < found->second.position ||
      position >= found->second.end_position)
    return std::nullopt;
  return distance_bytes(found->second, position);
}

std::vector<UpcomingRead> ReadPlans::upcoming(PlanId plan, std::uint64_t from,
                                              std::uint64_t bytes_ahead,
                                              std::size_t count_max) const {
  std::vector<UpcomingRead> reads;
  const auto found = plans_.find(plan);
  if (found == plans_.end()) return reads;
  const Plan& ahead = found->second;
  std::uint64_t position = std::max(from, ahead.position);
  if (position >= ahead.end_position) return reads;
  std::uint64_t distance = distance_bytes(ahead, position);
  while (position < ahead.end_position && distance < bytes_ahead && reads.size() < count_max) {
    const PlacedStretch& stretch = stretch_at(ahead, position);
    reads.push_back(
        {.position = position, .read = stretch.reads.read(position - stretch.first_position)});
    distance += reads.back().read.bytes;
    ++position;
  }
  return reads;
}

std::optional<std::uint64_t> ReadPlans::position(PlanId plan) const {
  const auto found = plans_.find(plan);
  if (found == plans_.end()) return std::nullopt;
  return found->second.position;
}

}  // namespace millrace
