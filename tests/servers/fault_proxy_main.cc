// A FaultProxy as a program, for benchmarks and for trying things by hand.
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/servers/fault_proxy.h"

namespace millrace::testing {
namespace {

constexpr std::string_view kUsage =
    R"(usage: fault_proxy --upstream ADDRESS:PORT [options]
  --listen PORT          port on 127.0.0.1 (default: a free one)
  --latency TIME         added to each request: 20ms, 1.5s, 300us
  --bandwidth SIZE       bytes per second, connection and direction: 100MiB, 512KiB
  --connections N        reset connections beyond this many
  --faults PERCENT       share of requests that suffer a fault: 20%
  --kinds NAME,NAME,...  faults to draw from (default: all but the stalls)
  --seed N               of the draw (default 1)
  --drip SIZE            bytes per second of the drip fault (default 64)
  --retry-after SECONDS  header of the slow-down fault
Prints its URL; on SIGINT or SIGTERM prints what it did and ends.
)";

struct Arguments {
  std::string upstream_host;
  std::uint16_t upstream_port = 0;
  std::uint16_t listen_port = 0;
  ProxySettings settings;
  double faults = 0;
  std::uint64_t seed = 1;
  std::vector<WeightedFault> kinds = all_faults();
};

// "20ms" with {"ms": 1e-3} is 0.02.
double parse_quantity(std::string_view flag, std::string_view text,
                      const std::map<std::string_view, double>& units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto found = units.find(unit);
  if (error != std::errc() || found == units.end() || !(value >= 0)) {
    std::string names;
    for (const auto& [name, factor] : units)
      names += fmt::format(" \"{}\"", name);
    throw std::invalid_argument(
        fmt::format("{} {}: expected a number with one of the units{}", flag, text, names));
  }
  return value * found->second;
}

std::uint64_t parse_size(std::string_view flag, std::string_view text) {
  return static_cast<std::uint64_t>(parse_quantity(
      flag, text,
      {{"", 1}, {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"MB", 1e6}}));
}

std::uint64_t parse_count(std::string_view flag, std::string_view text) {
  return static_cast<std::uint64_t>(parse_quantity(flag, text, {{"", 1}}));
}

std::uint16_t parse_port(std::string_view flag, std::string_view text) {
  const std::uint64_t port = parse_count(flag, text);
  if (port > 65535) throw std::invalid_argument(fmt::format("{} {}: no such port", flag, text));
  return static_cast<std::uint16_t>(port);
}

std::vector<WeightedFault> parse_kinds(std::string_view text) {
  std::vector<WeightedFault> kinds;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    const auto fault = fault_from_name(name);
    if (!fault) {
      std::string names;
      for (const auto& known : all_faults({.stalls = true})) {
        names += fmt::format(" {}", fault_name(known.fault));
      }
      throw std::invalid_argument(fmt::format("--kinds {}: expected one of{}", name, names));
    }
    kinds.push_back({.fault = *fault});
  }
  return kinds;
}

void apply(Arguments& to, std::string_view flag, const std::string& value) {
  if (flag == "--upstream") {
    const std::size_t colon = value.rfind(':');
    if (colon == std::string::npos) {
      throw std::invalid_argument(fmt::format("--upstream {}: expected ADDRESS:PORT", value));
    }
    to.upstream_host = value.substr(0, colon);
    to.upstream_port = parse_port(flag, value.substr(colon + 1));
  } else if (flag == "--listen") {
    to.listen_port = parse_port(flag, value);
  } else if (flag == "--latency") {
    const double seconds = parse_quantity(flag, value, {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}});
    to.settings.latency = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  } else if (flag == "--bandwidth") {
    to.settings.bandwidth_bytes_per_second = parse_size(flag, value);
  } else if (flag == "--connections") {
    to.settings.connections_max = parse_count(flag, value);
  } else if (flag == "--faults") {
    to.faults = parse_quantity(flag, value, {{"%", 0.01}});
  } else if (flag == "--kinds") {
    to.kinds = parse_kinds(value);
  } else if (flag == "--seed") {
    to.seed = parse_count(flag, value);
  } else if (flag == "--drip") {
    to.settings.drip_bytes_per_second = parse_size(flag, value);
  } else if (flag == "--retry-after") {
    to.settings.retry_after = std::chrono::seconds(parse_count(flag, value));
  } else {
    throw std::invalid_argument(fmt::format("{}: no such option", flag));
  }
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) {
      throw std::invalid_argument(fmt::format("{}: a value is missing", words[i]));
    }
    apply(arguments, words[i], words[i + 1]);
  }
  if (arguments.upstream_port == 0) throw std::invalid_argument("--upstream is missing");
  return arguments;
}

void print_stats(const ProxyStats& stats) {
  fmt::print("requests {}", stats.requests);
  for (const auto& [method, count] : stats.requests_by_method)
    fmt::print("  {} {}", method, count);
  fmt::print("\nbody bytes up {}  down {}\nconnections {}  refused {}  upstream failures {}\n",
             stats.body_bytes_up, stats.body_bytes_down, stats.connections_opened,
             stats.connections_refused, stats.upstream_failures);
  fmt::print("faults {}  without effect {}\n", stats.faults_total(), stats.faults_without_effect);
  for (const auto& entry : all_faults({.stalls = true})) {
    if (stats.count(entry.fault) == 0) continue;
    fmt::print("  {} {}\n", fault_name(entry.fault), stats.count(entry.fault));
  }
}

int run(const Arguments& arguments) {
  // Blocked before any thread starts, so that only sigwait below sees them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  FaultProxy proxy(arguments.upstream_host, arguments.upstream_port, arguments.settings,
                   arguments.listen_port);
  if (arguments.faults > 0) {
    proxy.set_policy(random_faults(arguments.seed, arguments.faults, arguments.kinds));
  }
  fmt::print("{}\n", proxy.endpoint());
  std::fflush(stdout);
  int received = 0;
  sigwait(&signals, &received);
  print_stats(proxy.stats());
  return 0;
}

}  // namespace
}  // namespace millrace::testing

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) {
    fmt::print("{}", millrace::testing::kUsage);
    return 0;
  }
  try {
    return millrace::testing::run(millrace::testing::parse(words));
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "fault_proxy: {}\n{}", error.what(), millrace::testing::kUsage);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fault_proxy: {}\n", error.what());
    return 1;
  }
}
