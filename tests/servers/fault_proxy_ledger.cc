#include "tests/servers/fault_proxy_ledger.h"

#include <numeric>
#include <utility>

namespace millrace::testing {

std::uint64_t ProxyStats::faults_total() const {
  return std::accumulate(faults.begin(), faults.end(), std::uint64_t{0});
}

void ProxyLedger::set_policy(FaultPolicy policy) {
  const std::lock_guard lock(mutex_);
  std::swap(policy_, policy);
}

void ProxyLedger::set_settings(const ProxySettings& settings) {
  const std::lock_guard lock(mutex_);
  settings_ = settings;
}

ProxySettings ProxyLedger::settings() const {
  const std::lock_guard lock(mutex_);
  return settings_;
}

ProxyLedger::Decision ProxyLedger::begin(ProxiedRequest& request) {
  const std::lock_guard lock(mutex_);
  request.sequence = sequence_++;
  ++stats_.requests;
  ++stats_.requests_by_method[request.method];
  ++stats_.requests_in_flight;
  const Fault fault = policy_ ? policy_(request) : Fault::kNone;
  if (settings_.logged_requests_max > 0) {
    log_.push_back({.method = request.method,
                    .target = request.target,
                    .range = std::string(request.header("range")),
                    .fault = fault,
                    .sequence = request.sequence});
    while (log_.size() > settings_.logged_requests_max)
      log_.pop_front();
  }
  return {.fault = fault, .settings = settings_};
}

void ProxyLedger::end() {
  const std::lock_guard lock(mutex_);
  --stats_.requests_in_flight;
}

void ProxyLedger::fault_took_effect(Fault fault) {
  const std::lock_guard lock(mutex_);
  ++stats_.faults[static_cast<std::size_t>(fault)];
}

void ProxyLedger::fault_without_effect() {
  const std::lock_guard lock(mutex_);
  ++stats_.faults_without_effect;
}

void ProxyLedger::upstream_failed() {
  const std::lock_guard lock(mutex_);
  ++stats_.upstream_failures;
}

bool ProxyLedger::connection_opened() {
  const std::lock_guard lock(mutex_);
  if (settings_.connections_max > 0 && stats_.connections_open >= settings_.connections_max) {
    ++stats_.connections_refused;
    return false;
  }
  ++stats_.connections_opened;
  ++stats_.connections_open;
  return true;
}

void ProxyLedger::connection_closed() {
  const std::lock_guard lock(mutex_);
  --stats_.connections_open;
}

ProxyStats ProxyLedger::stats() const {
  const std::lock_guard lock(mutex_);
  ProxyStats snapshot = stats_;
  snapshot.body_bytes_up = bytes_up_;
  snapshot.body_bytes_down = bytes_down_;
  return snapshot;
}

void ProxyLedger::reset_stats() {
  const std::lock_guard lock(mutex_);
  ProxyStats fresh;
  fresh.connections_open = stats_.connections_open;
  fresh.requests_in_flight = stats_.requests_in_flight;
  stats_ = std::move(fresh);
  bytes_up_ = 0;
  bytes_down_ = 0;
  log_.clear();
}

std::vector<LoggedRequest> ProxyLedger::requests() const {
  const std::lock_guard lock(mutex_);
  return {log_.begin(), log_.end()};
}

}  // namespace millrace::testing
