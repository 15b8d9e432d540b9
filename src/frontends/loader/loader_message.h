#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"
#include "loader/batch_engine.h"
#include "loader/loader_job.h"
#include "platform/file.h"

namespace millrace {

// The messages between loaders and a daemon: docs/formats/loader_socket.md.

using LoaderJson = nlohmann::ordered_json;

inline constexpr unsigned kLoaderProtocol = 4;
// A tail that comes in memory of its own.
inline constexpr std::uint64_t kLoaderTailBytesMax = std::uint64_t{1} << 32;

struct LoaderMessage {
  LoaderJson head = {};
  Slice tail = {};
  std::vector<File> files = {};
  bool is_end = false;  // The other side has closed.
};

// Sends a message. Blocks. A tail that is too long for one goes as memory.
Status send_message(int socket, const LoaderJson& head, ByteView tail = {},
                    std::vector<int> files = {});
// Takes any bytes: kCorruption for what is no message.
Result<LoaderMessage> receive_message(int socket);

// Parts of messages. The decoders take any bytes: kCorruption.

std::string encode_choices(const std::vector<SourceChoice>& choices);
Result<std::vector<SourceChoice>> decode_choices(ByteView bytes);

std::string encode_facts(const std::vector<SourceFacts>& sources);
Result<std::vector<SourceFacts>> decode_facts(ByteView bytes);

ByteView encode_places(std::span<const PlacedSample> places);
Result<std::vector<PlacedSample>> decode_places(ByteView bytes);

ByteView encode_planned(std::span<const PlannedSample> samples);
Result<std::vector<PlannedSample>> decode_planned(ByteView bytes);

std::string encode_failures(const std::vector<SampleFailure>& failures);
Result<std::vector<SampleFailure>> decode_failures(ByteView bytes);

ByteView encode_lost(std::span<const LostPlace> lost);
Result<std::vector<LostPlace>> decode_lost(ByteView bytes);

std::string encode_losses(const std::vector<SampleLoss>& losses);
Result<std::vector<SampleLoss>> decode_losses(ByteView bytes);

LoaderJson encode_status(const Status& status);
// A failure, whatever the document says.
Status decode_status(const LoaderJson& json);

}  // namespace millrace
