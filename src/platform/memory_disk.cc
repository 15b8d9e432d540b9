#include "platform/memory_disk.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ranges>

#include <fmt/format.h>

#include "base/mutex.h"
#include "platform/file_error.h"
#include "platform/memory_disk_node.h"
#include "platform/path.h"

namespace millrace {
namespace {

using NodePtr = std::shared_ptr<MemoryNode>;

// As every file system has a limit. Holes of ours take memory.
constexpr std::uint64_t kFileBytesMax = kTiB;

std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> components;
  for (const auto part : std::views::split(path, '/')) {
    const std::string_view name(part.begin(), part.end());
    if (!name.empty() && name != ".") components.emplace_back(name);
  }
  return components;
}

}  // namespace

struct MemoryDisk::State {
  explicit State(std::uint64_t total) : total_bytes(total) {}

  const std::uint64_t total_bytes;

  mutable Mutex mutex;
  NodePtr root MR_GUARDED_BY(mutex) = std::make_shared<MemoryNode>(true);
  UnsyncedNames unsynced_names MR_GUARDED_BY(mutex);
  // Rises with every power loss, so that files opened before it can tell.
  std::uint64_t boot MR_GUARDED_BY(mutex) = 0;
  // Files that are open but have no name still take space.
  std::vector<std::weak_ptr<MemoryNode>> files MR_GUARDED_BY(mutex);

  Result<NodePtr> find(const std::string& path, std::string_view action) const MR_REQUIRES(mutex) {
    NodePtr node = root;
    for (const std::string& name : components_of(path)) {
      if (!node->is_directory) return failure(file_error(ENOTDIR, action, path));
      const auto entry = node->entries.find(name);
      if (entry == node->entries.end()) return failure(file_error(ENOENT, action, path));
      node = entry->second;
    }
    return node;
  }

  Result<NodePtr> find_directory(const std::string& path, std::string_view action) const
      MR_REQUIRES(mutex) {
    MR_ASSIGN_OR_RETURN(NodePtr node, find(path, action));
    if (!node->is_directory) return failure(file_error(ENOTDIR, action, path));
    return node;
  }

  std::uint64_t used_bytes() MR_REQUIRES(mutex) {
    std::erase_if(files, [](const auto& file) { return file.expired(); });
    std::uint64_t total = 0;
    for (const auto& file : files) {
      if (const NodePtr node = file.lock()) total += node->content.allocated_bytes();
    }
    return total;
  }

  // Holes are free, so a file may be larger than the disk.
  Status check_write(const MemoryNode& node, std::uint64_t offset, std::uint64_t length,
                     const std::string& path) MR_REQUIRES(mutex) {
    if (offset > kFileBytesMax || length > kFileBytesMax - offset) {
      return file_error(EFBIG, "write", path);
    }
    const std::uint64_t growth = node.content.unallocated_bytes(offset, length);
    if (growth == 0) return {};
    const std::uint64_t used = used_bytes();
    return used <= total_bytes && growth <= total_bytes - used ? Status()
                                                               : file_error(ENOSPC, "write", path);
  }

  // The file at `path`, made empty when absent.
  Result<NodePtr> find_or_create_file(const std::string& path, std::string_view action)
      MR_REQUIRES(mutex) {
    Result<NodePtr> node = find(path, action);
    if (node && (*node)->is_directory) return failure(file_error(EISDIR, action, path));
    if (node || node.error().code() != StatusCode::kNotFound) return node;
    MR_ASSIGN_OR_RETURN(NodePtr parent, find_directory(std::string(parent_path(path)), action));
    node = std::make_shared<MemoryNode>(false);
    (*node)->modified = system_clock().wall_now();
    files.push_back(*node);
    unsynced_names.apply({{std::move(parent), std::string(base_name(path)), *node}});
    return node;
  }
};

class MemoryDisk::OpenFile final : public DiskFile {
 public:
  OpenFile(State& state, NodePtr node, std::string path, bool writable, std::uint64_t boot)
      : state_(state),
        node_(std::move(node)),
        path_(std::move(path)),
        writable_(writable),
        boot_(boot) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteView into) override {
    MutexLock lock(state_.mutex);
    MR_RETURN_IF_ERROR(check_powered("read"));
    return node_->content.read(offset, into);
  }

  Result<bool> read_now(std::uint64_t offset, MutableByteView into) override {
    MR_ASSIGN_OR_RETURN(const std::size_t count, read_at(offset, into));
    return count == into.size();
  }

  Status write_past_cache(std::uint64_t offset, ByteView from) override {
    return write_at(offset, from);
  }
  Status write_at(std::uint64_t offset, ByteView from) override {
    MutexLock lock(state_.mutex);
    MR_RETURN_IF_ERROR(check_writable("write"));
    MR_RETURN_IF_ERROR(state_.check_write(*node_, offset, from.size(), path_));
    node_->write(offset, from);
    return {};
  }

  Status punch(std::uint64_t offset, std::uint64_t length) override {
    MutexLock lock(state_.mutex);
    MR_RETURN_IF_ERROR(check_writable("free space of"));
    node_->punch(offset, length);
    return {};
  }

  Status sync() override {
    MutexLock lock(state_.mutex);
    MR_RETURN_IF_ERROR(check_powered("sync"));
    node_->sync();
    return {};
  }

  Status truncate(std::uint64_t size) override {
    MutexLock lock(state_.mutex);
    MR_RETURN_IF_ERROR(check_writable("truncate"));
    if (size > kFileBytesMax) return file_error(EFBIG, "truncate", path_);
    node_->truncate(size);
    return {};
  }

  Result<std::uint64_t> size() override {
    MutexLock lock(state_.mutex);
    MR_RETURN_IF_ERROR(check_powered("stat"));
    return node_->content.size();
  }

  std::optional<int> descriptor() const override { return std::nullopt; }
  const std::string& path() const override { return path_; }

 private:
  Status check_powered(std::string_view action) const MR_REQUIRES(state_.mutex) {
    return boot_ == state_.boot ? Status() : file_error(EIO, action, path_);
  }
  Status check_writable(std::string_view action) const MR_REQUIRES(state_.mutex) {
    return writable_ ? check_powered(action) : file_error(EBADF, action, path_);
  }

  // Constant after construction; the node's inside is guarded by state_.mutex.
  State& state_;
  const NodePtr node_;
  const std::string path_;
  const bool writable_;
  const std::uint64_t boot_;
};

class MemoryDisk::OpenLock final : public DiskLock {
 public:
  OpenLock(State& state, NodePtr node, std::uint64_t boot)
      : state_(state), node_(std::move(node)), boot_(boot) {}
  ~OpenLock() override {
    MutexLock lock(state_.mutex);
    // After a power loss it may be another's by now.
    if (boot_ != state_.boot) return;
    node_->locked_in_boot.reset();
    node_->truncate(0);
  }
  OpenLock(const OpenLock&) = delete;
  OpenLock& operator=(const OpenLock&) = delete;

 private:
  // Constant after construction; the node's inside is guarded by state_.mutex.
  State& state_;
  const NodePtr node_;
  const std::uint64_t boot_;
};

MemoryDisk::MemoryDisk(std::uint64_t total_bytes) : state_(std::make_unique<State>(total_bytes)) {}
MemoryDisk::~MemoryDisk() = default;

Result<std::unique_ptr<DiskFile>> MemoryDisk::open(const std::string& path, OpenMode mode) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  const bool creates = mode == OpenMode::kCreate || mode == OpenMode::kCreateNew;
  if (mode == OpenMode::kCreateNew && state.find(path, "open")) {
    return failure(file_error(EEXIST, "open", path));
  }
  MR_ASSIGN_OR_RETURN(NodePtr node,
                      creates ? state.find_or_create_file(path, "open") : state.find(path, "open"));
  if (node->is_directory) return failure(file_error(EISDIR, "open", path));
  return std::make_unique<OpenFile>(state, std::move(node), path, mode != OpenMode::kRead,
                                    state.boot);
}

Status MemoryDisk::rename(const std::string& from, const std::string& to, Replace replace) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  MR_ASSIGN_OR_RETURN(const NodePtr node, state.find(from, "rename"));
  MR_ASSIGN_OR_RETURN(const NodePtr from_parent,
                      state.find_directory(std::string(parent_path(from)), "rename"));
  MR_ASSIGN_OR_RETURN(const NodePtr to_parent,
                      state.find_directory(std::string(parent_path(to)), "rename to"));
  const std::string to_name(base_name(to));
  if (const auto target = to_parent->entries.find(to_name); target != to_parent->entries.end()) {
    if (replace == Replace::kRefused) return file_error(EEXIST, "rename to", to);
    if (target->second == node) return {};
    if (target->second->is_directory != node->is_directory) {
      return file_error(node->is_directory ? ENOTDIR : EISDIR, "rename to", to);
    }
    if (!target->second->entries.empty()) return file_error(ENOTEMPTY, "rename to", to);
  }
  state.unsynced_names.apply(
      {{from_parent, std::string(base_name(from)), nullptr}, {to_parent, to_name, node}});
  return {};
}

Status MemoryDisk::remove(const std::string& path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  MR_ASSIGN_OR_RETURN(const NodePtr node, state.find(path, "remove"));
  if (node == state.root) return file_error(EBUSY, "remove", path);
  if (!node->entries.empty()) return file_error(ENOTEMPTY, "remove", path);
  MR_ASSIGN_OR_RETURN(NodePtr parent,
                      state.find_directory(std::string(parent_path(path)), "remove"));
  state.unsynced_names.apply({{std::move(parent), std::string(base_name(path)), nullptr}});
  return {};
}

Result<std::vector<DirectoryEntry>> MemoryDisk::list(const std::string& path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  MR_ASSIGN_OR_RETURN(const NodePtr node, state.find_directory(path, "list"));
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, child] : node->entries) {
    entries.push_back({name, child->is_directory ? FileKind::kDirectory : FileKind::kFile});
  }
  return entries;
}

Status MemoryDisk::make_directories(const std::string& path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  NodePtr node = state.root;
  for (const std::string& name : components_of(path)) {
    if (!node->is_directory) return file_error(ENOTDIR, "make directory", path);
    auto entry = node->entries.find(name);
    if (entry == node->entries.end()) {
      state.unsynced_names.apply({{node, name, std::make_shared<MemoryNode>(true)}});
      entry = node->entries.find(name);
    }
    state.unsynced_names.sync(node.get());
    node = entry->second;
  }
  return node->is_directory ? Status() : file_error(ENOTDIR, "make directory", path);
}

Status MemoryDisk::make_directory(const std::string& path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  MR_ASSIGN_OR_RETURN(const NodePtr parent,
                      state.find_directory(std::string(parent_path(path)), "make directory"));
  const std::string name(base_name(path));
  if (const auto entry = parent->entries.find(name); entry != parent->entries.end()) {
    return entry->second->is_directory ? Status() : file_error(ENOTDIR, "make directory", path);
  }
  state.unsynced_names.apply({{parent, name, std::make_shared<MemoryNode>(true)}});
  return {};
}

Status MemoryDisk::sync_directory(const std::string& path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  MR_ASSIGN_OR_RETURN(const NodePtr node, state.find_directory(path, "sync"));
  state.unsynced_names.sync(node.get());
  return {};
}

Result<FileFacts> MemoryDisk::stat(const std::string& path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  MR_ASSIGN_OR_RETURN(const NodePtr node, state.find(path, "stat"));
  return FileFacts{.kind = node->is_directory ? FileKind::kDirectory : FileKind::kFile,
                   .size = node->content.size(),
                   .allocated_bytes = node->content.allocated_bytes(),
                   .modified = node->modified};
}

Result<DiskSpace> MemoryDisk::space(const std::string& path) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  if (Result<NodePtr> node = state.find(path, "ask for the free space of"); !node) {
    return failure(node.error());
  }
  const std::uint64_t used = state.used_bytes();
  return DiskSpace{.total_bytes = state.total_bytes,
                   .free_bytes = state.total_bytes - std::min(used, state.total_bytes)};
}

Result<std::unique_ptr<DiskLock>> MemoryDisk::lock(const std::string& path,
                                                   std::string_view owner) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  MR_ASSIGN_OR_RETURN(NodePtr node, state.find_or_create_file(path, "lock"));
  if (node->locked_in_boot == state.boot) {
    std::array<std::byte, kLockTextBytesMax> text;
    const std::size_t length = node->content.read(0, text);
    return failure(lock_conflict(path, as_text(ByteView(text).first(length))));
  }
  node->locked_in_boot = state.boot;
  node->truncate(0);
  const std::string line = fmt::format("{}\n", owner);
  if (state.check_write(*node, 0, line.size(), path).ok()) node->write(0, as_bytes(line));
  return std::make_unique<OpenLock>(state, std::move(node), state.boot);
}

void MemoryDisk::simulate_power_loss(std::uint64_t seed) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  std::mt19937_64 random(seed);
  ++state.boot;
  state.unsynced_names.lose_power(random);
  std::vector<NodePtr> directories = {state.root};
  while (!directories.empty()) {
    const NodePtr directory = directories.back();
    directories.pop_back();
    directory->entries = directory->synced_entries;
    for (const auto& [name, child] : directory->entries) {
      if (child->is_directory) {
        directories.push_back(child);
      } else {
        child->lose_power(random);
      }
    }
  }
}

}  // namespace millrace
