#include "service/sample_counting.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/task_group.h"
#include "base/units.h"
#include "dataset/manifest.h"
#include "dataset/manifest_cursor.h"
#include "dataset/sample_index_builder.h"
#include "dataset/sample_index_store.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

// How soon a call-off is noticed at the latest.
constexpr Duration kWaitSlice = std::chrono::milliseconds(100);
constexpr Duration kShardReadTimeout = std::chrono::minutes(5);
// What is read of a shard at a time: little at its begin and behind a jump over the content of a
// member, since another jump may follow, and twice as much each time that it is read on.
constexpr std::uint64_t kWindowBytesMin = 64 * kKiB;
constexpr std::uint64_t kWindowBytesMax = kMiB;

// The bytes of one shard, a window at a time. Needs one thread at a time.
class ShardWindow {
 public:
  ShardWindow(SampleFiles& files, const ManifestEntry& entry, EntryIndex index)
      : files_(files), index_(index), bytes_(entry.size()) {}

  Result<std::size_t> read_at(const RequestContext& context, std::uint64_t offset,
                              MutableByteView into) {
    std::size_t got = 0;
    while (got < into.size() && offset + got < bytes_) {
      MR_RETURN_IF_ERROR(cover(context, offset + got));
      const std::uint64_t skipped = offset + got - begin_;
      const std::size_t some = std::min(into.size() - got, window_.size() - skipped);
      std::memcpy(into.data() + got, window_.data() + skipped, some);
      got += some;
    }
    return got;
  }

 private:
  Status cover(const RequestContext& context, std::uint64_t offset) {
    const std::uint64_t end = begin_ + window_.size();
    if (offset >= begin_ && offset < end) return {};
    const bool goes_on = !window_.empty() && offset == end;
    wanted_bytes_ = goes_on ? std::min(2 * wanted_bytes_, kWindowBytesMax) : kWindowBytesMin;
    const ByteRange range{.offset = offset, .length = std::min(wanted_bytes_, bytes_ - offset)};
    MR_ASSIGN_OR_RETURN(const Slice read, files_.read(context, index_, range));
    if (read.size() != range.length) {
      return {StatusCode::kCorruption, "a read has brought fewer bytes than there are"};
    }
    // A copy: the cache's buffers are for those who read at once.
    window_ = Slice::copy_of(read.bytes());
    begin_ = offset;
    return {};
  }

  SampleFiles& files_;
  const EntryIndex index_;
  const std::uint64_t bytes_;
  std::uint64_t begin_ = 0;
  std::uint64_t wanted_bytes_ = kWindowBytesMin;
  Slice window_;
};

Result<std::uint64_t> count_shards(const Manifest& manifest) {
  std::uint64_t shards = 0;
  ManifestCursor cursor(manifest);
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) return shards;
    if (item->entry.kind() == EntryKind::kFile && is_sample_shard(item->path)) ++shards;
  }
}

}  // namespace

SampleCounting::~SampleCounting() {
  cancellation_->request();
  std::map<Sha256Digest, PassPtr> passes;
  {
    MutexLock lock(mutex_);
    passes.swap(passes_);
  }
  for (const auto& [digest, pass] : passes)
    if (pass->thread.joinable()) pass->thread.join();
}

Result<std::unique_ptr<SampleIndex>> SampleCounting::open(const RequestContext& context,
                                                          std::shared_ptr<SampleFiles> files,
                                                          const Place& place) {
  const Sha256Digest digest = files->manifest().content_digest();
  SampleIndexStore own(*parts_.indexes);
  auto known = own.open(context, digest);
  if (known || known.error().code() != StatusCode::kNotFound) return known;
  MR_ASSIGN_OR_RETURN(const PassPtr pass, join_or_start(digest, std::move(files), place));
  const Status waited = wait(context, *pass, place);
  forget_ended(digest, pass);
  MR_RETURN_IF_ERROR(waited);
  if (place.shared != nullptr) {
    auto shared = SampleIndexStore(*place.shared).open(context, digest);
    if (shared) return shared;
  }
  return own.open(context, digest);
}

Result<SampleCounting::PassPtr> SampleCounting::join_or_start(const Sha256Digest& digest,
                                                              std::shared_ptr<SampleFiles> files,
                                                              const Place& place) {
  MutexLock lock(mutex_);
  if (const auto found = passes_.find(digest); found != passes_.end()) return found->second;
  if (passes_.size() >= parts_.passes_max) {
    return failure(StatusCode::kResourceExhausted,
                   "the samples of too many datasets are being counted already: try again later");
  }
  auto pass = std::make_shared<Pass>();
  pass->thread = std::thread([this, pass, files = std::move(files), place] {
    Status status = count(*files, place, *pass);
    MutexLock ended(mutex_);
    pass->status = std::move(status);
    pass->has_ended = true;
    changed_.notify_all();
  });
  passes_.emplace(digest, pass);
  return pass;
}

void SampleCounting::forget_ended(const Sha256Digest& digest, const PassPtr& pass) {
  {
    MutexLock lock(mutex_);
    const auto found = passes_.find(digest);
    if (!pass->has_ended || found == passes_.end() || found->second != pass) return;
    passes_.erase(found);
  }
  pass->thread.join();
}

Status SampleCounting::wait(const RequestContext& context, Pass& pass, const Place& place) {
  MutexLock lock(mutex_);
  while (!pass.has_ended) {
    (void)changed_.wait_until(mutex_,
                              std::min(context.deadline(), parts_.clock.now() + kWaitSlice));
    if (pass.has_ended) break;
    const Status status = context.check(parts_.clock);
    if (status.ok()) continue;
    return {status.code(),
            fmt::format("the samples in the tar files of {} are being counted, since there is no "
                        "index of them: {} of {} files are done; try again, or wait longer",
                        place.name, pass.shards_done.load(), pass.shards.load())};
  }
  return pass.status;
}

Status SampleCounting::count(SampleFiles& files, const Place& place, Pass& pass) {
  const RequestContext context =
      RequestContext(TimePoint::max(), "samples").with_cancellation(cancellation_);
  std::error_code error;
  std::filesystem::create_directories(parts_.scratch, error);
  if (error) return file_error(error.value(), "make directory", parts_.scratch);
  const Manifest& manifest = files.manifest();
  MR_ASSIGN_OR_RETURN(const std::uint64_t all, count_shards(manifest));
  pass.shards = all;
  log_info("counting the samples in tar files", {{"dataset", place.name}, {"shards", all}});
  SampleShards shards(place.name, parts_.scratch);
  TaskGroup reading(context, parts_.parallel);
  ManifestCursor cursor(manifest);
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) break;
    if (item->entry.kind() != EntryKind::kFile || !is_sample_shard(item->path)) continue;
    MR_RETURN_IF_ERROR(reading.add(
        [&, entry = item->entry, path = std::string(item->path)](const RequestContext& part) {
          ShardWindow window(files, entry, entry.index());
          const auto read_at = [&](std::uint64_t offset, MutableByteView into) {
            const RequestContext soon = part.with_deadline(parts_.clock.now() + kShardReadTimeout);
            return window.read_at(soon, offset, into);
          };
          const Status listed = shards.read(path, read_at, entry.size());
          if (listed.ok()) ++pass.shards_done;
          return listed;
        }));
  }
  MR_RETURN_IF_ERROR(reading.wait());
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<BuiltSampleIndex> built, shards.finish(manifest));
  log_info("counted the samples in tar files",
           {{"dataset", place.name}, {"samples", built->table().samples()}});
  if (place.shared != nullptr) {
    const Status stored = SampleIndexStore(*place.shared).put(context, *built);
    if (stored.ok()) return {};
    log_info("the sample index stays on this machine", {{"error", stored.to_string()}});
  }
  return SampleIndexStore(*parts_.indexes).put(context, *built);
}

}  // namespace millrace
