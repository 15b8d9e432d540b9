#include "bench/nfs_load.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/random.h"
#include "bench/process_usage.h"
#include "platform/file.h"
#include "tests/frontends/nfs4/nfs_client_session.h"

namespace millrace::bench {
namespace {

using millrace::testing::NfsAnswer;
using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using millrace::testing::NfsOpenWish;
using millrace::testing::NfsSession;
using Clock = std::chrono::steady_clock;

// Above this a run counts bytes.
constexpr std::uint32_t kSmallReadBytes = 64 * 1024;

// Time and the server's processor time, from construction on.
class ServerUsage {
 public:
  explicit ServerUsage(pid_t pid) : pid_(pid), cpu_s_(process_cpu_s(pid)) {}
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  RunFigures figures(double amount) const {
    return {.amount = amount, .seconds = seconds(), .cpu_s = process_cpu_s(pid_) - cpu_s_};
  }

 private:
  const pid_t pid_;
  const double cpu_s_;
  const Clock::time_point start_ = Clock::now();
};

std::string client_name(const char* what) { return fmt::format("bench {} {}", what, ::getpid()); }

// One file on its way through a slot: open, read, close.
struct SmallFile {
  enum class Step { kOpen, kRead, kClose };
  Step step = Step::kOpen;
  std::string handle;
  NfsStateid stateid;
};

NfsCall next_step(NfsSession& session, std::uint32_t slot, const SmallFile& file,
                  const std::string& directory, std::uint64_t number) {
  NfsCall call = session.call(slot, file.step != SmallFile::Step::kRead);
  switch (file.step) {
    case SmallFile::Step::kOpen:
      call.put_fh(directory)
          .open({.name = std::to_string(number),
                 .access = kShareAccessRead | kShareWantNoDeleg,
                 .owner = "bench"})
          .get_fh();
      break;
    case SmallFile::Step::kRead:
      call.put_fh(file.handle).read(file.stateid, 0, kNfsReadBytesMax);
      break;
    case SmallFile::Step::kClose:
      call.put_fh(file.handle).close(file.stateid);
      break;
  }
  return call;
}

void take_step(NfsAnswer& answer, SmallFile& file) {
  answer.good(NfsOperation::kPutFh);
  switch (file.step) {
    case SmallFile::Step::kOpen: {
      millrace::testing::NfsOpened opened = millrace::testing::read_opened(answer);
      file.stateid = opened.stateid;
      file.handle = answer.good(NfsOperation::kGetFh).text(kNfsHandleBytesMax);
      file.step = SmallFile::Step::kRead;
      break;
    }
    case SmallFile::Step::kRead:
      answer.good(NfsOperation::kRead);
      file.step = SmallFile::Step::kClose;
      break;
    case SmallFile::Step::kClose:
      answer.good(NfsOperation::kClose);
      file.step = SmallFile::Step::kOpen;
      break;
  }
}

struct Listener {
  File socket = File::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "listener");
  std::uint16_t port = 0;

  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.descriptor(), generic, length) != 0 ||
        ::listen(socket.descriptor(), 1) != 0 ||
        ::getsockname(socket.descriptor(), generic, &length) != 0) {
      throw std::runtime_error("no port for the plain sender");
    }
    port = ntohs(address.sin_port);
  }
};

// In a process of its own, until the other side ends the connection.
[[noreturn]] void send_plainly(int listener, const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int client = ::accept(listener, nullptr, nullptr);
  const int on = 1;
  ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::uint64_t place = 0;
  while (::recv(client, &place, sizeof place, MSG_WAITALL) == sizeof place) {
    auto at = static_cast<off_t>(place);
    for (std::size_t left = kMiB; left > 0;) {
      const ssize_t sent = ::sendfile(client, file, &at, left);
      if (sent <= 0) ::_exit(1);
      left -= static_cast<std::size_t>(sent);
    }
  }
  ::_exit(0);
}

}  // namespace

void nfs_read_through(const NfsTarget& target, const std::string& file) {
  NfsConnection connection(target.port);
  NfsSession session(connection, {.owner = client_name("through")});
  (void)session.read_file(session.lookup(target.directory + "/" + file));
  session.destroy();
}

RunFigures nfs_read_load(const NfsTarget& target, const std::string& file, std::uint64_t file_bytes,
                         std::uint32_t bytes, std::uint32_t depth, double seconds) {
  NfsConnection connection(target.port);
  NfsSession session(connection, {.owner = client_name("reads"), .slots = depth});
  const std::string handle = session.lookup(target.directory + "/" + file);
  SeededRandom random(1);
  const auto ask = [&](std::uint32_t slot) {
    const std::uint64_t place = random.next() % (file_bytes / bytes) * bytes;
    session.send(slot, session.call(slot).put_fh(handle).read({}, place, bytes));
  };
  const ServerUsage usage(target.pid);
  std::uint64_t done = 0;
  for (std::uint32_t slot = 0; slot < depth; ++slot)
    ask(slot);
  for (std::uint32_t open = depth; open > 0;) {
    auto [slot, answer] = session.receive();
    answer.good(NfsOperation::kPutFh);
    XdrReader& reader = answer.good(NfsOperation::kRead);
    reader.boolean();
    if (reader.u32() != bytes) throw std::runtime_error("a read was short");
    ++done;
    if (usage.seconds() < seconds) {
      ask(slot);
    } else {
      --open;
    }
  }
  const RunFigures figures =
      usage.figures(static_cast<double>(done) * (bytes > kSmallReadBytes ? bytes : 1));
  session.destroy();
  return figures;
}

RunFigures nfs_small_files_load(const NfsTarget& target, const std::string& directory,
                                std::uint64_t count, std::uint32_t depth, double seconds) {
  NfsConnection connection(target.port);
  NfsSession session(connection, {.owner = client_name("files"), .slots = depth});
  const std::string handle = session.lookup(target.directory + "/" + directory);
  std::vector<SmallFile> files(depth);
  std::uint64_t next = 0;
  std::uint64_t done = 0;
  const auto step = [&](std::uint32_t slot) {
    const bool opens = files[slot].step == SmallFile::Step::kOpen;
    session.send(slot, next_step(session, slot, files[slot], handle, opens ? next++ % count : 0));
  };
  const ServerUsage usage(target.pid);
  for (std::uint32_t slot = 0; slot < depth; ++slot)
    step(slot);
  for (std::uint32_t open = depth; open > 0;) {
    auto [slot, answer] = session.receive();
    take_step(answer, files[slot]);
    const bool is_closed = files[slot].step == SmallFile::Step::kOpen;
    if (is_closed) ++done;
    if (is_closed && usage.seconds() >= seconds) {
      --open;
    } else {
      step(slot);
    }
  }
  const RunFigures figures = usage.figures(static_cast<double>(done));
  session.destroy();
  return figures;
}

RunFigures nfs_list_load(const NfsTarget& target, const std::string& directory) {
  using enum NfsAttribute;
  NfsConnection connection(target.port, "127.0.0.1", std::chrono::minutes(5));
  NfsSession session(connection, {.owner = client_name("list")});
  const std::string handle = session.lookup(target.directory + "/" + directory);
  const ServerUsage usage(target.pid);
  std::uint64_t cookie = 0;
  std::uint64_t entries = 0;
  NfsVerifier verifier;
  for (bool is_end = false; !is_end;) {
    // As Linux asks, with what it takes for an entry.
    session.send(0, session.call().put_fh(handle).read_dir(
                        cookie, verifier, kNfsReadBytesMax, kNfsReadBytesMax,
                        {kType, kChange, kSize, kFsid, kRdattrError, kFilehandle, kFileId, kMode,
                         kNumLinks, kOwner, kOwnerGroup, kRawDev, kSpaceUsed, kTimeAccess,
                         kTimeMetadata, kTimeModify, kMountedOnFileId}));
    NfsAnswer answer = session.receive().second;
    answer.good(NfsOperation::kPutFh);
    XdrReader& reader = answer.good(NfsOperation::kReadDir);
    verifier = NfsVerifier(reader.fixed_array<8>());
    while (reader.boolean()) {
      cookie = reader.u64();
      reader.opaque(kNfsNameBytesMax);
      reader.fixed(4 * reader.count(8));
      reader.opaque(kNfsOpaqueBytesMax);
      ++entries;
    }
    is_end = reader.boolean();
    if (!answer.is_finished()) throw std::runtime_error("READDIR has an odd answer");
  }
  const RunFigures figures = usage.figures(static_cast<double>(entries));
  session.destroy();
  return figures;
}

RunFigures sendfile_load(const std::string& file, std::uint64_t file_bytes, std::uint32_t depth,
                         double seconds) {
  const Listener listener;
  const pid_t sender = ::fork();
  if (sender == 0) send_plainly(listener.socket.descriptor(), file);
  NfsConnection connection(listener.port);
  SeededRandom random(1);
  const auto ask = [&] {
    const std::uint64_t place = random.next() % (file_bytes / kMiB) * kMiB;
    connection.send_raw(std::as_bytes(std::span(&place, 1)));
  };
  const ServerUsage usage(sender);
  for (std::uint32_t i = 0; i < depth; ++i)
    ask();
  std::uint64_t done = 0;
  for (std::uint32_t open = depth; open > 0;) {
    if (connection.receive_raw(kMiB).empty())
      throw std::runtime_error("the plain sender has ended");
    ++done;
    if (usage.seconds() < seconds) {
      ask();
    } else {
      --open;
    }
  }
  const RunFigures figures = usage.figures(static_cast<double>(done * kMiB));
  connection.finish_sending();
  ::waitpid(sender, nullptr, 0);
  return figures;
}

}  // namespace millrace::bench
