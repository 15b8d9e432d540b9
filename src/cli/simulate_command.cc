#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/registry_view.h"
#include "cli/version_session.h"
#include "cli/whole_number.h"
#include "loader/files_source.h"
#include "loader/sample_readers.h"
#include "loader/simulation.h"
#include "loader/store_sample_files.h"
#include "objectstore/memory_object_store.h"
#include "service/loader_sources.h"

namespace millrace::cli {
namespace {

struct SimulateFlags {
  std::string ref;
  std::string reader = "auto";
  std::string directory;
  std::string order = "block";
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t nodes = 1;
  std::uint64_t ranks = 1;
  std::uint64_t replication = 1;
  std::uint64_t batch = 256;
  std::uint64_t window_rows = kWindowRows;
  std::string cache;
  std::string rate = "1GiB";
  std::string latency = "20ms";
};

// What the flags ask for.
struct Simulated {
  SimulationOptions options = {};
  std::uint64_t rate = 0;  // Of the store, bytes in a second.
  Duration latency{};      // Of a request to it.
};

// Connections that fetch at the same time, as many as the cache has.
constexpr std::uint64_t kParallelRequests = 64;

// How long the first step takes when nothing is cached: an index, then its samples.
double first_step_seconds(const SimulationReport& report, const Simulated& simulated) {
  const double one = std::chrono::duration<double>(simulated.latency).count();
  const std::uint64_t turns =
      (report.first_step_requests + kParallelRequests - 1) / kParallelRequests;
  return one * static_cast<double>(1 + turns) +
         static_cast<double>(report.first_step_bytes) / static_cast<double>(simulated.rate);
}

double share_of(double part, double whole) { return whole > 0 ? part / whole : 1; }

Json quality_document(const ShuffleQuality& quality) {
  return {{"blocks_in_batch", quality.blocks_in_batch},
          {"classes_in_batch", quality.classes_in_batch},
          {"entropy_bits", quality.entropy_bits}};
}

Status print_simulated(Session& session, const std::string& version, const SampleSource& source,
                       const SimulationReport& report, double first_seconds) {
  Output& output = session.output();
  if (output.json()) {
    return output.document({{"version", version},
                            {"reader", source.reader()},
                            {"samples", report.samples},
                            {"bytes", report.bytes},
                            {"steps", report.steps},
                            {"empty_batches", report.empty_shares},
                            {"positions", report.positions},
                            {"quality", quality_document(report.quality)},
                            {"full_shuffle", quality_document(report.full)},
                            {"needed_bytes", report.needed_bytes},
                            {"fetched_bytes", report.fetched_bytes},
                            {"cache_bytes_min", report.cache_bytes_min},
                            {"first_step_bytes", report.first_step_bytes},
                            {"first_step_seconds", first_seconds}});
  }
  const auto line = [&](std::string_view name, const std::string& text) {
    return output.line(fmt::format("{:<15} {}", name, text));
  };
  const auto compared = [](double value, double full) {
    return fmt::format("{:.1f}, {:.3f} of a full shuffle's {:.1f}", value, share_of(value, full),
                       full);
  };
  MR_RETURN_IF_ERROR(line("version:", fmt::format("{}, read as {}", version, source.reader())));
  MR_RETURN_IF_ERROR(
      line("epoch:",
           fmt::format("{}, {}, {} on every rank", count_text(report.samples, "sample", "samples"),
                       format_size(report.bytes), count_text(report.steps, "step", "steps"))));
  if (report.empty_shares > 0) {
    MR_RETURN_IF_ERROR(
        line("empty batches:", fmt::format("{} in the last step", report.empty_shares)));
  }
  if (report.positions < report.samples) {
    MR_RETURN_IF_ERROR(line("looked at:", fmt::format("the first {} samples", report.positions)));
  }
  const ShuffleQuality& quality = report.quality;
  const ShuffleQuality& full = report.full;
  MR_RETURN_IF_ERROR(
      line("blocks in 256:", compared(quality.blocks_in_batch, full.blocks_in_batch)));
  if (full.classes_in_batch > 0) {
    MR_RETURN_IF_ERROR(
        line("classes in 256:", compared(quality.classes_in_batch, full.classes_in_batch)));
  }
  MR_RETURN_IF_ERROR(line("entropy (bits):", compared(quality.entropy_bits, full.entropy_bits)));
  MR_RETURN_IF_ERROR(line(
      "fetched:", fmt::format("{}, {:.3f} of what is needed", format_size(report.fetched_bytes),
                              share_of(static_cast<double>(report.fetched_bytes),
                                       static_cast<double>(report.needed_bytes)))));
  MR_RETURN_IF_ERROR(line("cache:", fmt::format("{} on each node, to fetch nothing twice",
                                                format_size(report.cache_bytes_min))));
  return line("first step:", fmt::format("{} on each node, about {:.2f} s",
                                         format_size(report.first_step_bytes), first_seconds));
}

Result<SimulationOptions> simulation_options(const SimulateFlags& flags) {
  SimulationOptions options{.epoch = flags.epoch, .batch = flags.batch};
  MR_ASSIGN_OR_RETURN(options.order.mode, parse_order_mode(flags.order));
  options.order.seed.seed = flags.seed;
  options.order.window_rows = flags.window_rows;
  options.topology = {.world = flags.nodes * flags.ranks,
                      .ranks_per_node = flags.ranks,
                      .replication = flags.replication};
  if (!flags.cache.empty()) {
    MR_ASSIGN_OR_RETURN(options.cache_bytes, parse_size(flags.cache));
  }
  return options;
}

Result<Simulated> parse_simulated(const SimulateFlags& flags) {
  Simulated simulated;
  MR_ASSIGN_OR_RETURN(simulated.options, simulation_options(flags));
  MR_ASSIGN_OR_RETURN(simulated.rate, parse_size(flags.rate));
  if (simulated.rate == 0) {
    return failure(StatusCode::kInvalidArgument,
                   "--rate is 0, and a store that delivers nothing starts no training: give what a "
                   "node gets in a second, as 1GiB");
  }
  MR_ASSIGN_OR_RETURN(simulated.latency, parse_duration(flags.latency));
  return simulated;
}

// `indexes` is the store that may have a sample index of these files.
Result<int> simulate_files(Session& session, const SimulateFlags& flags, Simulated simulated,
                           const std::string& name, const VersionReader& reader,
                           ObjectStore& indexes) {
  const auto files = std::make_shared<StoreSampleFiles>(reader);
  // Tar files without an index are counted for this command alone.
  SampleCounting counting({.indexes = std::make_unique<MemoryObjectStore>(),
                           .clock = session.clock(),
                           .scratch = manifest_directory(session)});
  const auto count_samples = [&](const RequestContext& context) {
    return counting.open(context, files, {.name = name});
  };
  MR_ASSIGN_OR_RETURN(
      const std::unique_ptr<SampleSource> source,
      open_samples(session.context(),
                   {.files = *files, .store = indexes, .count_samples = count_samples},
                   flags.reader, flags.directory));
  SimulationOptions& options = simulated.options;
  options.order.seed.content_digest = reader.manifest().content_digest();
  if (const auto* labelled = dynamic_cast<const FilesSource*>(source.get())) {
    if (!labelled->classes().empty()) {
      options.label = [labelled](std::uint64_t sample) { return labelled->label(sample); };
    }
  }
  MR_ASSIGN_OR_RETURN(const SimulationReport report, simulate_epoch(source->stretches(), options));
  MR_RETURN_IF_ERROR(
      print_simulated(session, name, *source, report, first_step_seconds(report, simulated)));
  return kExitOk;
}

// A directory or a URL, as it is now.
Result<int> simulate_place(Session& session, const SimulateFlags& flags, Simulated simulated) {
  MR_ASSIGN_OR_RETURN(const StoreUrl url, parse_store_url(whole_place(flags.ref)));
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, session.store(url));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Manifest> manifest,
                      list_unregistered(session.context(), *store, manifest_directory(session),
                                        system_random(), session.clock()));
  const VersionReader reader(*store, *manifest, unregistered_ref(),
                             {.request_timeout = session.settings().timeout}, session.clock());
  MemoryObjectStore no_indexes;
  return simulate_files(session, flags, std::move(simulated), flags.ref, reader, no_indexes);
}

Result<int> run_simulate(Session& session, const SimulateFlags& flags) {
  MR_ASSIGN_OR_RETURN(Simulated simulated, parse_simulated(flags));
  if (names_a_place(flags.ref)) return simulate_place(session, flags, std::move(simulated));
  MR_ASSIGN_OR_RETURN(const OpenVersion version, open_version(session, flags.ref));
  const VersionReader reader = version.reader(session);
  return simulate_files(session, flags, std::move(simulated), version.entry.ref.text(), reader,
                        *version.registry.store);
}

}  // namespace

void register_simulate(CommandLine& line, CLI::App& root) {
  auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command = root.add_subcommand(
      "simulate",
      "Say what an epoch of a loader would be like, from sizes alone: how well it is "
      "shuffled, what it fetches, what cache it needs, how soon it starts");
  command->add_option("version", flags->ref, "DATASET@VERSION, DATASET@ALIAS, a directory or a URL")
      ->type_name("REF")
      ->required();
  command->add_option("--reader", flags->reader, "auto, mds, webdataset, files or grouped");
  command->add_option("--directory", flags->directory, "Only what is below it");
  command->add_option("--order", flags->order, "block, full or none");
  command->add_option("--seed", flags->seed, "Of the order")->check(whole_number());
  command->add_option("--epoch", flags->epoch, "Which one")->check(whole_number());
  command->add_option("--nodes", flags->nodes, "Nodes, each with a cache")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option("--ranks", flags->ranks, "Ranks on each node")->check(CLI::Range(1, 1 << 16));
  command->add_option("--replication", flags->replication, "Ranks that see the same samples")
      ->check(whole_number());
  command->add_option("--batch", flags->batch, "Samples in a batch of each rank")
      ->check(whole_number());
  command
      ->add_option("--window-rows", flags->window_rows,
                   "Rows of 48 blocks that are shuffled together")
      ->check(CLI::Range(kWindowRowsMin, kWindowRowsMax));
  command->add_option("--cache", flags->cache, "Size of each node's cache, as 20GiB");
  command->add_option("--rate", flags->rate, "What the store delivers to a node in a second");
  command->add_option("--latency", flags->latency, "Of a request to the store");
  line.runs(command, [flags](Session& session) { return run_simulate(session, *flags); });
}

}  // namespace millrace::cli
