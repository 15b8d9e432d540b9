#include <memory>

#include <fmt/format.h>

#include "base/random.h"
#include "base/units.h"
#include "cli/bench_phase.h"
#include "cli/command.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

struct BenchOptions {
  std::string url = std::string(kStorePrefix);
  std::string size_text = "16MiB";
  std::string small_size_text = "4KiB";
  std::uint64_t count = 32;
  std::uint64_t small_count = 500;
  std::size_t parallel = 16;
  bool read_only = false;
};

struct Sizes {
  std::uint64_t large = 0;
  std::uint64_t small = 0;
};

Result<Sizes> parse_sizes(const BenchOptions& options) {
  Sizes sizes;
  MR_ASSIGN_OR_RETURN(sizes.large, parse_size(options.size_text));
  MR_ASSIGN_OR_RETURN(sizes.small, parse_size(options.small_size_text));
  constexpr std::uint64_t kMax = 64 * kMiB;  // One request and one buffer each.
  for (const std::uint64_t size : {sizes.large, sizes.small}) {
    if (size >= 1 && size <= kMax) continue;
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("a size of {} is not accepted: expected 1 B to 64 MiB", format_size(size)));
  }
  return sizes;
}

Status print_phase(Output& output, const BenchPhase& phase) {
  if (output.json()) {
    return output.document({{"phase", phase.name},
                            {"object_bytes", phase.object_bytes},
                            {"requests", phase.requests},
                            {"seconds", phase.seconds},
                            {"bytes_per_second", phase.bytes_per_second()},
                            {"requests_per_second", phase.requests_per_second()},
                            {"latency_p50_ms", phase.percentile_ms(50)},
                            {"latency_p99_ms", phase.percentile_ms(99)},
                            {"latency_max_ms", phase.percentile_ms(100)}});
  }
  return output.line(
      fmt::format("{:<4} {:>8}  {:>10}/s  {:>9.1f} requests/s  p50 {:>8.2f} ms  p99 {:>8.2f} ms",
                  phase.name, format_size(phase.object_bytes),
                  format_size(static_cast<std::uint64_t>(phase.bytes_per_second())),
                  phase.requests_per_second(), phase.percentile_ms(50), phase.percentile_ms(99)));
}

Result<int> bench_reads(Session& session, const Location& location, ObjectStore& store,
                        const BenchOptions& options, const Sizes& sizes) {
  MR_ASSIGN_OR_RETURN(const ObjectInfo info, store.head(session.request(), location.object_key()));
  if (info.size == 0) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is empty: name a larger object", location.to_string()));
  }
  const std::uint64_t large = std::min(sizes.large, info.size);
  const std::uint64_t small = std::min(sizes.small, info.size);
  session.note(fmt::format("reading ranges of {}: {} requests, {} downloaded", location.to_string(),
                           options.count + options.small_count + 1,
                           format_size(options.count * large + options.small_count * small)));
  const Bench bench(session, store, options.parallel);
  for (const auto& [size, count] :
       {std::pair(large, options.count), std::pair(small, options.small_count)}) {
    MR_ASSIGN_OR_RETURN(const BenchPhase phase, bench.read_ranges(info, size, count));
    MR_RETURN_IF_ERROR(print_phase(session.output(), phase));
  }
  return 0;
}

Result<int> bench_store(Session& session, const BenchOptions& options) {
  MR_ASSIGN_OR_RETURN(const Sizes sizes, parse_sizes(options));
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(options.url));
  MR_ASSIGN_OR_RETURN(const auto store,
                      session.store(location.store, options.read_only ? Session::Access::kRead
                                                                      : Session::Access::kWrite));
  if (options.read_only) return bench_reads(session, location, *store, options, sizes);

  const std::uint64_t objects = options.count + options.small_count;
  const std::uint64_t bytes = options.count * sizes.large + options.small_count * sizes.small;
  const std::string prefix =
      location.child(".millrace-bench-" + system_random().token()).directory_prefix();
  session.note(
      fmt::format("writing, reading and removing {} objects below {}/{}: about {} requests, "
                  "{} up, {} down",
                  objects, location.store.to_string(), prefix, objects * 2 + objects / 1000 + 1,
                  format_size(bytes), format_size(bytes)));
  const Bench bench(session, *store, options.parallel);
  Status status;
  for (const auto& [size, count] :
       {std::pair(sizes.large, options.count), std::pair(sizes.small, options.small_count)}) {
    if (!status.ok() || count == 0) break;
    const std::string below = fmt::format("{}{}-", prefix, size);
    for (const bool write : {true, false}) {
      auto phase =
          write ? bench.write_objects(below, size, count) : bench.read_objects(below, size, count);
      status = phase ? print_phase(session.output(), *phase) : phase.error();
      if (!status.ok()) break;
    }
  }
  const Status removed = bench.remove_objects(prefix);
  MR_RETURN_IF_ERROR(status);
  MR_RETURN_IF_ERROR(removed);
  return 0;
}

}  // namespace

void register_store_bench(CommandLine& line, CLI::App& store) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* const command =
      store.add_subcommand("bench", "Measure a store: throughput, request rate, latency");
  command
      ->add_option("url", options->url,
                   "Where to write the objects of the measurement, which are removed afterwards")
      ->type_name("URL");
  command->add_option("--size", options->size_text, "Size of a large object")
      ->type_name("SIZE")
      ->capture_default_str();
  command->add_option("--count", options->count, "How many large objects")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--small-size", options->small_size_text, "Size of a small object")
      ->type_name("SIZE")
      ->capture_default_str();
  command->add_option("--small-count", options->small_count, "How many small objects")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("-j,--parallel", options->parallel, "Requests at one time")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  command->add_flag("--read-only", options->read_only,
                    "Write nothing: read ranges of the object that URL names");
  line.runs(command, [options](Session& session) { return bench_store(session, *options); });
}

}  // namespace millrace::cli
