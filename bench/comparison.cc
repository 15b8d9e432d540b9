#include "bench/comparison.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace millrace::bench {
namespace {

constexpr std::size_t kFinalists = 2;

// The rounds' values of one figure.
template <class Figure>
std::vector<double> each(const std::vector<Round>& rounds, Figure figure) {
  std::vector<double> values;
  for (const Round& round : rounds)
    values.push_back(figure(round));
  return values;
}

// Leaves the best peers in the list. Returns the best rate.
double select_finalists(std::vector<Contender>& peers) {
  std::vector<std::pair<double, Contender>> tried;
  for (Contender& peer : peers) {
    const double rate = peer.run().rate();
    tried.emplace_back(rate, std::move(peer));
  }
  std::ranges::sort(tried, std::greater{}, [](const auto& entry) { return entry.first; });
  peers.clear();
  for (auto& [rate, peer] : tried | std::views::take(kFinalists))
    peers.push_back(std::move(peer));
  return tried.front().first;
}

void run_best_peer(const std::vector<Contender>& peers, Round& round) {
  for (const Contender& peer : peers) {
    const RunFigures figures = peer.run();
    if (!round.peer_name.empty() && figures.rate() <= round.peer.rate()) continue;
    round.peer = figures;
    round.peer_name = peer.name;
  }
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Comparison::rate() const {
  return median(each(rounds, [](const Round& round) { return round.ours.rate(); }));
}

double Comparison::rate_ratio() const {
  return median(
      each(rounds, [](const Round& round) { return round.ours.rate() / round.peer.rate(); }));
}

double Comparison::cpu_s() const {
  return median(each(rounds, [](const Round& round) { return round.ours.cpu_s; }));
}

double Comparison::cpu_per_amount() const {
  return median(each(rounds, [](const Round& round) { return round.ours.cpu_per_amount(); }));
}

double Comparison::cpu_ratio() const {
  return median(each(rounds, [](const Round& round) {
    return round.ours.cpu_per_amount() / round.peer.cpu_per_amount();
  }));
}

double Comparison::rss_mib_max() const {
  return std::ranges::max(each(rounds, [](const Round& round) { return round.ours.rss_mib; }));
}

Comparison compare(const Contender& ours, std::vector<Contender> peers, int rounds) {
  Comparison comparison;
  comparison.ceiling_rate = select_finalists(peers);
  for (int number = 0; number < rounds; ++number) {
    Round round;
    if (number % 2 == 1) run_best_peer(peers, round);
    round.ours = ours.run();
    if (number % 2 == 0) run_best_peer(peers, round);
    comparison.ceiling_rate =
        std::max({comparison.ceiling_rate, round.ours.rate(), round.peer.rate()});
    comparison.rounds.push_back(std::move(round));
  }
  return comparison;
}

}  // namespace millrace::bench
