#include "cli/bench_loader_command.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/units.h"
#include "cli/daemon_start.h"
#include "cli/exit_code.h"
#include "cli/session.h"
#include "cli/whole_number.h"
#include "daemon/loader_front_end.h"
#include "frontends/loader/daemon_engine.h"
#include "loader/emulated_training.h"
#include "service/loader_sources.h"

namespace millrace::cli {
namespace {

struct BenchLoaderFlags {
  std::string name;
  std::string reader = "auto";
  std::string workload = "resnet50";
  std::string accelerator = "h100";
  std::uint64_t accelerators = 1;
  std::uint64_t batch = 0;
  std::uint64_t steps = 500;
  std::uint64_t prefetch = 4;
};

Result<TrainingWorkload> find_workload(const std::string& name) {
  std::string known;
  for (const TrainingWorkload& workload : training_workloads()) {
    if (workload.name == name) return workload;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", workload.name);
  }
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("there is no workload '{}': {}", name, known));
}

Status print_training(Session& session, const BenchLoaderFlags& flags,
                      const TrainingWorkload& workload, const TrainingReport& report) {
  const double seconds = std::chrono::duration<double>(report.total).count();
  const double first = std::chrono::duration<double>(report.first_batch).count();
  const bool fed = report.utilisation >= workload.utilisation_min;
  const auto rate = [&](std::uint64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  Output& output = session.output();
  if (output.json()) {
    return output.document({{"workload", workload.name},
                            {"accelerator", flags.accelerator},
                            {"accelerators", flags.accelerators},
                            {"steps", report.steps},
                            {"samples", report.samples},
                            {"bytes", report.bytes},
                            {"seconds", seconds},
                            {"first_batch_seconds", first},
                            {"utilisation", report.utilisation},
                            {"utilisation_min", workload.utilisation_min},
                            {"fed", fed}});
  }
  MR_RETURN_IF_ERROR(output.line(
      fmt::format("{} on {} emulated {}: {:.1f} % of the time computing ({:.0f} % are needed): {}",
                  workload.name, flags.accelerators, flags.accelerator, 100 * report.utilisation,
                  100 * workload.utilisation_min, fed ? "they are fed" : "they starve")));
  return output.line(
      fmt::format("{} steps each in {:.1f} s, {:.0f} samples/s, {}/s; first batch after {:.2f} s",
                  report.steps, seconds, rate(report.samples),
                  format_size(static_cast<std::uint64_t>(rate(report.bytes))), first));
}

Result<std::shared_ptr<BatchEngine>> open_engine(Session& session,
                                                 const std::vector<SourceChoice>& sources) {
  MR_RETURN_IF_ERROR(ensure_daemon(session));
  bool reached = false;
  return DaemonEngine::open(
      session.request(),
      {.socket = loader_socket(session.settings().socket),
       .store = session.settings().store.to_string(),
       .run = session.environment()("MILLRACE_RUN").value_or(""),
       .start_daemon = [&session](const RequestContext&) { return ensure_daemon(session); }},
      sources, reached);
}

Result<int> bench_loader(Session& session, const BenchLoaderFlags& flags) {
  MR_ASSIGN_OR_RETURN(const TrainingWorkload workload, find_workload(flags.workload));
  JobChoice choice;
  choice.sources.push_back({.name = whole_place(flags.name), .reader = flags.reader});
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<BatchEngine> engine,
                      open_engine(session, choice.sources));
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<const LoaderJob> job,
                      LoaderJob::make(std::move(choice), engine->sources()));
  const bool is_h100 = flags.accelerator == "h100";
  MR_ASSIGN_OR_RETURN(const TrainingReport report,
                      emulate_training(session.context(), engine, job,
                                       {.accelerators = flags.accelerators,
                                        .batch = flags.batch == 0 ? workload.batch : flags.batch,
                                        .step = is_h100 ? workload.step_h100 : workload.step_a100,
                                        .steps_max = flags.steps,
                                        .prefetch = flags.prefetch},
                                       session.clock()));
  MR_RETURN_IF_ERROR(print_training(session, flags, workload, report));
  return report.utilisation >= workload.utilisation_min ? kExitOk : kExitFailure;
}

}  // namespace

void register_bench_loader(CommandLine& line, CLI::App& bench) {
  auto flags = std::make_shared<BenchLoaderFlags>();
  CLI::App* const command = bench.add_subcommand(
      "loader",
      "Say whether this machine feeds so many accelerators: trainings of MLPerf Storage "
      "that only wait where they would compute");
  command->add_option("version", flags->name, "DATASET@VERSION, a directory or a URL")
      ->type_name("REF")
      ->required();
  command->add_option("--reader", flags->reader, "auto, mds, webdataset, files or grouped");
  command->add_option("--workload", flags->workload, "resnet50, unet3d or cosmoflow");
  command->add_option("--accelerator", flags->accelerator, "What is emulated")
      ->check(CLI::IsMember({"h100", "a100"}));
  command->add_option("--accelerators", flags->accelerators, "How many, on this machine")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 1024));
  command->add_option("--batch", flags->batch, "Samples in a batch; 0: as the workload has it")
      ->check(whole_number());
  command
      ->add_option("--steps", flags->steps, "Of each accelerator, over as many epochs as it takes")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--prefetch", flags->prefetch, "Batches that each reads ahead")
      ->check(CLI::Range(1, 1024));
  line.runs(command, [flags](Session& session) { return bench_loader(session, *flags); });
}

}  // namespace millrace::cli
