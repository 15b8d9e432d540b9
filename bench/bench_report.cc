#include "bench/bench_report.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/time_format.h"
#include "base/version.h"
#include "bench/own_network.h"

namespace millrace::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

double load_average() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

json machine() {
  utsname name{};
  (void)::uname(&name);
  return {{"cpu", cpu_model()},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"kernel", std::string(name.release)},
          {"congestion", congestion_control()},
          {"load", load_average()}};
}

json run_as_json(const RunFigures& run, const Unit& unit) {
  return {{"rate", run.rate() / unit.per_rate},
          {"seconds", run.seconds},
          {"cpu_s", run.cpu_s},
          {"cpu_cost", run.cpu_per_amount() * unit.per_cost}};
}

json raw_figures(const Comparison& comparison, const Unit& unit) {
  json rounds = json::array();
  for (const Round& round : comparison.rounds) {
    json ours = run_as_json(round.ours, unit);
    ours["rss_mib"] = round.ours.rss_mib;
    json peer = run_as_json(round.peer, unit);
    peer["name"] = round.peer_name;
    rounds.push_back({{"ours", ours}, {"peer", peer}});
  }
  return {{"rate_unit", unit.rate},
          {"cpu_unit", unit.cost},
          {"server_ceiling", comparison.ceiling_rate / unit.per_rate},
          {"rounds", rounds}};
}

void append_line(const std::string& line) {
  const char* variable = ::getenv("MILLRACE_BENCH_RESULTS");
  const fs::path file = variable != nullptr ? variable : "build/bench/results.jsonl";
  if (file.has_parent_path()) fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::app);
  out << line << '\n';
  if (!out.flush()) throw std::runtime_error(fmt::format("cannot write {}", file.string()));
}

std::string goal_text(const Goal& goal) {
  return fmt::format("{} {}", goal.kind == Goal::Kind::kAtLeast ? ">=" : "<=", goal.ratio);
}

void print(const BenchResult& result, const Comparison& comparison, const Unit& unit) {
  fmt::print("{}: {:.4g} {}, {:.3f} of {}\n", result.bench, result.value, result.unit, result.ratio,
             result.against);
  fmt::print("  the best any client got here: {:.0f} {}\n", comparison.ceiling_rate / unit.per_rate,
             unit.rate);
  for (const Round& round : comparison.rounds) {
    fmt::print("  {:8.0f} {} at {:.3f} {}   peer {:8.0f} at {:.3f}   ({})\n",
               round.ours.rate() / unit.per_rate, unit.rate,
               round.ours.cpu_per_amount() * unit.per_cost, unit.cost,
               round.peer.rate() / unit.per_rate, round.peer.cpu_per_amount() * unit.per_cost,
               round.peer_name);
  }
  std::fflush(stdout);
}

}  // namespace

Unit bytes_unit() {
  return {"MiB/s", static_cast<double>(kMiB), "CPU s/GiB", static_cast<double>(kGiB)};
}

Unit requests_unit() { return {"requests/s", 1, "CPU s/1000 requests", 1000}; }

BenchResult result_of(const Comparison& comparison, std::string bench, const Unit& unit,
                      std::string against, Goal goal, double rss_mib_max) {
  return {.bench = std::move(bench),
          .value = comparison.rate() / unit.per_rate,
          .unit = unit.rate,
          .ratio = comparison.rate_ratio(),
          .against = std::move(against),
          .goal = goal,
          .cpu_s = comparison.cpu_s(),
          .rss_mib = comparison.rss_mib_max(),
          .rss_mib_max = rss_mib_max};
}

void report(const BenchResult& result, const Comparison& comparison, const Unit& unit) {
  print(result, comparison, unit);
  json line = {{"bench", result.bench},
               {"value", result.value},
               {"unit", result.unit},
               {"ratio", result.ratio},
               {"against", result.against},
               {"cpu_s", result.cpu_s},
               {"rss_mib", result.rss_mib},
               {"time", format_iso8601(system_clock().wall_now())},
               {"version", version()},
               {"machine", machine()},
               {"raw", raw_figures(comparison, unit)}};
  if (result.goal) {
    line["goal"] = goal_text(*result.goal);
    line["goal_met"] = result.goal->met(result.ratio);
  }
  if (result.rss_mib_max > 0) line["rss_mib_max"] = result.rss_mib_max;
  append_line(line.dump());
}

void run_alone(const Contender& ours, int rounds, const Unit& unit) {
  for (int number = 0; number < rounds; ++number) {
    const RunFigures run = ours.run();
    fmt::print("{}: {:8.0f} {} at {:.3f} {}, {:.0f} MiB\n", ours.name, run.rate() / unit.per_rate,
               unit.rate, run.cpu_per_amount() * unit.per_cost, unit.cost, run.rss_mib);
    std::fflush(stdout);
  }
}

int run_bench(const char* name, const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace millrace::bench
