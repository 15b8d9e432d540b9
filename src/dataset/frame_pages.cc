#include "dataset/frame_pages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "base/checksum.h"
#include "base/current_request.h"

namespace millrace {
namespace {

// Whatever is wrong with it, the store has it too.
Result<FrameIndex> read_kept_index(const std::string& path, const FramedPagesOptions& options) {
  MR_ASSIGN_OR_RETURN(const std::string bytes, read_file(path, options.index_bytes));
  return decode_frame_index(as_bytes(bytes), options.framed_bytes);
}

// A manifest of up to so many bytes comes in one request: two more would take longer.
constexpr std::uint64_t kFetchedWholeBytesMax = 256 * kKiB;

// Asks for all bytes at the first call, and answers later ones from them.
FrameFetch fetch_whole(FrameFetch fetch, std::uint64_t bytes) {
  return [fetch = std::move(fetch), bytes, whole = std::make_shared<Slice>()](
             std::uint64_t offset, std::uint64_t length) -> Result<Slice> {
    if (whole->empty()) {
      MR_ASSIGN_OR_RETURN(*whole, fetch(0, bytes));
    }
    return whole->part(std::min<std::uint64_t>(offset, whole->size()), length);
  };
}

// While one lives, whoever waits on the condition looks up when the request of this thread is
// called off. Made without the lock: it may be called off already.
class WakeWhenCancelled {
 public:
  WakeWhenCancelled(Mutex& mutex, CondVar& condition) : request_(CurrentRequest::get()) {
    if (request_ == nullptr) return;
    subscribed_ = request_->cancellation().subscribe([&mutex, &condition] {
      MutexLock lock(mutex);
      condition.notify_all();
    });
  }
  ~WakeWhenCancelled() {
    if (request_ != nullptr) request_->cancellation().unsubscribe(subscribed_);
  }
  WakeWhenCancelled(const WakeWhenCancelled&) = delete;
  WakeWhenCancelled& operator=(const WakeWhenCancelled&) = delete;

 private:
  const RequestContext* const request_;
  Cancellation::CallbackId subscribed_ = 0;
};

}  // namespace

Result<std::unique_ptr<FramedManifestPages>> FramedManifestPages::open(FramedPagesOptions options) {
  if (options.index_bytes < kFrameTrailerBytes || options.index_bytes > options.framed_bytes) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("an index of {} bytes in {} bytes of frames is impossible",
                               options.index_bytes, options.framed_bytes));
  }
  const FrameFetch fetch = options.fetch;
  const bool is_small = options.framed_bytes <= kFetchedWholeBytesMax;
  if (is_small) options.fetch = fetch_whole(fetch, options.framed_bytes);
  MR_ASSIGN_OR_RETURN(FrameIndex index, load_index(options));
  MR_ASSIGN_OR_RETURN(File file, File::open(options.path, O_RDWR | O_CREAT, 0644));
  std::unique_ptr<FramedManifestPages> pages(
      new FramedManifestPages(std::move(file), std::move(options), std::move(index)));
  MR_RETURN_IF_ERROR(pages->start());
  if (is_small) {
    // What is damaged is fetched again when it is touched, and shows then.
    (void)pages->fetch_all();
    pages->options_.fetch = fetch;
  }
  return pages;
}

Result<FrameIndex> FramedManifestPages::load_index(const FramedPagesOptions& options) {
  const std::string kept_path = options.path + ".index";
  if (auto kept = read_kept_index(kept_path, options);
      kept && kept->layout_digest == options.layout_digest) {
    return kept;
  }
  MR_ASSIGN_OR_RETURN(const Slice end, options.fetch(options.framed_bytes - options.index_bytes,
                                                     options.index_bytes));
  if (end.size() != options.index_bytes) {
    return failure(StatusCode::kCorruption,
                   fmt::format("{} bytes came instead of the {} of the index of frames", end.size(),
                               options.index_bytes));
  }
  MR_ASSIGN_OR_RETURN(FrameIndex index, decode_frame_index(end.bytes(), options.framed_bytes));
  if (index.layout_digest != options.layout_digest) {
    return failure(StatusCode::kCorruption, "it is the manifest of another layout");
  }
  MR_RETURN_IF_ERROR(write_file_atomically(kept_path, end.bytes()));
  return index;
}

FramedManifestPages::FramedManifestPages(File file, FramedPagesOptions options, FrameIndex index)
    : ManifestPages(std::move(file)), options_(std::move(options)), index_(std::move(index)) {}

Status FramedManifestPages::start() {
  MR_ASSIGN_OR_RETURN(const std::uint64_t bytes, file().size());
  reused_ = bytes > 0;
  // Another process may have mapped the file: its length is set once and stays.
  if (bytes != index_.manifest_bytes) {
    MR_RETURN_IF_ERROR(file().truncate(index_.manifest_bytes));
  }
  MR_RETURN_IF_ERROR(map(index_.manifest_bytes));
  if (reused_ && adopt_own_header().ok()) return {};
  MR_RETURN_IF_ERROR(fetch_run({.first = 0, .end = 1}));
  const auto header = decode_manifest_header({base(), kManifestPageBytes}, index_.manifest_bytes);
  if (!header) return about_file(header.error());
  const std::uint64_t table = header->offset(ManifestSection::kPageTable) / kFrameBytes;
  MR_RETURN_IF_ERROR(
      fetch_run({.first = std::max<std::uint64_t>(table, 1), .end = index_.frames.size()}));
  MR_RETURN_IF_ERROR(adopt_own_header());
  // What else came with them need not be fetched again; where it is damaged, that shows later.
  (void)check_frame(0);
  (void)check_frame(table);
  return {};
}

Status FramedManifestPages::adopt_own_header() {
  if (sha256({base(), kManifestPageBytes}) != index_.header_digest) {
    return about_file({StatusCode::kCorruption, "its header is that of another manifest"});
  }
  return adopt_header();
}

std::uint64_t FramedManifestPages::frame_end_page(std::uint64_t frame) const {
  return std::min((frame + 1) * kFramePages, header().pages);
}

bool FramedManifestPages::frame_is_sound(std::uint64_t frame) const {
  for (std::uint64_t page = frame * kFramePages; page < frame_end_page(frame); ++page) {
    if (!is_sound(page)) return false;
  }
  return true;
}

bool FramedManifestPages::check_frame(std::uint64_t frame) const {
  for (std::uint64_t page = frame * kFramePages; page < frame_end_page(frame); ++page) {
    if (!is_sound(page) && !check_page(page)) return false;
  }
  return true;
}

Status FramedManifestPages::load(std::uint64_t first, std::uint64_t last) const {
  const std::uint64_t last_frame = last / kFramePages;
  for (std::uint64_t frame = first / kFramePages; frame <= last_frame; ++frame) {
    if (frame_is_sound(frame) || (reused_ && check_frame(frame))) continue;
    MR_RETURN_IF_ERROR(load_frame(frame, last_frame));
  }
  return {};
}

Status FramedManifestPages::load_frame(std::uint64_t frame, std::uint64_t last_frame) const {
  // Before there is a flight: its failure would be that of others too.
  MR_RETURN_IF_ERROR(AtHandOnly::may_wait());
  const WakeWhenCancelled wake(mutex_, landed_);
  MutexLock lock(mutex_);
  // Whoever brings a frame in sets its bits before its flight ends.
  while (!frame_is_sound(frame)) {
    const auto found = flights_.find(frame);
    if (found == flights_.end()) break;
    const std::shared_ptr<Flight> flight = found->second;
    MR_RETURN_IF_ERROR(wait_for(*flight));
    // The flight may have failed behind our frame; or the request that it was for was given up,
    // which says nothing about ours.
    if (frame_is_sound(frame)) return {};
    if (flight->status != StatusCode::kCancelled &&
        flight->status != StatusCode::kDeadlineExceeded) {
      return flight->status;
    }
  }
  if (frame_is_sound(frame)) return {};
  const FrameRun run = choose_run(frame, last_frame);
  const auto flight = std::make_shared<Flight>();
  for (std::uint64_t claimed = run.first; claimed < run.end; ++claimed)
    flights_.emplace(claimed, flight);
  readahead_.fetched(run.first, run.end - run.first);
  lock.unlock();
  Status status = fetch_run(run);
  for (std::uint64_t page = run.first * kFramePages;
       status.ok() && page < frame_end_page(run.end - 1); ++page) {
    if (!is_sound(page) && !check_page(page)) status = damaged(page);
  }
  lock.lock();
  for (std::uint64_t claimed = run.first; claimed < run.end; ++claimed)
    flights_.erase(claimed);
  flight->done = true;
  flight->status = status;
  landed_.notify_all();
  return frame_is_sound(frame) ? Status() : status;
}

// For no longer than the request may take that this is for: the one that the flight is for may have
// more time.
Status FramedManifestPages::wait_for(const Flight& flight) const {
  const RequestContext* const request = CurrentRequest::get();
  while (!flight.done) {
    // By the machine's clock, as the store has it.
    if (request != nullptr) MR_RETURN_IF_ERROR(request->check(system_clock()));
    if (request != nullptr && request->has_deadline()) {
      landed_.wait_until(mutex_, request->deadline());
    } else {
      landed_.wait(mutex_);
    }
  }
  return {};
}

FramedManifestPages::FrameRun FramedManifestPages::choose_run(std::uint64_t frame,
                                                              std::uint64_t last_frame) const {
  const std::uint64_t wanted = std::max(readahead_.window(frame), last_frame - frame + 1);
  FrameRun run{.first = frame, .end = frame + 1};
  while (run.end < index_.frames.size() && run.end - frame < wanted &&
         index_.frames[run.end].end() - index_.frames[frame].offset <= options_.fetch_bytes_max &&
         !flights_.contains(run.end) && !frame_is_sound(run.end)) {
    ++run.end;
  }
  return run;
}

Status FramedManifestPages::fetch_run(FrameRun run) const {
  if (run.first >= run.end) return {};
  const std::uint64_t offset = index_.frames[run.first].offset;
  const std::uint64_t bytes = index_.frames[run.end - 1].end() - offset;
  auto fetched = options_.fetch(offset, bytes);
  if (!fetched) return about_file(fetched.error());
  if (fetched->size() != bytes) {
    return about_file({StatusCode::kCorruption, fmt::format("{} bytes of frames came instead of {}",
                                                            fetched->size(), bytes)});
  }
  for (std::uint64_t frame = run.first; frame < run.end; ++frame) {
    const FrameRecord& record = index_.frames[frame];
    const Status kept =
        keep_frame(frame, fetched->bytes().subspan(record.offset - offset, record.bytes));
    if (!kept.ok()) return about_file(kept.with_context(fmt::format("frame {}", frame)));
  }
  return {};
}

Status FramedManifestPages::keep_frame(std::uint64_t frame, ByteView compressed) const {
  if (crc32c(compressed) != index_.frames[frame].checksum) {
    return {StatusCode::kCorruption, "it fails its checksum"};
  }
  std::vector<std::byte> bytes(index_.frame_bytes(frame));
  MR_RETURN_IF_ERROR(decompress_frame(compressed, bytes));
  if (!has_header()) return file().write_at(frame * kFrameBytes, bytes);
  // What others may be reading is not written again.
  for (std::uint64_t at = 0; at < bytes.size(); at += kManifestPageBytes) {
    const std::uint64_t page = frame * kFramePages + at / kManifestPageBytes;
    if (is_sound(page)) continue;
    const ByteView content = ByteView(bytes).subspan(at, kManifestPageBytes);
    if (crc32c(content) != page_checksum(page)) return damaged(page);
    MR_RETURN_IF_ERROR(file().write_at(page * kManifestPageBytes, content));
  }
  return {};
}

Status FramedManifestPages::fetch_all() const {
  const std::uint64_t last = index_.frames.size() - 1;
  return load(0, last * kFramePages);
}

}  // namespace millrace
