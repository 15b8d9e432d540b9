#include "platform/curl_loop.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "base/log.h"

namespace millrace {
namespace {

// More idle handles than this are freed: each keeps a few KiB.
constexpr std::size_t kIdleHandlesMax = 512;

// Something arrived on a connection that rests: its end, or bytes that belong to no answer. libcurl
// would take those for the beginning of the next one. Emptied and shut, it is dead to libcurl's own
// look before it reuses a connection.
void spoil(int fd) {
  std::array<char, 4096> discarded;
  while (::recv(fd, discarded.data(), discarded.size(), MSG_DONTWAIT) > 0) {
  }
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace

CurlLoop::CurlLoop(std::string name, const CurlHttpClientOptions& options,
                   std::size_t connections_max)
    : options_(options), multi_(curl_multi_init()), loop_(std::move(name)) {
  if (multi_ == nullptr) throw std::runtime_error("libcurl cannot be initialised");
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(connections_max));
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(connections_max));
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

CurlLoop::~CurlLoop() {
  Waiter<bool> done;
  loop_.resume([this, answer = done.completion()]() mutable {
    while (!transfers_.empty())
      cancel(transfers_.begin()->first);
    for (CURL* easy : idle_handles_)
      curl_easy_cleanup(easy);
    idle_handles_.clear();
    // Closes the connections, which calls close_socket on this thread.
    curl_multi_cleanup(multi_);
    answer.complete(true);
  });
  (void)done.wait();
}

void CurlLoop::start(std::unique_ptr<CurlTransfer> transfer) {
  transfer->id = next_transfer_id_.fetch_add(1, std::memory_order_relaxed);
  loop_.resume([this, transfer = std::move(transfer)]() mutable { begin(std::move(transfer)); });
}

void CurlLoop::begin(std::unique_ptr<CurlTransfer> transfer) {
  if (transfer->context().cancellation().requested()) {
    transfer->answer(failure(StatusCode::kCancelled, "the request was cancelled"));
    return;
  }
  CURL* easy = take_handle();
  if (Status status = transfer->configure(easy, options_); !status.ok()) {
    return_handle(easy);
    transfer->answer(failure(std::move(status)));
    return;
  }
  CurlTransfer& started = *transfer;
  const std::uint64_t id = started.id;
  transfers_.emplace(id, std::move(transfer));
  // Cancelling only posts: libcurl may be touched by this thread alone, and not from its callbacks.
  started.cancel_subscription = started.context().cancellation().subscribe(
      [this, id] { loop_.resume([this, id] { cancel(id); }); });
  curl_multi_add_handle(multi_, easy);
}

void CurlLoop::cancel(std::uint64_t transfer_id) {
  const auto found = transfers_.find(transfer_id);
  if (found == transfers_.end()) return;
  CurlTransfer& transfer = *found->second;
  // Removing a transfer in the middle closes its connection: no later answer can be taken for it.
  curl_multi_remove_handle(multi_, transfer.easy);
  finish(transfer, CURLE_ABORTED_BY_CALLBACK);
}

void CurlLoop::act(curl_socket_t socket, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, socket, events, &running);
  reap();
}

void CurlLoop::reap() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;  // The message dies with remove_handle.
    void* self = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &self);
    curl_multi_remove_handle(multi_, easy);
    finish(*static_cast<CurlTransfer*>(self), code);
  }
}

void CurlLoop::finish(CurlTransfer& transfer, CURLcode code) {
  transfer.context().cancellation().unsubscribe(transfer.cancel_subscription);
  Result<HttpResponse> result = code == CURLE_ABORTED_BY_CALLBACK
                                    ? failure(StatusCode::kCancelled, "the request was cancelled")
                                    : transfer.conclude(code);
  return_handle(std::exchange(transfer.easy, nullptr));
  auto node = transfers_.extract(transfer.id);
  transfer.answer(std::move(result));
}

int CurlLoop::on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) {
  auto& loop = *static_cast<CurlLoop*>(self);
  if (what == CURL_POLL_REMOVE) {
    if (loop.connections_.contains(fd)) {
      loop.loop_.set_interest(fd, 0);
    } else {
      loop.loop_.unwatch(fd);
    }
    return 0;
  }
  std::uint32_t interest = 0;
  if (what & CURL_POLL_IN) interest |= EventLoop::kRead;
  if (what & CURL_POLL_OUT) interest |= EventLoop::kWrite;
  if (loop.loop_.watches(fd)) {
    loop.loop_.set_interest(fd, interest);
    return 0;
  }
  loop.loop_.watch(fd, interest, [&loop, fd](std::uint32_t ready) {
    if (ready == 0) return spoil(fd);
    int events = 0;
    if (ready & EventLoop::kRead) events |= CURL_CSELECT_IN;
    if (ready & EventLoop::kWrite) events |= CURL_CSELECT_OUT;
    loop.act(fd, events);
  });
  return 0;
}

int CurlLoop::on_timer(CURLM*, long timeout_ms, void* self) {
  auto& loop = *static_cast<CurlLoop*>(self);
  loop.loop_.cancel_timer(std::exchange(loop.timer_, 0));
  if (timeout_ms < 0) return 0;
  // Also for 0: libcurl must not be entered again from its own callback.
  loop.timer_ =
      loop.loop_.run_at(system_clock().now() + std::chrono::milliseconds(timeout_ms), [&loop] {
        loop.timer_ = 0;
        loop.act(CURL_SOCKET_TIMEOUT, 0);
      });
  return 0;
}

curl_socket_t CurlLoop::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& loop = *static_cast<CurlLoop*>(self);
  const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (fd < 0) return CURL_SOCKET_BAD;
  loop.connections_opened_.fetch_add(1, std::memory_order_relaxed);
  loop.connections_.insert(fd);
  return fd;
}

int CurlLoop::close_socket(void* self, curl_socket_t fd) {
  auto& loop = *static_cast<CurlLoop*>(self);
  loop.loop_.unwatch(fd);
  loop.connections_.erase(fd);
  return ::close(fd);
}

CURL* CurlLoop::take_handle() {
  if (!idle_handles_.empty()) {
    CURL* easy = idle_handles_.back();
    idle_handles_.pop_back();
    return easy;
  }
  CURL* easy = curl_easy_init();
  if (easy == nullptr) throw std::bad_alloc();
  CurlTransfer::configure_constants(easy, options_);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
  return easy;
}

void CurlLoop::return_handle(CURL* easy) {
  if (idle_handles_.size() >= kIdleHandlesMax) {
    curl_easy_cleanup(easy);
    return;
  }
  idle_handles_.push_back(easy);
}

}  // namespace millrace
