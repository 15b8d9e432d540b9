#include "frontends/loader/loader_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "platform/listening_socket.h"

namespace millrace {
namespace {

// How soon a call-off is noticed at the latest.
constexpr Duration kLookUp = std::chrono::milliseconds(100);
// The daemon gives up a little before us, so that it can say why.
constexpr Duration kAnswerTime = std::chrono::milliseconds(200);

std::uint64_t milliseconds_left(const RequestContext& context) {
  const Duration left = context.deadline() - system_clock().now() - kAnswerTime;
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(whole, 1, 3'600'000));
}

std::uint64_t whole_microseconds(Duration duration) {
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(whole, 0));
}

}  // namespace

Result<std::shared_ptr<LoaderClient>> LoaderClient::connect(const std::string& socket) {
  MR_ASSIGN_OR_RETURN(File connected, connect_unix_socket(socket, SOCK_SEQPACKET));
  return std::make_shared<LoaderClient>(std::move(connected));
}

Status LoaderClient::broken(const Status& why) {
  broken_ = true;
  return {StatusCode::kUnavailable, fmt::format("the daemon has gone: {}", why.message())};
}

Status LoaderClient::wait_for_answer(const RequestContext& context) {
  for (;;) {
    if (const Status status = context.check(system_clock()); !status.ok()) {
      // An answer that comes later would be taken for that of the next question.
      broken_ = true;
      return status;
    }
    const Duration left = std::min<Duration>(context.deadline() - system_clock().now(), kLookUp);
    pollfd entry{socket_.descriptor(), POLLIN, 0};
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
    if (::poll(&entry, 1, static_cast<int>(milliseconds)) > 0) return {};
  }
}

Result<LoaderMessage> LoaderClient::ask(const RequestContext& context, const LoaderJson& head,
                                        ByteView tail) {
  if (const Status sent = send_message(socket_.descriptor(), head, tail); !sent.ok()) {
    return failure(broken(sent));
  }
  MR_RETURN_IF_ERROR(wait_for_answer(context));
  auto message = receive_message(socket_.descriptor());
  if (!message) return failure(broken(message.error()));
  if (message->is_end) return failure(broken({StatusCode::kUnavailable, "it closed the socket"}));
  if (const auto error = message->head.find("error"); error != message->head.end()) {
    return failure(decode_status(*error));
  }
  return message;
}

Result<LoaderClient::Opened> LoaderClient::open(const RequestContext& context,
                                                const std::vector<SourceChoice>& choices,
                                                const std::string& run, const std::string& job) {
  const std::string encoded = encode_choices(choices);
  MR_ASSIGN_OR_RETURN(const LoaderMessage answer, ask(context,
                                                      {{"op", "open"},
                                                       {"protocol", kLoaderProtocol},
                                                       {"run", run},
                                                       {"job", job},
                                                       {"timeout_ms", milliseconds_left(context)}},
                                                      as_bytes(encoded)));
  Opened opened;
  if (const auto store = answer.head.find("store");
      store != answer.head.end() && store->is_string()) {
    opened.store = store->get<std::string>();
  }
  MR_ASSIGN_OR_RETURN(opened.sources, decode_facts(answer.tail.bytes()));
  if (opened.sources.size() != choices.size()) {
    return failure(StatusCode::kCorruption, "the daemon opened other datasets than were named");
  }
  return opened;
}

Result<BatchAnswer> LoaderClient::read(const RequestContext& context, std::uint64_t epoch,
                                       std::span<const PlacedSample> places) {
  const Returned returned = take_returned();
  MR_ASSIGN_OR_RETURN(LoaderMessage message, ask(context,
                                                 {{"op", "read"},
                                                  {"epoch", epoch},
                                                  {"timeout_ms", milliseconds_left(context)},
                                                  {"planned", context.has_plan() ? 1U : 0U},
                                                  {"released", returned.free},
                                                  {"kept", returned.kept}},
                                                 encode_places(places)));
  BatchAnswer answer;
  if (message.head.contains("failed")) {
    MR_ASSIGN_OR_RETURN(answer.failed, decode_failures(message.tail.bytes()));
    return answer;
  }
  MR_ASSIGN_OR_RETURN(answer.batch, take_batch(std::move(message)));
  if (answer.batch.view->samples() != places.size()) {
    return failure(StatusCode::kCorruption, "the daemon gave other samples than were asked for");
  }
  return answer;
}

Result<Batch> LoaderClient::take_batch(LoaderMessage message) {
  const auto number = message.head.find("memory");
  const auto bytes = message.head.find("memory_bytes");
  if (number == message.head.end() || !number->is_number_unsigned() ||
      bytes == message.head.end() || !bytes->is_number_unsigned() || message.files.size() != 1) {
    return failure(StatusCode::kCorruption, "the daemon answered with no batch");
  }
  Batch batch;
  MR_ASSIGN_OR_RETURN(batch.memory, map(number->get<std::uint64_t>(), bytes->get<std::uint64_t>(),
                                        std::move(message.files.front())));
  MR_ASSIGN_OR_RETURN(BatchView view, BatchView::parse(batch.memory->bytes()));
  batch.view = std::make_shared<const BatchView>(std::move(view));
  return batch;
}

Result<std::shared_ptr<BatchMemory>> LoaderClient::map(std::uint64_t number, std::uint64_t bytes,
                                                       File file) {
  std::shared_ptr<BatchMemory>& known = mapped_[number];
  if (known == nullptr || known->size() != bytes) {
    auto mapped = BatchMemory::map(std::move(file), bytes);
    if (!mapped) {
      mapped_.erase(number);
      return failure(mapped.error());
    }
    known = *std::move(mapped);
  }
  const std::shared_ptr<BatchMemory> memory = known;
  memory->hand_out();
  // The daemon numbers upwards, so the lowest are those that it has let go.
  while (mapped_.size() > kMappedMax)
    mapped_.erase(mapped_.begin());
  return std::shared_ptr<BatchMemory>(memory.get(),
                                      [memory, number, client = weak_from_this()](BatchMemory*) {
                                        if (const auto alive = client.lock())
                                          alive->release(number, *memory);
                                      });
}

LoaderClient::Returned LoaderClient::take_returned() {
  Returned returned;
  {
    MutexLock lock(mutex_);
    returned = std::exchange(returned_, {});
  }
  for (const std::uint64_t number : returned.kept)
    mapped_.erase(number);
  return returned;
}

void LoaderClient::release(std::uint64_t number, const BatchMemory& memory) {
  // The connection is the parent's, and in a child its lock may be held for ever.
  if (::getpid() != process_) return;
  MutexLock lock(mutex_);
  (memory.is_reusable() ? returned_.free : returned_.kept).push_back(number);
}

Status LoaderClient::report(const RequestContext& context, const LoaderReport& report) {
  const std::string losses = encode_losses(report.losses);
  const auto noted = ask(context,
                         {{"op", "report"},
                          {"waiting_us", whole_microseconds(report.waiting)},
                          {"consumer_us", whole_microseconds(report.consumer)}},
                         as_bytes(losses));
  return noted ? Status() : noted.error();
}

Result<std::vector<LostPlace>> LoaderClient::lost(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(const LoaderMessage answer, ask(context, {{"op", "lost"}}, {}));
  return decode_lost(answer.tail.bytes());
}

Status LoaderClient::extend_plan(const RequestContext& context,
                                 std::span<const PlannedSample> samples) {
  const auto planned = ask(context, {{"op", "extend"}, {"timeout_ms", milliseconds_left(context)}},
                           encode_planned(samples));
  return planned ? Status() : planned.error();
}

Status LoaderClient::advance_plan(std::uint64_t samples_done) {
  const Status sent =
      send_message(socket_.descriptor(), {{"op", "advance"}, {"samples", samples_done}});
  return sent.ok() ? sent : broken(sent);
}

}  // namespace millrace
