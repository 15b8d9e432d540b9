#include "loader/batch_assembler.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

// What is asked for at a time; the buffers that it comes in are the cache's.
constexpr std::uint64_t kWaveBytes = 64 * kMiB;
// Larger parts are read piece by piece, into memory of their own.
constexpr std::uint64_t kPieceBytes = 4 * kMiB;
// A damaged shard, or a few, must not hide what the rest of a dataset is like.
constexpr std::uint64_t kModelsTried = 16;
constexpr Duration kRetryPauseMin = std::chrono::milliseconds(50);
constexpr Duration kRetryPauseMax = std::chrono::seconds(5);

bool may_pass(StatusCode code) {
  if (code == StatusCode::kCorruption) return false;  // It has one more chance, and no more.
  return is_transient(code) || code == StatusCode::kResourceExhausted;
}

// Not the sample's fault.
bool ends_all(StatusCode code) {
  return code == StatusCode::kDeadlineExceeded || code == StatusCode::kCancelled;
}

std::uint64_t nanoseconds_between(TimePoint from, TimePoint to) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

}  // namespace

struct BatchAssembler::PendingSample {
  const AssembledSource* source = nullptr;
  PlacedSample place = {};
  std::optional<SampleLocation> location = {};
  std::vector<Slice> parts = {};
  std::vector<Buffer> large = {};  // By part, while one is read in pieces.
  Status failure = {};
  bool is_read = false;
  bool was_corrupt = false;
};

// One read of a part, or of a piece of it.
struct BatchAssembler::Piece {
  std::size_t sample = 0;
  std::size_t part = 0;
  ByteRange range = {};  // Of the file.
  bool is_whole = true;
};

Status BatchAssembler::check(std::uint64_t source, std::uint64_t sample) const {
  if (source < sources_.size() && sample < sources_[source].source.samples()) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("there is no sample {} of dataset {}", sample, source)};
}

void BatchAssembler::locate(const RequestContext& context, PendingSample& sample) const {
  if (sample.location) return;
  auto found = sample.source->source.locate(context, sample.place.sample);
  if (!found) {
    sample.failure = found.error();
    return;
  }
  sample.location = *std::move(found);
  sample.parts.resize(sample.location->parts.size());
  sample.large.resize(sample.location->parts.size());
}

void BatchAssembler::look_up(const RequestContext& context,
                             const std::vector<std::vector<std::uint64_t>>& samples) const {
  for (std::size_t source = 0; source < std::min(samples.size(), sources_.size()); ++source) {
    std::vector<std::uint64_t> known;
    std::ranges::copy_if(samples[source], std::back_inserter(known),
                         [&](std::uint64_t sample) { return check(source, sample).ok(); });
    if (!known.empty()) sources_[source].source.look_up(context, known);
  }
}

void BatchAssembler::read_pending(const RequestContext& context,
                                  std::vector<PendingSample>& samples,
                                  BatchMemoryPool* prepared) const {
  std::vector<Piece> pieces;
  std::uint64_t total = 0;
  for (std::size_t n = 0; n < samples.size(); ++n) {
    PendingSample& sample = samples[n];
    if (sample.is_read || !sample.failure.ok()) continue;
    locate(context, sample);
    if (!sample.failure.ok()) continue;
    for (std::size_t part = 0; part < sample.parts.size(); ++part) {
      const ByteRange range = sample.location->parts[part].range;
      total += range.length;
      if (range.empty()) continue;
      if (range.length <= 2 * kPieceBytes) {
        pieces.push_back({.sample = n, .part = part, .range = range});
        continue;
      }
      sample.large[part] = Buffer::allocate(range.length);
      for (std::uint64_t at = range.offset; at < range.end(); at += kPieceBytes) {
        pieces.push_back({.sample = n,
                          .part = part,
                          .range = {at, std::min(kPieceBytes, range.end() - at)},
                          .is_whole = false});
      }
    }
    sample.is_read = true;  // Unless a piece of it fails.
  }
  for (std::size_t begin = 0; begin < pieces.size();) {
    std::size_t end = begin;
    for (std::uint64_t bytes = 0; end < pieces.size() && bytes < kWaveBytes; ++end)
      bytes += pieces[end].range.length;
    const auto answers =
        start_wave(context, samples, std::span(pieces).subspan(begin, end - begin));
    if (begin == 0 && prepared != nullptr) prepared->prepare(samples.size(), total);
    answers->wait();
    take_wave(samples, std::span(pieces).subspan(begin, end - begin), *answers,
              total <= kWaveBytes);
    begin = end;
  }
  for (PendingSample& sample : samples) {
    for (std::size_t part = 0; part < sample.large.size(); ++part) {
      if (sample.large[part].size() == 0) continue;
      Slice whole = std::exchange(sample.large[part], Buffer()).freeze();
      if (sample.is_read) sample.parts[part] = std::move(whole);
    }
  }
}

std::shared_ptr<ReadAnswers> BatchAssembler::start_wave(const RequestContext& context,
                                                        const std::vector<PendingSample>& samples,
                                                        std::span<const Piece> pieces) {
  auto answers = std::make_shared<ReadAnswers>(pieces.size());
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const PendingSample& sample = samples[pieces[n].sample];
    sample.source->files.start_read(context, sample.location->parts[pieces[n].part].file,
                                    pieces[n].range, ReadAnswers::completion(answers, n));
  }
  return answers;
}

void BatchAssembler::take_wave(std::vector<PendingSample>& samples, std::span<const Piece> pieces,
                               ReadAnswers& answers, bool keep) {
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const Piece& piece = pieces[n];
    PendingSample& sample = samples[piece.sample];
    Result<Slice>& result = answers.at(n);
    if (result && result->size() != piece.range.length) {
      result = failure(StatusCode::kCorruption, "a read has brought fewer bytes than there are");
    }
    if (!result) {
      sample.failure = result.error();
      sample.is_read = false;
    } else if (piece.is_whole) {
      // What is kept over many waves must not hold the cache's buffers.
      sample.parts[piece.part] = keep ? *std::move(result) : Slice::copy_of(result->bytes());
    } else {
      const std::uint64_t begin = sample.location->parts[piece.part].range.offset;
      std::memcpy(sample.large[piece.part].data() + (piece.range.offset - begin), result->data(),
                  result->size());
    }
  }
}

Status BatchAssembler::read_until_settled(const RequestContext& context, BatchMemoryPool* prepared,
                                          std::vector<PendingSample>& samples) const {
  for (Duration pause = kRetryPauseMin;; pause = std::min(2 * pause, kRetryPauseMax)) {
    MR_RETURN_IF_ERROR(context.check(clock_));
    // What is tried again is a part of the batch, whose memory is there by then.
    read_pending(context, samples, pause == kRetryPauseMin ? prepared : nullptr);
    Status passing;
    for (PendingSample& sample : samples) {
      if (ends_all(sample.failure.code())) return sample.failure;
      if (sample.failure.ok()) continue;
      // Bytes may have been damaged on the way: they get a second chance.
      const bool again = sample.failure.code() == StatusCode::kCorruption &&
                         !std::exchange(sample.was_corrupt, true);
      if (again || may_pass(sample.failure.code())) passing = std::exchange(sample.failure, {});
    }
    if (passing.ok()) return {};
    if (clock_.now() + pause >= context.deadline()) {
      return {StatusCode::kDeadlineExceeded,
              fmt::format("a batch could not be read in time: {}", passing.to_string())};
    }
    clock_.sleep_until(clock_.now() + pause, &context.cancellation());
  }
}

Result<std::vector<BatchAssembler::PendingSample>> BatchAssembler::read_places(
    const RequestContext& context, BatchMemoryPool* prepared,
    std::span<const PlacedSample> places) const {
  std::vector<PendingSample> pending;
  pending.reserve(places.size());
  std::vector<std::vector<std::uint64_t>> to_look_up(sources_.size());
  for (const PlacedSample& place : places) {
    MR_RETURN_IF_ERROR(check(place.source, place.sample));
    to_look_up[place.source].push_back(place.sample);
    PendingSample& sample = pending.emplace_back();
    sample.source = &sources_[place.source];
    sample.place = place;
  }
  look_up(context, to_look_up);
  MR_RETURN_IF_ERROR(read_until_settled(context, prepared, pending));
  return pending;
}

void BatchAssembler::decode(std::vector<PendingSample> pending, std::vector<ReadSample>& samples,
                            std::vector<SampleFailure>& failed) {
  samples.reserve(samples.size() + pending.size());
  for (PendingSample& sample : pending) {
    std::string key = sample.location ? sample.location->key : std::string();
    if (sample.failure.ok()) {
      auto values = sample.source->source.decode(*sample.location, sample.parts);
      if (values) {
        samples.push_back(
            {.place = sample.place, .key = std::move(key), .values = *std::move(values)});
        continue;
      }
      sample.failure = values.error();
    }
    failed.push_back(
        {.place = sample.place, .key = std::move(key), .why = std::move(sample.failure)});
  }
}

Result<std::vector<ReadSample>> BatchAssembler::read_models(const RequestContext& context) const {
  std::vector<ReadSample> models;
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    const std::uint64_t samples = sources_[n].source.samples();
    const std::uint64_t tries = std::min(samples, kModelsTried);
    const std::size_t before = models.size();
    for (std::uint64_t number = 0; number < tries && models.size() == before; ++number) {
      const PlacedSample place{.source = n, .sample = number * (samples / tries)};
      MR_ASSIGN_OR_RETURN(std::vector<PendingSample> pending,
                          read_places(context, nullptr, {&place, 1}));
      std::vector<SampleFailure> failed;
      decode(std::move(pending), models, failed);
    }
  }
  return models;
}

Result<BatchAnswer> BatchAssembler::read(const RequestContext& context, BatchMemoryPool& memory,
                                         std::uint64_t epoch,
                                         std::span<const PlacedSample> places) const {
  const TimePoint begun = clock_.now();
  BatchAnswer answer;
  if (places.empty()) {
    MR_ASSIGN_OR_RETURN(const std::vector<ReadSample> models, read_models(context));
    MR_ASSIGN_OR_RETURN(answer.batch,
                        build_empty_batch(memory, epoch, models,
                                          {.store_ns = nanoseconds_between(begun, clock_.now())}));
    return answer;
  }
  MR_ASSIGN_OR_RETURN(std::vector<PendingSample> pending, read_places(context, &memory, places));
  const TimePoint was_read = clock_.now();
  std::vector<ReadSample> samples;
  decode(std::move(pending), samples, answer.failed);
  if (!answer.failed.empty()) return answer;
  MR_ASSIGN_OR_RETURN(answer.batch,
                      build_batch(memory, epoch, samples,
                                  {.store_ns = nanoseconds_between(begun, was_read),
                                   .decode_ns = nanoseconds_between(was_read, clock_.now())}));
  return answer;
}

Status BatchAssembler::plan(const RequestContext& context, std::uint64_t source,
                            std::uint64_t sample, std::vector<PlannedRead>& reads) const {
  MR_RETURN_IF_ERROR(check(source, sample));
  const AssembledSource& dataset = sources_[source];
  MR_ASSIGN_OR_RETURN(const SampleLocation location, dataset.source.locate(context, sample));
  for (const SamplePart& part : location.parts) {
    if (!part.range.empty())
      MR_RETURN_IF_ERROR(dataset.files.plan_read(part.file, part.range, reads));
  }
  return {};
}

}  // namespace millrace
