#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace millrace::testing {

// A TCP socket with an input buffer, for one thread that reads and writes with blocking calls.
// abort() alone may come from another thread: it makes the blocked call return.
class BufferedSocket {
 public:
  BufferedSocket() = default;
  ~BufferedSocket();
  BufferedSocket(const BufferedSocket&) = delete;
  BufferedSocket& operator=(const BufferedSocket&) = delete;

  void adopt(int fd);
  // False when the server cannot be reached, or after abort().
  bool connect(const std::string& host, std::uint16_t port);
  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  // What has been read and not consumed. The bytes may be changed in place.
  std::span<char> buffered() { return {buffer_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t count) { begin_ += count; }
  // Reads more, waiting if need be. False at the end of the stream, on error, or when the buffer
  // is full of bytes that nobody consumed.
  bool fill();

  // Sends everything; with `more`, the kernel may wait for the next call to fill a packet.
  bool send(std::string_view bytes, bool more = false);

  // Moves up to `count` bytes of what is not yet in the buffer to another socket, inside the
  // kernel. Waits for the first byte. Returns how many went, 0 at the end of the stream or on
  // error.
  std::size_t splice_to(BufferedSocket& to, std::uint64_t count);

  // For an idle connection: the peer has closed it, or has sent what nobody asked for.
  bool stale() const;

  // Waits until the peer has acknowledged everything, at most this long. A reset throws away what
  // is still queued, so whoever promises "half of the body, then RST" waits first.
  void flush(std::chrono::milliseconds timeout) const;

  void close();
  void reset();  // RST to the peer.
  // FIN to the peer. Unread input would turn a plain close into a RST, so this reads until the
  // peer closes too, for a short while.
  void close_gracefully();

  // From any thread: ends all waiting on this socket, now and later.
  void abort();
  // From any thread: ends a wait for input, and lets the owner's close() send a RST.
  void abort_with_reset();

 private:
  static constexpr std::size_t kBufferBytes = 256 * 1024;

  bool open_pipe();

  int fd_ = -1;  // Written under mutex_ by the owner thread, read freely by it.
  std::mutex mutex_;
  bool aborted_ = false;  // Guarded by mutex_.
  std::unique_ptr<char[]> buffer_;
  std::array<int, 2> pipe_{-1, -1};  // For splice_to(), made at its first use; empty between calls.
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Below this, a copy through the buffer costs less than the system calls of a splice.
inline constexpr std::uint64_t kSpliceBytesMin = 64 * 1024;

// Sleeps until `until`, or less: until the peer of `fd` closes or resets, or `stop_fd` becomes
// readable. True when the time was slept in full.
bool sleep_unless_closed(int fd, int stop_fd, std::chrono::steady_clock::time_point until);

// Spreads bytes over time. A rate of 0 means no limit.
class Pacer {
 public:
  // How many of `wanted` bytes to send next; the caller then calls wait() with what it sent.
  static std::size_t piece(std::size_t wanted, std::uint64_t bytes_per_second);
  // Waits until the line is free again after `sent` bytes. False when the peer left meanwhile.
  bool wait(std::size_t sent, std::uint64_t bytes_per_second, int fd, int stop_fd);

 private:
  std::chrono::steady_clock::time_point free_at_{};
};

}  // namespace millrace::testing
