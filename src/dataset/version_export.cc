#include "dataset/version_export.h"

#include <array>
#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "base/task_group.h"
#include "dataset/manifest_cursor.h"
#include "dataset/pack_builder.h"
#include "dataset/pack_planner.h"
#include "dataset/sample_name.h"
#include "dataset/version_source.h"

namespace millrace {
namespace {

std::string sample_base_of(const SourceEntry& file) {
  const auto name = sample_name(file.path);
  return name ? std::string(name->base) : std::string();
}

// Writes what the planner decides. What it would make objects of their own becomes shards, too: one
// for each sample, however large. add_pack() and add_object() belong to one thread.
class ShardWriter final : public PackPlanSink {
 public:
  ShardWriter(const RequestContext& context, const VersionReader& reader, ObjectStore& target,
              BufferPool& buffers, const ExportOptions& options)
      : reader_(reader),
        target_(target),
        options_(options),
        builder_(target, buffers),
        tasks_(context, options.parallel) {}

  Status add_pack(PlannedPack pack) override {
    MR_RETURN_IF_ERROR(close_large());
    return start(std::move(pack));
  }

  Status add_object(SourceEntry file) override {
    const std::string base = sample_base_of(file);
    if (base.empty() || base != large_base_) MR_RETURN_IF_ERROR(close_large());
    large_base_ = base;
    MR_ASSIGN_OR_RETURN(const std::uint64_t header,
                        tar_header_bytes(pack_tar_member(file), kPackTimes));
    const std::uint64_t content = large_.bytes + header;
    large_.bytes = content + tar_padded(file.size);
    large_.members.push_back({.file = std::move(file), .content_offset = content});
    return {};
  }

  Status finish() {
    MR_RETURN_IF_ERROR(close_large());
    return tasks_.wait();
  }

  std::uint64_t shards() const { return shards_; }
  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Status close_large() {
    if (large_.members.empty()) return {};
    PlannedPack pack = std::exchange(large_, {});
    pack.bytes += kTarEndBytes;
    return start(std::move(pack));
  }

  Status start(PlannedPack pack) {
    const ObjectKey key(fmt::format("{}{:08}.tar", options_.prefix, shards_++));
    return tasks_.add([this, key, pack = std::move(pack)](const RequestContext& context) {
      return write(context, pack, key);
    });
  }

  Status write(const RequestContext& context, const PlannedPack& pack, const ObjectKey& key) {
    VersionSource source(reader_);
    MR_ASSIGN_OR_RETURN(const BuiltPack built,
                        builder_.build(context, source, pack, key, {.size_hint = pack.bytes}));
    if (const Status status = check_pack_content(reader_, pack, built); !status.ok()) {
      const std::array keys = {key};
      (void)target_.remove(context, keys);  // The damage is what the user must hear of.
      return status;
    }
    files_ += pack.members.size();
    bytes_ += pack.bytes;
    options_.stored(pack.bytes);
    return {};
  }

  const VersionReader& reader_;
  ObjectStore& target_;
  const ExportOptions& options_;
  PackBuilder builder_;
  PlannedPack large_;
  std::string large_base_;
  std::uint64_t shards_ = 0;
  std::atomic<std::uint64_t> files_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  TaskGroup tasks_;  // Last: its tasks use the members above.
};

// Shards of another version between ours would look like part of it.
Status check_nothing_below(const RequestContext& context, ObjectStore& target,
                           const std::string& prefix) {
  ListRequest request;
  request.prefix = prefix;
  request.entries_max = 1;
  MR_ASSIGN_OR_RETURN(const ListPage page, target.list(context, request));
  if (page.objects.empty()) return {};
  return {StatusCode::kConflict,
          fmt::format("'{}' is there already in {}: name a place with nothing in it",
                      page.objects.front().key.value(), target.describe())};
}

}  // namespace

Result<ExportTotals> export_version(const RequestContext& context, const VersionReader& reader,
                                    ObjectStore& target, BufferPool& buffers,
                                    const ExportOptions& options) {
  MR_RETURN_IF_ERROR(check_nothing_below(context, target, options.prefix));
  ShardWriter writer(context, reader, target, buffers, options);
  PackPlanner planner({.file_bytes_max = options.shard_bytes, .target_bytes = options.shard_bytes},
                      writer);
  ManifestCursor cursor(reader.manifest());
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) break;
    if (item->entry.kind() != EntryKind::kFile) continue;
    MR_ASSIGN_OR_RETURN(
        SourceEntry file,
        VersionSource::source_entry(reader.manifest(), item->entry, std::string(item->path)));
    MR_RETURN_IF_ERROR(planner.add(std::move(file)));
  }
  MR_RETURN_IF_ERROR(planner.finish());
  MR_RETURN_IF_ERROR(writer.finish());
  return ExportTotals{.shards = writer.shards(),
                      .files = writer.files(),
                      .bytes = writer.bytes(),
                      .left_out_symlinks = reader.manifest().totals().symlinks};
}

}  // namespace millrace
