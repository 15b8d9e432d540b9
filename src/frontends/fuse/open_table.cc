#include "frontends/fuse/open_table.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr std::uint64_t kMagic = 0x314e45504f524dULL;  // "MROPEN1"
constexpr std::uint32_t kPlaceBits = 20;
static_assert(OpenTable::kRecordsMax == 1U << kPlaceBits);

std::uint64_t handle_of(std::uint64_t unique, std::uint32_t place) {
  return (unique << kPlaceBits) | place;
}

template <class T>
void publish(T& place, T value) {
  std::atomic_ref<T>(place).store(value, std::memory_order_release);
}

}  // namespace

struct OpenTable::Head {
  std::uint64_t magic;
  std::int32_t last_backing;
  std::uint32_t end;
  std::int32_t removed_backing;
  std::uint32_t padding[11];
};

struct OpenTable::Slot {
  std::uint64_t unique;
  std::uint64_t node;
  std::int32_t backing;
  std::int32_t padding;
};

namespace {

constexpr std::size_t kHeadBytes = 64;
constexpr std::size_t kSlotBytes = 24;
constexpr std::size_t kTableBytes = kHeadBytes + OpenTable::kRecordsMax * kSlotBytes;

Result<void*> map_table(const File& memory) {
  void* const mapped =
      ::mmap(nullptr, kTableBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.descriptor(), 0);
  if (mapped == MAP_FAILED) return failure(file_error(errno, "map", memory.path()));
  return mapped;
}

}  // namespace

OpenTable::OpenTable(File memory, void* mapped)
    : memory_(std::move(memory)), head_(static_cast<Head*>(mapped)) {
  static_assert(sizeof(Head) == kHeadBytes && sizeof(Slot) == kSlotBytes);
}

OpenTable::OpenTable(OpenTable&& other) noexcept
    : memory_(std::move(other.memory_)),
      head_(std::exchange(other.head_, nullptr)),
      free_(std::move(other.free_)) {}

OpenTable::~OpenTable() {
  if (head_ != nullptr) ::munmap(head_, kTableBytes);
}

Result<OpenTable> OpenTable::create() {
  File memory = File::adopt(::memfd_create("millrace opens", MFD_CLOEXEC), "table of open files");
  if (!memory.is_open()) return failure(file_error(errno, "create", memory.path()));
  // Sparse: only records that are used take memory.
  MR_RETURN_IF_ERROR(memory.truncate(kTableBytes));
  MR_ASSIGN_OR_RETURN(void* const mapped, map_table(memory));
  OpenTable table(std::move(memory), mapped);
  table.head_->magic = kMagic;
  return table;
}

Result<OpenTable> OpenTable::adopt(File memory) {
  MR_ASSIGN_OR_RETURN(const std::uint64_t size, memory.size());
  if (size != kTableBytes) {
    return failure(StatusCode::kCorruption, "this is no table of open files: its size is wrong");
  }
  MR_ASSIGN_OR_RETURN(void* const mapped, map_table(memory));
  OpenTable table(std::move(memory), mapped);
  if (table.head_->magic != kMagic) {
    return failure(StatusCode::kCorruption, "this is no table of open files of this version");
  }
  if (table.head_->end > kRecordsMax) {
    return failure(StatusCode::kCorruption, "the table of open files ends behind its end");
  }
  for (std::uint32_t place = table.head_->end; place-- > 0;) {
    if (table.slot(place).unique == 0) table.free_.push_back(place);
  }
  return table;
}

OpenTable::Slot& OpenTable::slot(std::uint32_t place) const {
  return *reinterpret_cast<Slot*>(reinterpret_cast<std::byte*>(head_) + kHeadBytes +
                                  place * kSlotBytes);
}

Result<std::uint64_t> OpenTable::add(const Record& record) {
  if (free_.empty() && head_->end == kRecordsMax) {
    return failure(StatusCode::kResourceExhausted, "too many files are open in this mount");
  }
  std::uint32_t place = head_->end;
  if (free_.empty()) {
    publish(head_->end, place + 1);
  } else {
    place = free_.back();
    free_.pop_back();
  }
  Slot& slot = this->slot(place);
  slot.node = record.node.value();
  slot.backing = record.backing;
  publish(slot.unique, record.unique);
  return handle_of(record.unique, place);
}

std::optional<OpenTable::Record> OpenTable::remove(std::uint64_t handle) {
  const auto place = static_cast<std::uint32_t>(handle & (kRecordsMax - 1));
  if (place >= head_->end) return std::nullopt;
  Slot& slot = this->slot(place);
  if (slot.unique == 0 || handle_of(slot.unique, place) != handle) return std::nullopt;
  const Record record{slot.unique, NodeNumber(slot.node), slot.backing};
  publish(head_->removed_backing, slot.backing);
  publish(slot.unique, std::uint64_t{0});
  free_.push_back(place);
  return record;
}

std::optional<std::uint64_t> OpenTable::find(std::uint64_t unique) const {
  for (std::uint32_t place = 0; place < head_->end; ++place) {
    if (slot(place).unique == unique) return handle_of(unique, place);
  }
  return std::nullopt;
}

void OpenTable::visit(const std::function<void(const Record&)>& visitor) const {
  for (std::uint32_t place = 0; place < head_->end; ++place) {
    const Slot& slot = this->slot(place);
    if (slot.unique != 0) visitor({slot.unique, NodeNumber(slot.node), slot.backing});
  }
}

void OpenTable::note_backing(std::int32_t id) {
  if (id > head_->last_backing) publish(head_->last_backing, id);
}

std::int32_t OpenTable::last_backing() const { return head_->last_backing; }

std::int32_t OpenTable::removed_backing() const { return head_->removed_backing; }

}  // namespace millrace
