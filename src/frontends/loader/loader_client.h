#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "frontends/loader/loader_message.h"
#include "loader/batch_engine.h"
#include "platform/file.h"

namespace millrace {

// One connection to the daemon. Batches that came over it may outlive it, and return their memory
// to the daemon with the next request while it lives.
//
// A failure of the connection is kUnavailable, and then it is of no use any more: is_broken(). What
// the daemon answers keeps its code. Needs one thread at a time; batches go on any.
class LoaderClient : public std::enable_shared_from_this<LoaderClient> {
 public:
  struct Opened {
    std::string store = {};
    std::vector<SourceFacts> sources = {};
  };

  // kNotFound when nobody listens there.
  static Result<std::shared_ptr<LoaderClient>> connect(const std::string& socket);
  explicit LoaderClient(File socket) : socket_(std::move(socket)) {}

  Result<Opened> open(const RequestContext& context, const std::vector<SourceChoice>& choices,
                      const std::string& run, const std::string& job);
  Result<BatchAnswer> read(const RequestContext& context, std::uint64_t epoch,
                           std::span<const PlacedSample> places);
  // What is reported is known to the daemon once this returns.
  Status report(const RequestContext& context, const LoaderReport& report);
  // What all connections of this one's job have reported as skipped or replaced.
  Result<std::vector<LostPlace>> lost(const RequestContext& context);
  // The daemon has begun to fetch them once this returns.
  Status extend_plan(const RequestContext& context, std::span<const PlannedSample> samples);
  // Does not wait for an answer.
  Status advance_plan(std::uint64_t samples_done);

  bool is_broken() const { return broken_; }

 private:
  // Pieces that are mapped are used again; the daemon has not many more.
  static constexpr std::size_t kMappedMax = 16;

  Result<LoaderMessage> ask(const RequestContext& context, const LoaderJson& head, ByteView tail);
  Status wait_for_answer(const RequestContext& context);
  Status broken(const Status& why);
  Result<Batch> take_batch(LoaderMessage message);
  Result<std::shared_ptr<BatchMemory>> map(std::uint64_t number, std::uint64_t bytes, File file);
  // Memory that goes back to the daemon, by its number.
  struct Returned {
    std::vector<std::uint64_t> free = {};
    std::vector<std::uint64_t> kept = {};  // A child may still read it: it is not written to again.
  };
  Returned take_returned() MR_EXCLUDES(mutex_);
  void release(std::uint64_t number, const BatchMemory& memory) MR_EXCLUDES(mutex_);

  const File socket_;
  const pid_t process_ = ::getpid();
  bool broken_ = false;
  // By the daemon's number.
  std::map<std::uint64_t, std::shared_ptr<BatchMemory>> mapped_;

  Mutex mutex_;
  Returned returned_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
