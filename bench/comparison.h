#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/run_figures.h"

namespace millrace::bench {

struct Contender {
  std::string name;
  std::function<RunFigures()> run;
};

// One run of ours and the best one of the peers' in the same seconds.
struct Round {
  RunFigures ours;
  RunFigures peer;
  std::string peer_name;
};

struct Comparison {
  std::vector<Round> rounds;
  // The best rate that any client got at any time: at least what the server can do.
  double ceiling_rate = 0;

  // Medians over the rounds. The ratios are taken inside each round first, because a shared
  // machine changes its speed from one round to the next.
  double rate() const;
  double rate_ratio() const;
  double cpu_s() const;
  double cpu_per_amount() const;
  double cpu_ratio() const;
  double rss_mib_max() const;
};

double median(std::vector<double> values);

// Runs ours and the peers in turn. Every peer runs once to find the best two, and each round takes
// the better of those, so that the peer is never the wrong choice. Every other round the peers go
// first.
Comparison compare(const Contender& ours, std::vector<Contender> peers, int rounds);

}  // namespace millrace::bench
