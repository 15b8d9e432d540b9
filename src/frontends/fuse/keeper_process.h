#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "frontends/fuse/fuse_keeper.h"
#include "platform/file.h"

namespace millrace {

// Where a keeper finds its listening socket, and the connection of the daemon that starts it.
inline constexpr int kKeeperListener = 3;
inline constexpr int kKeeperDaemon = 4;

// Where the kernel keeps how early a process is ended when memory runs out.
inline constexpr const char* kOomScore = "/proc/self/oom_score_adj";

struct KeeperOptions {
  std::string socket;                // To take away at the end.
  std::vector<std::string> command;  // Starts a daemon. Empty: somebody else does.
  // Readers of a mount that nobody serves cannot even be killed. After this long the mounts are
  // given up: reads fail then.
  Duration alone_max{};
  // What a daemon that it starts has in kOomScore. Empty: as the keeper itself.
  std::string daemon_oom_score = {};
};

// The keeper itself: the whole life of its process, on one thread. It reads nothing from the
// devices and knows nothing of file systems; the less it does, the less it dies.
//
//   served   a daemon is connected. Its end without "leave" makes the keeper start another.
//   alone    nobody is connected, and mounts are kept. A daemon that does not connect in time is
//            started again, with growing pauses, until alone_max. One that connects and dies is
//            started again too, but not without a pause between two starts; until it says that it
//            serves, the mounts count as alone.
//   over     nobody is connected, or is about to leave, and nothing is kept: the process ends.
//
// The path of its socket is taken away before the other side can know that this keeper ends: before
// `leave` is answered, and before the listener closes. So whoever starts the next keeper finds the
// path free, and never has it taken away again.
class KeeperProcess {
 public:
  // `daemon` is the one that started it, connected already: a keeper whose daemon is killed before
  // its first word ends, too.
  KeeperProcess(File listener, File daemon, KeeperOptions options);

  // Returns when there is nothing left to do.
  void run();

 private:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kPauseMax = std::chrono::seconds(10);
  // Readers wait for as long, at most, when a daemon is killed that was just started.
  static constexpr Duration kBetweenStarts = std::chrono::seconds(1);
  // One of an older version serves without a word.
  static constexpr Duration kServingAfter = std::chrono::seconds(5);

  struct Mount {
    std::string facts;
    File device;
    File opens;
  };

  bool is_over() const { return mounts_.empty() && (is_leaving_ || !daemon_.is_open()); }
  int wait_ms() const;
  void accept_daemon();
  void serve_daemon();
  std::string answer(const std::string& question, std::vector<File> files);
  void list();
  void lose_daemon();
  void restart();
  void reap();
  void give_up();
  void unlink_socket();

  const File listener_;
  const KeeperOptions options_;
  File daemon_;
  TimePoint came_{};
  bool is_serving_ = true;
  bool is_leaving_ = false;
  bool has_path_ = true;
  std::map<std::string, Mount> mounts_;  // By the number of their file system.
  pid_t child_ = 0;
  TimePoint alone_since_{};
  TimePoint last_start_ = TimePoint::min();
  TimePoint next_start_ = TimePoint::max();
  Duration pause_ = kFirstPause;
};

}  // namespace millrace
