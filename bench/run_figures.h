#pragma once

namespace millrace::bench {

// What one timed run of one client did. The amount is bytes or requests, as the benchmark says.
struct RunFigures {
  double amount = 0;
  double seconds = 0;
  double cpu_s = 0;    // User and system time of the client's processes alone.
  double rss_mib = 0;  // Peak of the client; 0 for peers (see peer_process.h).

  double rate() const { return amount / seconds; }
  double cpu_per_amount() const { return cpu_s / amount; }
};

}  // namespace millrace::bench
