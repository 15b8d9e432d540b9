#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "objectstore/object_store.h"

namespace millrace::bench {

// What to ask for. Both functions are called from the store's own threads, several at a time.
struct LoadPlan {
  std::size_t in_flight = 1;
  std::uint64_t requests_max = std::numeric_limits<std::uint64_t>::max();
  double seconds_max = std::numeric_limits<double>::infinity();
  // The request with that number, from 0.
  std::function<GetRequest(std::uint64_t number)> request;
  // Looks at an answer; may be empty.
  std::function<Status(std::uint64_t number, const GetResult& result)> check;
};

struct LoadResult {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
};

// Keeps `in_flight` requests going: each answer starts the next request on the thread that brought
// it. Returns when the plan is at its end and all is answered. Throws std::runtime_error with the
// first failure: a benchmark that lost a request has measured nothing.
LoadResult run_closed_loop(ObjectStore& store, const LoadPlan& plan);

}  // namespace millrace::bench
