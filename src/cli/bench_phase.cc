#include "cli/bench_phase.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/random.h"
#include "base/task_group.h"

namespace millrace::cli {
namespace {

Slice random_bytes(std::uint64_t size) {
  Buffer buffer = Buffer::allocate(size);
  // A multiplicative generator is random enough to defeat compression, and fast.
  std::uint64_t state = system_random().next() | 1;
  for (std::uint64_t at = 0; at < size; at += sizeof(state)) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t word = state ^ (state >> 29);
    std::memcpy(buffer.data() + at, &word, std::min<std::uint64_t>(sizeof(word), size - at));
  }
  return std::move(buffer).freeze();
}

ObjectKey numbered(const std::string& prefix, std::uint64_t number) {
  return ObjectKey(prefix + std::to_string(number));
}

Status check_length(const Result<GetResult>& result, std::uint64_t size) {
  if (!result) return result.error();
  if (result->data.size() == size) return {};
  return {StatusCode::kCorruption,
          fmt::format("asked for {} bytes, got {}", size, result->data.size())};
}

}  // namespace

double BenchPhase::bytes_per_second() const {
  return static_cast<double>(object_bytes * requests) / std::max(seconds, 1e-9);
}

double BenchPhase::requests_per_second() const {
  return static_cast<double>(requests) / std::max(seconds, 1e-9);
}

double BenchPhase::percentile_ms(int percentile) const {
  if (latencies_ms.empty()) return 0;
  const double rank = std::ceil(static_cast<double>(latencies_ms.size()) * percentile / 100.0);
  return latencies_ms[std::max<std::size_t>(static_cast<std::size_t>(rank), 1) - 1];
}

Bench::Bench(Session& session, ObjectStore& store, std::size_t parallel)
    : session_(session), store_(store), parallel_(parallel) {}

Result<BenchPhase> Bench::measure(std::string name, std::uint64_t size, std::uint64_t count,
                                  const Request& request) const {
  const auto progress = session_.progress(fmt::format("{} {}", name, count));
  BenchPhase phase{std::move(name), size, count, 0, std::vector<double>(count)};
  const TimePoint started = session_.clock().now();
  {
    TaskGroup group(session_.context(), parallel_);
    for (std::uint64_t number = 0; number < count; ++number) {
      Status added = group.add([&, number](const RequestContext& context) -> Status {
        const TimePoint begin = session_.clock().now();
        MR_RETURN_IF_ERROR(request(session_.request(context), number));
        phase.latencies_ms[number] =
            std::chrono::duration<double, std::milli>(session_.clock().now() - begin).count();
        progress->add_bytes(size);
        return {};
      });
      if (!added.ok()) break;
    }
    MR_RETURN_IF_ERROR(group.wait());
    MR_RETURN_IF_ERROR(session_.context().check(session_.clock()));
  }
  phase.seconds = std::chrono::duration<double>(session_.clock().now() - started).count();
  std::ranges::sort(phase.latencies_ms);
  return phase;
}

Result<BenchPhase> Bench::write_objects(const std::string& prefix, std::uint64_t size,
                                        std::uint64_t count) const {
  const Slice data = random_bytes(size);
  return measure("put", size, count, [&](const RequestContext& context, std::uint64_t number) {
    const auto info = store_.put(context, numbered(prefix, number), data, {});
    return info ? Status() : info.error();
  });
}

Result<BenchPhase> Bench::read_objects(const std::string& prefix, std::uint64_t size,
                                       std::uint64_t count) const {
  return measure("get", size, count, [&](const RequestContext& context, std::uint64_t number) {
    return check_length(store_.get(context, {numbered(prefix, number), {}, {}}), size);
  });
}

Result<BenchPhase> Bench::read_ranges(const ObjectInfo& info, std::uint64_t size,
                                      std::uint64_t count) const {
  const std::uint64_t places = info.size / size;
  return measure("get", size, count, [&](const RequestContext& context, std::uint64_t number) {
    const ByteRange range{number % places * size, size};
    return check_length(
        store_.get(context, {.key = info.key, .range = range, .identity = info.identity}), size);
  });
}

Status Bench::remove_objects(const std::string& prefix) const {
  const RequestContext context(session_.clock().now() + std::chrono::seconds(60), "cli");
  ListRequest request;
  request.prefix = prefix;
  do {
    MR_ASSIGN_OR_RETURN(const ListPage page, store_.list(context, request));
    std::vector<ObjectKey> keys;
    for (const ObjectInfo& info : page.objects)
      keys.push_back(info.key);
    if (!keys.empty()) MR_RETURN_IF_ERROR(store_.remove(context, keys));
    request.continuation = page.continuation;
  } while (!request.continuation.empty());
  return {};
}

}  // namespace millrace::cli
