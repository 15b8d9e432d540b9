#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_objects.h"
#include "bench/bench_store.h"
#include "bench/comparison.h"

namespace millrace::bench {

// Which bytes a run fetches: whole objects one after the other, `visits` of them, from the first
// again when the last was reached. Clients differ only in the size of the ranges they ask for.
struct FetchPlan {
  BenchTarget target;
  BenchObjects objects;
  std::size_t visits = 0;
  std::size_t in_flight = 64;

  std::uint64_t bytes() const { return visits * objects.object_bytes; }
};

struct CurlForm {
  std::uint64_t range_bytes = 0;
  std::size_t processes = 1;  // They share the visits and the requests in flight.
};

// `curl -Z` on the plan, everything to /dev/null. The first run also adds up the sizes that curl
// reports, so that a peer which fetches less than it should is an error and not a record.
Contender curl_contender(const FetchPlan& plan, const CurlForm& form, const std::string& scratch);

// What makes curl sign for that target, as lines of a config file and as arguments; nothing where
// the server does not look.
std::string curl_signing_lines(const BenchTarget& target);
std::vector<std::string> curl_signing_arguments(const BenchTarget& target);

}  // namespace millrace::bench
