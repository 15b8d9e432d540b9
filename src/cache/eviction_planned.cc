#include "cache/eviction_planned.h"

#include <algorithm>
#include <cassert>

namespace millrace {

// The heap of the plan, or an empty one that serves no plan.
PlannedOrder::Heap& PlannedOrder::heap_of(PlanId plan) {
  auto found = std::ranges::find(heaps_, plan, &Heap::plan);
  if (found == heaps_.end()) {
    found = std::ranges::find_if(
        heaps_, [](const Heap& heap) { return heap.plan == PlanId() && heap.items.empty(); });
  }
  if (found == heaps_.end()) found = heaps_.insert(heaps_.end(), Heap{});
  found->plan = plan;
  return *found;
}

void PlannedOrder::put(EntrySlot slot, const NextUse& use) {
  BlockEntry& entry = table_[slot];
  assert(entry.place == BlockPlace::kNone);
  Heap& heap = heap_of(use.plan);
  entry.place = BlockPlace::kPlanned;
  entry.next = static_cast<std::uint32_t>(&heap - heaps_.data());
  heap.items.push_back({.position_high = static_cast<std::uint32_t>(use.position >> 32),
                        .position_low = static_cast<std::uint32_t>(use.position),
                        .slot = slot});
  bytes_ += entry.bytes;
  sift_up(heap, heap.items.size() - 1);
}

void PlannedOrder::remove(EntrySlot slot) {
  BlockEntry& entry = table_[slot];
  Heap& heap = heaps_[entry.next];
  const std::size_t gap = entry.previous;
  const Item last = heap.items.back();
  heap.items.pop_back();
  if (gap < heap.items.size()) {
    set(heap, gap, last);
    sift_up(heap, gap);
    sift_down(heap, table_[last.slot].previous);
  }
  if (heap.items.size() * 4 < heap.items.capacity()) heap.items.shrink_to_fit();
  bytes_ -= entry.bytes;
  entry.place = BlockPlace::kNone;
}

void PlannedOrder::resize(EntrySlot slot, std::uint32_t bytes) {
  bytes_ = bytes_ - table_[slot].bytes + bytes;
  table_[slot].bytes = bytes;
}

void PlannedOrder::orphan(PlanId plan) {
  const auto found = std::ranges::find(heaps_, plan, &Heap::plan);
  if (found != heaps_.end()) found->plan = PlanId();
}

EntrySlot PlannedOrder::any_orphan() const {
  for (const Heap& heap : heaps_) {
    if (heap.plan == PlanId() && !heap.items.empty()) return heap.items.back().slot;
  }
  return kNoEntry;
}

std::optional<PlannedOrder::Furthest> PlannedOrder::furthest(const ReadPlans& plans) {
  while (true) {
    auto top = furthest_as_filed(plans);
    if (!top) return top;
    const BlockEntry& entry = table_[top->slot];
    const auto use = plans.next_use(entry.block);
    assert(use);
    if (use->distance_bytes == top->distance_bytes) return top;
    // Another plan has come to use it sooner.
    remove(top->slot);
    put(top->slot, *use);
  }
}

std::optional<PlannedOrder::Furthest> PlannedOrder::furthest_as_filed(
    const ReadPlans& plans) const {
  std::optional<Furthest> furthest;
  for (const Heap& heap : heaps_) {
    if (heap.plan == PlanId() || heap.items.empty()) continue;
    const auto distance = plans.distance_bytes(heap.plan, heap.items.front().position());
    assert(distance);
    if (furthest && furthest->distance_bytes >= *distance) continue;
    furthest = Furthest{.slot = heap.items.front().slot, .distance_bytes = *distance};
  }
  return furthest;
}

void PlannedOrder::set(Heap& heap, std::size_t index, const Item& item) {
  heap.items[index] = item;
  table_[item.slot].previous = static_cast<std::uint32_t>(index);
}

void PlannedOrder::sift_up(Heap& heap, std::size_t index) {
  const Item item = heap.items[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (heap.items[parent].position() >= item.position()) break;
    set(heap, index, heap.items[parent]);
    index = parent;
  }
  set(heap, index, item);
}

void PlannedOrder::sift_down(Heap& heap, std::size_t index) {
  const Item item = heap.items[index];
  while (true) {
    std::size_t child = 2 * index + 1;
    if (child >= heap.items.size()) break;
    if (child + 1 < heap.items.size() &&
        heap.items[child + 1].position() > heap.items[child].position())
      ++child;
    if (heap.items[child].position() <= item.position()) break;
    set(heap, index, heap.items[child]);
    index = child;
  }
  set(heap, index, item);
}

std::size_t PlannedOrder::memory_bytes() const {
  std::size_t items = 0;
  for (const Heap& heap : heaps_)
    items += heap.items.capacity();
  return items * sizeof(Item);
}

}  // namespace millrace
