#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "base/mutex.h"
#include "base/status.h"
#include "dataset/frame_format.h"
#include "dataset/frame_readahead.h"
#include "dataset/manifest_pages.h"

namespace millrace {

// Exactly these bytes of the object that holds the frames. Called from any thread, blocks.
using FrameFetch = std::function<Result<Slice>(std::uint64_t offset, std::uint64_t length)>;

struct FramedPagesOptions {
  // A file that pages are kept in. It may be there from before, whole or in part or damaged: a page
  // of it counts when it passes its checksum. It is as long as the manifest, and sparse. Beside it,
  // in `path` + ".index", lies the index of frames.
  std::string path;
  std::uint64_t framed_bytes = 0;
  std::uint64_t index_bytes = 0;
  FrameFetch fetch;
  Sha256Digest layout_digest{};  // Which manifest it must be.
  // Frames behind each other are fetched together up to this size.
  std::uint64_t fetch_bytes_max = 4 * kMiB;
};

// The pages of a manifest whose frames come from a store when they are touched. Each frame is
// fetched once, however many threads touch it; a fetch that failed is tried again by the next one
// that touches it.
//
// Opening takes at most three fetches: index, header, page table; one for a small manifest, which
// then is there as a whole; none when the files have them.
// Memory: a fetch holds at most fetch_bytes_max and one frame. Safe from any thread.
class FramedManifestPages final : public ManifestPages {
 public:
  static Result<std::unique_ptr<FramedManifestPages>> open(FramedPagesOptions options);

  // Brings in all that is missing, in large fetches. Afterwards the file at `path` is a complete
  // manifest.
  Status fetch_all() const;

 private:
  struct Flight {
    bool done = false;
    Status status;
  };
  struct FrameRun {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };

  FramedManifestPages(File file, FramedPagesOptions options, FrameIndex index);
  static Result<FrameIndex> load_index(const FramedPagesOptions& options);

  Status start();
  Status adopt_own_header();
  Status load(std::uint64_t first, std::uint64_t last) const override;
  Status load_frame(std::uint64_t frame, std::uint64_t last_frame) const MR_EXCLUDES(mutex_);
  // Until it has landed.
  Status wait_for(const Flight& flight) const MR_REQUIRES(mutex_);
  FrameRun choose_run(std::uint64_t frame, std::uint64_t last_frame) const MR_REQUIRES(mutex_);
  Status fetch_run(FrameRun run) const;
  Status keep_frame(std::uint64_t frame, ByteView compressed) const;
  bool frame_is_sound(std::uint64_t frame) const;
  // Looks at what is in the file.
  bool check_frame(std::uint64_t frame) const;
  std::uint64_t frame_end_page(std::uint64_t frame) const;

  // Constant after construction.
  FramedPagesOptions options_;
  FrameIndex index_;
  bool reused_ = false;  // The file was there: look into it before fetching.

  mutable Mutex mutex_;
  mutable CondVar landed_;
  mutable std::map<std::uint64_t, std::shared_ptr<Flight>> flights_ MR_GUARDED_BY(mutex_);
  mutable FrameReadahead readahead_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
