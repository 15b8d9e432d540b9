#include "cache/verifier.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/checksum.h"
#include "base/log.h"

namespace millrace {
namespace {

// How much is read at a time. The memory is the thread's own: waiting for the pool here could wait
// for fetches that wait for this thread.
constexpr std::uint32_t kPieceUnits = 16;

MutableByteView scratch() {
  constexpr std::size_t kBytes = kPieceUnits * kUnitBytes;
  thread_local const auto memory = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  return {memory.get(), kBytes};
}

}  // namespace

Verifier::Outcome Verifier::check(CachedObject& object, UnitRange units, CacheDamage found_by,
                                  bool again) {
  Outcome outcome;
  for (UnitRange run : object.on_disk(units, again)) {
    while (!run.empty()) {
      const UnitRange piece{run.first, std::min(run.count, kPieceUnits)};
      const Outcome of_piece = check_run(object, piece, found_by);
      outcome.bytes += of_piece.bytes;
      outcome.bad_units += of_piece.bad_units;
      run = {piece.end(), run.count - piece.count};
    }
  }
  return outcome;
}

Verifier::Outcome Verifier::check_run(CachedObject& object, UnitRange run, CacheDamage found_by) {
  StoredObject& stored = *object.stored();
  const std::uint64_t generation = object.generation();
  const ByteRange bytes = bytes_of(run, object.version().size());
  const MutableByteView into = scratch().first(bytes.length);
  std::array<std::uint32_t, kPieceUnits> expected{};
  const Status records = stored.read_checksums(run, std::span(expected).first(run.count));
  const Result<std::size_t> size = stored.file()->read_at(stored.base() + bytes.offset, into);
  Outcome outcome;
  if (run.count > 1 && (!records.ok() || !size)) {
    // One bad record or sector must not cost its neighbours.
    for (std::uint32_t unit = run.first; unit < run.end(); ++unit) {
      const Outcome of_unit = check_run(object, {unit, 1}, found_by);
      outcome.bytes += of_unit.bytes;
      outcome.bad_units += of_unit.bad_units;
    }
    return outcome;
  }
  outcome.bytes = bytes.length;
  std::uint32_t good_until = run.first;
  for (std::uint32_t unit = run.first; unit < run.end(); ++unit) {
    const ByteRange at = bytes_of({unit, 1}, object.version().size());
    const bool good =
        records.ok() && size && *size == bytes.length &&
        crc32c(into.subspan(at.offset - bytes.offset, at.length)) == expected[unit - run.first];
    if (good) continue;
    // What was freed meanwhile reads as zeros, and is no damage.
    if (object.generation() != generation) return outcome;
    if (unit > good_until) object.verified({good_until, unit - good_until}, generation);
    good_until = unit + 1;
    if (distrust(object, {unit, 1}, found_by)) ++outcome.bad_units;
    // Distrusting has raised the generation: start anew behind it.
    if (unit + 1 < run.end()) {
      const Outcome rest = check_run(object, {unit + 1, run.end() - unit - 1}, found_by);
      outcome.bad_units += rest.bad_units;
    }
    return outcome;
  }
  object.verified({good_until, run.end() - good_until}, generation);
  return outcome;
}

bool Verifier::distrust(CachedObject& object, UnitRange units, CacheDamage found_by) {
  if (!directories_.distrust(object, units)) return false;
  metrics_.counter(MetricId::kCacheBadUnits, {static_cast<std::size_t>(found_by)}).add(units.count);
  log_error("a cached unit failed its check; it is fetched again",
            {{"store", object.version().store().value()},
             {"key", object.version().key().value()},
             {"first_unit", units.first},
             {"units", units.count}});
  return true;
}

}  // namespace millrace
