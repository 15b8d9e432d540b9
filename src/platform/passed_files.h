#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "platform/file.h"

namespace millrace {

// A message over a Unix socket that brings open files with it.
struct PassedMessage {
  std::string text;
  std::vector<File> files;
  bool is_end = false;  // The other side has closed.
};

inline constexpr std::size_t kPassedTextBytesMax = 64 * 1024;
inline constexpr std::size_t kPassedFilesMax = 8;

// Both block, and are safe from several threads for sockets that keep messages apart.
Status send_files(int socket, std::string_view text, const std::vector<int>& descriptors);
// Takes at most `files_max` files; received ones close on exec. kCorruption for a message that came
// with more, or with more than this process may open: it is lost, and the socket is as it was.
Result<PassedMessage> receive_files(int socket, std::size_t files_max = kPassedFilesMax);

}  // namespace millrace
