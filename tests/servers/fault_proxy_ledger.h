#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "tests/servers/fault_proxy.h"

namespace millrace::testing {

// What the connections of a FaultProxy share: the policy, the settings and the counters. Safe from
// any thread.
class ProxyLedger {
 public:
  explicit ProxyLedger(const ProxySettings& settings) : settings_(settings) {}

  void set_policy(FaultPolicy policy);
  void set_settings(const ProxySettings& settings);
  ProxySettings settings() const;

  // Numbers the request, counts and logs it, and asks the policy. end() must follow.
  struct Decision {
    Fault fault = Fault::kNone;
    ProxySettings settings;
  };
  Decision begin(ProxiedRequest& request);
  void end();

  void fault_took_effect(Fault fault);
  void fault_without_effect();
  void upstream_failed();
  // False when connections_max forbids one more; connection_closed() follows only after true.
  bool connection_opened();
  void connection_closed();
  void add_bytes_up(std::uint64_t count) { bytes_up_ += count; }
  void add_bytes_down(std::uint64_t count) { bytes_down_ += count; }

  ProxyStats stats() const;
  void reset_stats();
  std::vector<LoggedRequest> requests() const;

 private:
  // Apart from the mutex, since each buffer of a body adds to them.
  std::atomic<std::uint64_t> bytes_up_{0};
  std::atomic<std::uint64_t> bytes_down_{0};

  mutable std::mutex mutex_;  // Guards everything below.
  FaultPolicy policy_;
  ProxySettings settings_;
  ProxyStats stats_;
  std::deque<LoggedRequest> log_;
  std::uint64_t sequence_ = 0;
};

}  // namespace millrace::testing
