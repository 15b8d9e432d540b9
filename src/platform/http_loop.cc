#include "platform/http_loop.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace millrace {
namespace {

// How often slow exchanges and resting connections are looked at.
constexpr Duration kTick = std::chrono::milliseconds(500);
// Most servers hang up on connections that rest for a minute or more; going first avoids sending a
// request into one that is just being closed.
constexpr Duration kRestMax = std::chrono::seconds(50);

std::string pool_key_of(const HttpExchange& exchange) {
  const std::string& trust = exchange.request().ca_bundle;
  return trust.empty() ? exchange.origin() : exchange.origin() + " " + trust;
}

}  // namespace

HttpLoop::HttpLoop(std::string name, const CurlHttpClientOptions& options,
                   std::size_t connections_max)
    : options_(options), connections_max_(connections_max), loop_(std::move(name)) {
  connector_ = std::make_unique<CurlConnector>(
      loop_, options_, [this](CURL* easy, Result<int> fd) { on_connected(easy, std::move(fd)); });
}

HttpLoop::~HttpLoop() {
  Waiter<bool> done;
  loop_.resume([this, answer = done.completion()]() mutable {
    while (!exchanges_.empty()) {
      call_off(exchanges_.begin()->first, Status(StatusCode::kCancelled, "the client is closing"));
    }
    while (!connections_.empty())
      close(*connections_.begin()->second);
    connector_.reset();
    answer.complete(true);
  });
  (void)done.wait();
}

void HttpLoop::start(std::unique_ptr<HttpExchange> exchange) {
  exchange->id = next_id_.fetch_add(1, std::memory_order_relaxed);
  loop_.resume([this, exchange = std::move(exchange)]() mutable { begin(std::move(exchange)); });
}

void HttpLoop::begin(std::unique_ptr<HttpExchange> started) {
  HttpExchange& exchange = *started;
  const RequestContext& context = exchange.context();
  Status status = context.check(system_clock());
  if (status.ok()) status = exchange.prepare(options_.user_agent);
  if (!status.ok()) return exchange.answer(failure(std::move(status)));
  const std::uint64_t id = exchange.id;
  exchanges_.emplace(id, std::move(started));
  if (context.has_deadline()) {
    deadlines_.emplace(context.deadline(), id);
    arm_deadline();
  }
  arm_tick();
  // Cancelling only posts: this object is its thread's alone.
  exchange.cancel_subscription = context.cancellation().subscribe([this, id] {
    loop_.resume(
        [this, id] { call_off(id, Status(StatusCode::kCancelled, "the request was cancelled")); });
  });
  place(exchange);
}

void HttpLoop::place(HttpExchange& exchange) {
  std::string key = pool_key_of(exchange);
  // A restarted exchange has met one stale connection; its sisters rested as long.
  if (!exchange.request().fresh_connection && !exchange.restarted) {
    const auto resting = idle_.find(key);
    if (resting != idle_.end() && !resting->second.empty()) {
      HttpConnection& connection = *resting->second.back();
      resting->second.pop_back();
      return run(connection, exchange);
    }
  }
  if (connections_.size() < connections_max_ || make_room()) {
    return open_connection(exchange, std::move(key));
  }
  waiting_.push_back(exchange.id);
}

// Closes a connection that rests, for one to somewhere else.
bool HttpLoop::make_room() {
  for (auto& [key, resting] : idle_) {
    if (resting.empty()) continue;
    close(*resting.front());
    return true;
  }
  return false;
}

void HttpLoop::open_connection(HttpExchange& exchange, std::string pool_key) {
  const bool tls = exchange.origin().starts_with("https:");
  CURL* easy = connector_->connect(exchange.origin(), exchange.request().ca_bundle, tls);
  if (easy == nullptr) {
    return end(exchange, failure(StatusCode::kResourceExhausted, "no memory for a connection"));
  }
  auto connection = std::make_unique<HttpConnection>(easy, std::move(pool_key));
  connection->exchange = &exchange;
  exchange.connection = connection.get();
  connections_.emplace(easy, std::move(connection));
}

void HttpLoop::on_connected(CURL* easy, Result<int> fd) {
  const auto found = connections_.find(easy);
  assert(found != connections_.end());
  HttpConnection& connection = *found->second;
  HttpExchange& exchange = *connection.exchange;
  Status status = fd ? connection.set_connected(*fd, exchange.origin().starts_with("https:"))
                     : std::move(fd).error();
  if (!status.ok()) {
    close(connection);
    end(exchange, failure(std::move(status)));
    return serve_waiting();
  }
  loop_.watch(connection.fd(), EventLoop::kRead,
              [this, &connection](std::uint32_t ready) { on_ready(connection, ready); });
  run(connection, exchange);
}

void HttpLoop::run(HttpConnection& connection, HttpExchange& exchange) {
  exchange.connection = &connection;
  settle(connection, connection.begin(exchange));
}

void HttpLoop::on_ready(HttpConnection& connection, std::uint32_t ready) {
  if (connection.exchange == nullptr || ready == 0) {
    close(connection);
    return serve_waiting();
  }
  settle(connection, connection.advance());
}

void HttpLoop::settle(HttpConnection& connection, HttpConnection::Outcome outcome) {
  HttpExchange& exchange = *connection.exchange;
  switch (outcome) {
    case HttpConnection::Outcome::kWaiting: {
      std::uint32_t interest = EventLoop::kRead;
      if (connection.wants_write()) interest |= EventLoop::kWrite;
      return loop_.set_interest(connection.fd(), interest);
    }
    case HttpConnection::Outcome::kDone: {
      Result<HttpResponse> result = exchange.conclude(std::move(connection.response()));
      connection.exchange = nullptr;
      if (connection.reusable()) {
        rest(connection);
      } else {
        close(connection);
      }
      end(exchange, std::move(result));
      return serve_waiting();
    }
    case HttpConnection::Outcome::kFailed: {
      Status status = connection.failure();
      // A kept connection may have died while it rested. Then nothing came back, and what may be
      // sent twice is, once, on a new one. All else is for the caller to decide.
      const bool stale = connection.used_before && !connection.answered();
      close(connection);
      if (stale && exchange.repeatable() && !exchange.restarted) {
        exchange.restart();
        return place(exchange);
      }
      end(exchange, failure(std::move(status)));
      return serve_waiting();
    }
  }
}

void HttpLoop::rest(HttpConnection& connection) {
  connection.used_before = true;
  connection.idle_since = system_clock().now();
  idle_[connection.pool_key()].push_back(&connection);
  // It goes on being watched for reading: see invariant 3.
  loop_.set_interest(connection.fd(), EventLoop::kRead);
}

void HttpLoop::close(HttpConnection& connection) {
  if (connection.exchange != nullptr) connection.exchange->connection = nullptr;
  const auto resting = idle_.find(connection.pool_key());
  if (resting != idle_.end()) std::erase(resting->second, &connection);
  if (connection.connected()) loop_.unwatch(connection.fd());
  CURL* easy = connection.easy();
  connections_.erase(easy);
  connector_->close(easy);
}

void HttpLoop::serve_waiting() {
  while (!waiting_.empty()) {
    const auto found = exchanges_.find(waiting_.front());
    if (found == exchanges_.end()) {
      waiting_.pop_front();
      continue;
    }
    const bool resting =
        std::ranges::any_of(idle_, [](const auto& e) { return !e.second.empty(); });
    if (connections_.size() >= connections_max_ && !resting) return;
    waiting_.pop_front();
    place(*found->second);
  }
}

void HttpLoop::end(HttpExchange& exchange, Result<HttpResponse> result) {
  exchange.context().cancellation().unsubscribe(exchange.cancel_subscription);
  if (exchange.context().has_deadline()) {
    deadlines_.erase({exchange.context().deadline(), exchange.id});
  }
  const auto node = exchanges_.extract(exchange.id);
  exchange.answer(std::move(result));
}

void HttpLoop::call_off(std::uint64_t id, Status status) {
  const auto found = exchanges_.find(id);
  if (found == exchanges_.end()) return;
  HttpExchange& exchange = *found->second;
  // Half an answer may be on its way, so its connection goes too.
  if (exchange.connection != nullptr) close(*exchange.connection);
  end(exchange, failure(status.with_context(exchange.describe())));
  serve_waiting();
}

void HttpLoop::arm_deadline() {
  if (deadlines_.empty()) return;
  const TimePoint first = deadlines_.begin()->first;
  // One that is armed too early finds nothing to do and arms itself again: cheaper than moving it
  // for every request that is answered in time.
  if (deadline_timer_ != 0 && deadline_armed_ <= first) return;
  if (deadline_timer_ != 0) loop_.cancel_timer(deadline_timer_);
  deadline_armed_ = first;
  deadline_timer_ = loop_.run_at(first, [this] { on_deadline(); });
}

void HttpLoop::on_deadline() {
  deadline_timer_ = 0;
  const TimePoint now = system_clock().now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    call_off(deadlines_.begin()->second,
             Status(StatusCode::kDeadlineExceeded, "it did not finish before the deadline"));
  }
  arm_deadline();
}

void HttpLoop::arm_tick() {
  if (tick_armed_ || (exchanges_.empty() && connections_.empty())) return;
  tick_armed_ = true;
  loop_.run_at(system_clock().now() + kTick, [this] { on_tick(); });
}

void HttpLoop::on_tick() {
  tick_armed_ = false;
  std::vector<std::uint64_t> stalled;
  const std::uint64_t tick_bytes_min =
      options_.stall_bytes_per_second * static_cast<std::uint64_t>(kTick.count()) / 1'000'000'000;
  for (const auto& [id, exchange] : exchanges_) {
    // Waiting for a free connection, or for libcurl to make one, has limits of its own.
    const bool moving = exchange->connection != nullptr && exchange->connection->connected();
    if (!moving || options_.stall_bytes_per_second == 0) continue;
    const bool thinking = exchange->request().slow_answer && !exchange->connection->answered() &&
                          !exchange->connection->wants_write();
    const std::uint64_t moved = exchange->bytes_moved - exchange->bytes_at_last_tick;
    exchange->bytes_at_last_tick = exchange->bytes_moved;
    exchange->slow_for =
        thinking || moved > tick_bytes_min ? Duration(0) : exchange->slow_for + kTick;
    if (exchange->slow_for >= options_.stall_window) stalled.push_back(id);
  }
  for (const std::uint64_t id : stalled) {
    call_off(id, Status(StatusCode::kUnavailable,
                        fmt::format("slower than {}/s for {}",
                                    format_size(options_.stall_bytes_per_second),
                                    format_duration(options_.stall_window))));
  }
  const TimePoint oldest = system_clock().now() - kRestMax;
  for (auto& [key, resting] : idle_) {
    while (!resting.empty() && resting.front()->idle_since < oldest)
      close(*resting.front());
  }
  arm_tick();
}

}  // namespace millrace
