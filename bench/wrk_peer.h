#pragma once

#include <string>

#include "bench/bench_objects.h"
#include "bench/bench_store.h"
#include "bench/comparison.h"

namespace millrace::bench {

struct WrkForm {
  int threads = 1;
  int connections = 256;
  double seconds = 1;  // wrk takes whole ones: rounded up.
};

// wrk asking for the objects one after the other, with signatures that were made before it starts
// where the server checks them, as it checks ours. Any answer but a 2xx is an error.
Contender wrk_contender(const BenchTarget& target, const BenchObjects& objects, const WrkForm& form,
                        const std::string& scratch);

}  // namespace millrace::bench
