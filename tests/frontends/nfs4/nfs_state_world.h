#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/random.h"
#include "frontends/nfs4/nfs_state.h"
#include "platform/memory_disk.h"

namespace millrace {

// A server's state on a disk in memory, and what a client would send to it.
struct NfsStateWorld {
  MemoryDisk disk;
  ManualClock clock;
  SeededRandom random{1};
  NfsStateOptions options;
  std::unique_ptr<NfsState> state;

  explicit NfsStateWorld(NfsStateOptions with = {}) : options(with) { start(); }

  // The process ends and comes back.
  void start() {
    state.reset();
    Result<std::unique_ptr<NfsState>> opened = NfsState::open(disk, "/nfs", options, clock, random);
    ASSERT_TRUE(opened) << opened.error().to_string();
    state = *std::move(opened);
    state->sessions().connection_opened(NfsConnectionId(1));
  }

  static NfsVerifier verifier(std::uint64_t number) {
    std::array<std::byte, 8> bytes;
    std::memcpy(bytes.data(), &number, bytes.size());
    return NfsVerifier(bytes);
  }

  NfsResult<NfsExchangeAnswer> exchange(const std::string& owner, std::uint64_t instance = 1,
                                        const std::string& principal = "sys:0",
                                        bool update = false) const {
    return state->clients().exchange_id({.owner = {.verifier = verifier(instance), .id = owner},
                                         .principal = principal,
                                         .update = update});
  }

  // What Linux asks for.
  static NfsChannelAttributes fore_channel() {
    return {.request_bytes_max = 1049620,
            .response_bytes_max = 1049480,
            .cached_response_bytes_max = 7584,
            .operations_max = 8,
            .requests_max = 64};
  }

  static NfsCreateSessionRequest session_request(const NfsExchangeAnswer& client,
                                                 const std::string& principal = "sys:0") {
    return {.client = client.client,
            .sequence = client.sequence,
            .flags = kSessionBackChannel,
            .fore = fore_channel(),
            .back = {.request_bytes_max = 4096,
                     .response_bytes_max = 4096,
                     .operations_max = 2,
                     .requests_max = 16},
            .callback_program = 0x40000000,
            .principal = principal,
            .connection = NfsConnectionId(1)};
  }

  NfsResult<NfsCreateSessionAnswer> create(const NfsExchangeAnswer& client) const {
    return state->clients().create_session(session_request(client));
  }

  // A client with a session; null when either is refused.
  std::shared_ptr<NfsSession> client(const std::string& owner, std::uint64_t instance = 1) const {
    const NfsResult<NfsExchangeAnswer> id = exchange(owner, instance);
    if (!id) return nullptr;
    const NfsResult<NfsCreateSessionAnswer> session = create(*id);
    return session ? state->sessions().find(session->session) : nullptr;
  }

  // Runs an empty request; its reply is `reply`. What SEQUENCE answers.
  static NfsStatus sequence(NfsSession& session, std::uint32_t slot, std::uint32_t number,
                            std::string_view reply = "reply") {
    auto begun = session.begin({.call = {.slot = slot, .sequence = number},
                                .cache_this = true,
                                .operations = 2,
                                .request_bytes = 200});
    if (!begun) return begun.error();
    if (NfsSlotUse* const use = std::get_if<NfsSlotUse>(&*begun)) use->finish(reply);
    return NfsStatus::kOk;
  }

  // The reply that a retry gets.
  static std::optional<std::string> retry(NfsSession& session, std::uint32_t slot,
                                          std::uint32_t number) {
    const auto begun = session.begin({.call = {.slot = slot, .sequence = number},
                                      .cache_this = true,
                                      .operations = 2,
                                      .request_bytes = 200});
    if (!begun) return std::nullopt;
    const NfsRetry* const again = std::get_if<NfsRetry>(&*begun);
    if (again == nullptr || again->reply == nullptr) return std::nullopt;
    return *again->reply;
  }
};

}  // namespace millrace
