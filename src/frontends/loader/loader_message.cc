#include "frontends/loader/loader_message.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/little_endian.h"
#include "loader/batch_memory.h"
#include "platform/passed_files.h"

namespace millrace {
namespace {

constexpr std::size_t kHeadSizeBytes = sizeof(std::uint32_t);
constexpr std::string_view kTailField = "tail_bytes";

std::unexpected<Status> bad_message(std::string_view what) {
  return failure(StatusCode::kCorruption, fmt::format("a message of a loader: {}", what));
}

Result<Slice> map_tail(File file, std::uint64_t bytes) {
  if (bytes > kLoaderTailBytesMax) return bad_message("it is too long");
  MR_ASSIGN_OR_RETURN(std::shared_ptr<BatchMemory> memory,
                      BatchMemory::map(std::move(file), bytes));
  // Copied, so that the sender cannot change what was checked.
  return Slice::copy_of(memory->bytes().first(bytes));
}

}  // namespace

Status send_message(int socket, const LoaderJson& head, ByteView tail, std::vector<int> files) {
  std::unique_ptr<BatchMemory> memory;
  std::string text = head.dump(-1, ' ', false, LoaderJson::error_handler_t::replace);
  if (kHeadSizeBytes + text.size() + tail.size() > kPassedTextBytesMax) {
    MR_ASSIGN_OR_RETURN(memory, BatchMemory::make(tail.size()));
    std::memcpy(memory->data(), tail.data(), tail.size());
    LoaderJson with_tail = head;
    with_tail[std::string(kTailField)] = tail.size();
    text = with_tail.dump(-1, ' ', false, LoaderJson::error_handler_t::replace);
    files.push_back(memory->descriptor());
    tail = {};
  }
  std::string message(kHeadSizeBytes, '\0');
  store_little_endian(std::as_writable_bytes(std::span(message)).data(),
                      static_cast<std::uint32_t>(text.size()));
  message += text;
  message += as_text(tail);
  return send_files(socket, message, files);
}

Result<LoaderMessage> receive_message(int socket) {
  MR_ASSIGN_OR_RETURN(PassedMessage passed, receive_files(socket));
  LoaderMessage message;
  message.is_end = passed.is_end;
  if (passed.is_end) return message;
  const ByteView bytes = as_bytes(passed.text);
  if (bytes.size() < kHeadSizeBytes) return bad_message("it is cut");
  const auto head_bytes = load_little_endian<std::uint32_t>(bytes.data());
  if (head_bytes > bytes.size() - kHeadSizeBytes) return bad_message("its head is cut");
  message.head =
      LoaderJson::parse(as_text(bytes.subspan(kHeadSizeBytes, head_bytes)), nullptr, false);
  if (!message.head.is_object()) return bad_message("its head is no object");
  message.files = std::move(passed.files);
  const auto tail_bytes = message.head.find(kTailField);
  if (tail_bytes == message.head.end()) {
    message.tail = Slice::copy_of(bytes.subspan(kHeadSizeBytes + head_bytes));
    return message;
  }
  if (!tail_bytes->is_number_unsigned() || message.files.empty()) {
    return bad_message("its tail is missing");
  }
  MR_ASSIGN_OR_RETURN(message.tail,
                      map_tail(std::move(message.files.back()), tail_bytes->get<std::uint64_t>()));
  message.files.pop_back();
  return message;
}

}  // namespace millrace
