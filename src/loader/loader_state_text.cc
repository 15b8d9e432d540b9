// The text of a state: docs/formats/loader_state.md.

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/checked_line.h"
#include "base/hex.h"
#include "loader/dealing.h"
#include "loader/loader_state.h"
#include "platform/digest_text.h"

namespace millrace {

namespace {

using StateJson = nlohmann::ordered_json;

constexpr std::string_view kStateHeader = "millrace-loader-state 1\n";
constexpr std::size_t kStateSourcesMax = 1024;
constexpr std::size_t kStatePhasesMax = 64;

constexpr std::array<std::pair<std::string_view, unsigned>, 4> kStateAlgorithms = {{
    {"permutation", KeyedPermutation::kAlgorithm},
    {"windows", WindowedOrder::kAlgorithm},
    {"dealing", Dealing::kAlgorithm},
    {"mix", MixedSequence::kAlgorithm},
}};

constexpr std::array<std::pair<ShareKind, std::string_view>, 3> kShareNames = {{
    {ShareKind::kWeight, "weights"},
    {ShareKind::kRepeat, "repeat"},
    {ShareKind::kChoose, "choose"},
}};

// One list, under the name of their kind.
void put_shares(StateJson& json, const std::vector<MixShare>& shares) {
  for (const MixShare& share : shares) {
    for (const auto& [kind, name] : kShareNames) {
      if (kind == share.kind) json[std::string(name)].push_back(share.amount);
    }
  }
}

StateJson phase_json(const MixPhase& phase) {
  StateJson json = {{"epoch", phase.epoch}, {"position", phase.position}, {"taken", phase.taken}};
  put_shares(json, phase.shares);
  return json;
}

StateJson lost_json(const LostSamples& lost) {
  StateJson named = StateJson::array();
  for (const LostSample& each : lost.named)
    named.push_back({each.source, each.sample});
  return {{"count", lost.count}, {"samples", std::move(named)}};
}

// Takes fields out of a document, and keeps the first complaint.
class StateFields {
 public:
  StateFields(const StateJson& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) complain("", "is no object");
  }

  std::uint64_t number(std::string_view name) {
    const StateJson* value = find(name);
    if (value == nullptr || !value->is_number_unsigned()) return bad(name, "a number"), 0;
    return value->get<std::uint64_t>();
  }
  std::string text(std::string_view name) {
    const StateJson* value = find(name);
    if (value == nullptr || !value->is_string()) return bad(name, "a text"), "";
    return value->get<std::string>();
  }
  // Null when it is absent or no list of that length.
  const StateJson* list(std::string_view name, std::size_t at_least, std::size_t at_most) {
    const StateJson* value = find(name);
    if (value != nullptr && value->is_array() && value->size() >= at_least &&
        value->size() <= at_most) {
      return value;
    }
    bad(name, "a list of the right length");
    return nullptr;
  }
  const StateJson* find(std::string_view name) const {
    if (!json_.is_object()) return nullptr;
    const auto at = json_.find(name);
    return at == json_.end() ? nullptr : &*at;
  }
  void bad(std::string_view name, std::string_view wanted) {
    complain(name, fmt::format("is not {}", wanted));
  }
  const Status& status() const { return status_; }

 private:
  void complain(std::string_view name, std::string_view why) {
    if (!status_.ok()) return;
    status_ = Status(StatusCode::kCorruption,
                     fmt::format("state of a loader: {}{} {}", place_, name, why));
  }

  const StateJson& json_;
  const std::string place_;
  Status status_;
};

Result<StateSource> decode_source(const StateJson& json, std::size_t number) {
  StateFields fields(json, fmt::format("sources[{}].", number));
  StateSource source;
  if (const auto digest = parse_sha256(fields.text("content"))) {
    source.content_digest = *digest;
  } else {
    fields.bad("content", "a digest of 64 hexadecimal digits");
  }
  source.reader = fields.text("reader");
  // States of old do not have it.
  if (fields.find("directory") != nullptr) source.directory = fields.text("directory");
  source.split = fields.text("split");
  source.samples = fields.number("samples");
  if (source.samples == 0) fields.bad("samples", "a number of samples");
  if (!fields.status().ok()) return failure(fields.status());
  return source;
}

// One for each source; none at all where there is no list of any kind.
std::vector<MixShare> take_shares(StateFields& fields, std::size_t sources) {
  std::vector<MixShare> shares;
  for (const auto& [kind, name] : kShareNames) {
    if (fields.find(name) == nullptr) continue;
    const StateJson* amounts = fields.list(name, sources, sources);
    if (amounts == nullptr || !shares.empty()) break;
    for (const StateJson& value : *amounts) {
      if (!value.is_number()) fields.bad(name, "a list of numbers");
      if (value.is_number()) shares.push_back({.kind = kind, .amount = value.get<double>()});
    }
  }
  return shares;
}

Result<MixPhase> decode_phase(const StateJson& json, std::size_t number, std::size_t sources) {
  StateFields fields(json, fmt::format("phases[{}].", number));
  MixPhase phase{.epoch = fields.number("epoch"), .position = fields.number("position")};
  if (const StateJson* taken = fields.list("taken", sources, sources)) {
    for (const StateJson& value : *taken) {
      if (!value.is_number_unsigned()) fields.bad("taken", "a list of numbers");
      if (value.is_number_unsigned()) phase.taken.push_back(value.get<std::uint64_t>());
    }
  }
  phase.shares = take_shares(fields, sources);
  if (phase.shares.size() != sources) fields.bad("shares", "there for every source");
  if (!fields.status().ok()) return failure(fields.status());
  return phase;
}

Result<LostSamples> decode_lost(const StateJson& json) {
  StateFields fields(json, "lost.");
  LostSamples lost{.count = fields.number("count")};
  if (const StateJson* named = fields.list("samples", 0, LostSamples::kNamedMax)) {
    for (const StateJson& each : *named) {
      if (each.is_array() && each.size() == 2 && each[0].is_number_unsigned() &&
          each[1].is_number_unsigned()) {
        lost.named.push_back(
            {.source = each[0].get<std::uint64_t>(), .sample = each[1].get<std::uint64_t>()});
      } else {
        fields.bad("samples", "a list of pairs");
      }
    }
  }
  if (!fields.status().ok()) return failure(fields.status());
  return lost;
}

Status check_algorithms(const StateJson& json) {
  StateFields fields(json, "");
  const StateJson* algorithms = fields.find("algorithms");
  if (algorithms == nullptr) fields.bad("algorithms", "there");
  if (!fields.status().ok()) return fields.status();
  StateFields numbers(*algorithms, "algorithms.");
  for (const auto& [name, known] : kStateAlgorithms) {
    const std::uint64_t number = numbers.number(name);
    MR_RETURN_IF_ERROR(numbers.status());
    if (number == known) continue;
    return {StatusCode::kUnsupported,
            fmt::format("the state was saved with algorithm {} for '{}', and this release has {}: "
                        "resume it with the release that saved it",
                        number, name, known)};
  }
  return {};
}

Status decode_lists(StateFields& fields, LoaderState& state) {
  if (const StateJson* sources = fields.list("sources", 1, kStateSourcesMax)) {
    for (const StateJson& json : *sources) {
      MR_ASSIGN_OR_RETURN(StateSource source, decode_source(json, state.sources.size()));
      state.sources.push_back(std::move(source));
    }
  }
  state.shares = take_shares(fields, state.sources.size());
  if (const StateJson* phases = fields.list("phases", 1, kStatePhasesMax)) {
    for (const StateJson& json : *phases) {
      MR_ASSIGN_OR_RETURN(MixPhase phase,
                          decode_phase(json, state.phases.size(), state.sources.size()));
      state.phases.push_back(std::move(phase));
    }
  }
  return {};
}

}  // namespace

std::string encode_loader_state(const LoaderState& state) {
  StateJson algorithms;
  for (const auto& [name, number] : kStateAlgorithms)
    algorithms[std::string(name)] = number;
  StateJson sources = StateJson::array();
  for (const StateSource& source : state.sources) {
    sources.push_back({{"content", to_hex(source.content_digest)},
                       {"reader", source.reader},
                       {"directory", source.directory},
                       {"split", source.split},
                       {"samples", source.samples}});
  }
  StateJson phases = StateJson::array();
  for (const MixPhase& phase : state.phases)
    phases.push_back(phase_json(phase));
  StateJson json = {{"algorithms", std::move(algorithms)},
                    {"order", order_mode_name(state.mode)},
                    {"seed", state.seed},
                    {"window_rows", state.window_rows},
                    {"block_bytes", state.block_bytes},
                    {"epoch_samples", state.epoch_samples},
                    {"sources", std::move(sources)}};
  put_shares(json, state.shares);
  json["epoch"] = state.epoch;
  json["position"] = state.position;
  json["phases"] = std::move(phases);
  json["delivered"] = state.delivered.text();
  if (state.lost.count > 0) json["lost"] = lost_json(state.lost);
  return std::string(kStateHeader) +
         checked_line(json.dump(-1, ' ', true, StateJson::error_handler_t::replace));
}

Result<LoaderState> decode_loader_state(std::string_view text) {
  const std::string_view kind = kStateHeader.substr(0, kStateHeader.find(' ') + 1);
  if (!text.starts_with(kStateHeader)) {
    return failure(text.starts_with(kind) ? StatusCode::kUnsupported : StatusCode::kCorruption,
                   fmt::format("state of a loader: it begins with '{}' and not with '{}'",
                               text.substr(0, std::min<std::size_t>(text.find('\n'), 40)),
                               kStateHeader.substr(0, kStateHeader.size() - 1)));
  }
  text.remove_prefix(kStateHeader.size());
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto content = checked_text(text);
  const StateJson json = content ? StateJson::parse(*content, nullptr, false)
                                 : StateJson(StateJson::value_t::discarded);
  if (json.is_discarded()) {
    return failure(StatusCode::kCorruption, "state of a loader: it is not as it was saved");
  }
  MR_RETURN_IF_ERROR(check_algorithms(json));
  StateFields fields(json, "");
  LoaderState state;
  if (auto mode = parse_order_mode(fields.text("order"))) {
    state.mode = *mode;
  } else {
    fields.bad("order", "an order that there is");
  }
  state.seed = fields.number("seed");
  state.window_rows = fields.number("window_rows");
  state.block_bytes = fields.number("block_bytes");
  state.epoch_samples = fields.number("epoch_samples");
  state.epoch = fields.number("epoch");
  state.position = fields.number("position");
  MR_RETURN_IF_ERROR(decode_lists(fields, state));
  if (auto delivered = DeliveryDigest::parse(fields.text("delivered"))) {
    state.delivered = *delivered;
  } else {
    fields.bad("delivered", "a digest");
  }
  if (const StateJson* lost = fields.find("lost")) {
    MR_ASSIGN_OR_RETURN(state.lost, decode_lost(*lost));
  }
  if (state.window_rows < kWindowRowsMin || state.window_rows > kWindowRowsMax) {
    fields.bad("window_rows", "a number of rows that a window can have");
  }
  if (state.block_bytes == 0) fields.bad("block_bytes", "a size");
  if (!fields.status().ok()) return failure(fields.status());
  return state;
}

}  // namespace millrace
