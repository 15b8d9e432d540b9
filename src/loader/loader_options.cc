#include "loader/loader_options.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "loader/windowed_order.h"
#include "platform/digest_text.h"

namespace millrace {
namespace {

constexpr std::size_t kDatasetsMax = 1024;
constexpr std::uint64_t kPrefetchMax = 1024;
constexpr std::uint64_t kRanksPerNodeGuess = 8;

constexpr std::array<std::pair<std::string_view, ShareKind>, 3> kShareOptions = {{
    {"weight", ShareKind::kWeight},
    {"repeat", ShareKind::kRepeat},
    {"choose", ShareKind::kChoose},
}};
constexpr std::array<std::pair<std::string_view, LastSteps>, 3> kLastOptions = {{
    {"even", LastSteps::kEven},
    {"drop", LastSteps::kDrop},
    {"pad", LastSteps::kPad},
}};

MixShare take_share(OptionFields& fields) {
  MixShare share;
  bool found = false;
  for (const auto& [name, kind] : kShareOptions) {
    const double amount = fields.amount(name, -1);
    if (amount < 0) continue;
    if (std::exchange(found, true)) fields.complain(name, "cannot stand beside another share");
    share = {.kind = kind, .amount = amount};
  }
  return share;
}

Result<SourceChoice> parse_source(const OptionFields::Document& json, std::size_t number) {
  OptionFields fields(json, fmt::format("datasets[{}].", number));
  SourceChoice choice{.name = fields.text("name"),
                      .reader = fields.text("reader", "auto"),
                      .directory = fields.text("directory"),
                      .options = {.allow_pickle = fields.truth("allow_pickle", false),
                                  .verify_hashes = fields.truth("verify_hashes", false)},
                      .split_seed = fields.number("split_seed", 0),
                      .share = take_share(fields)};
  if (choice.name.empty()) fields.complain("name", "is needed");
  if (const std::string digest = fields.text("digest"); !digest.empty()) {
    choice.content = parse_sha256(digest);
    if (!choice.content) fields.complain("digest", "is no digest of 64 hexadecimal digits");
  }
  const std::string split = fields.text("split");
  MR_RETURN_IF_ERROR(fields.finish());
  if (!split.empty()) {
    MR_ASSIGN_OR_RETURN(choice.split, SplitRule::parse(split));
  }
  return choice;
}

// Who says nothing about nodes has one with up to eight ranks, or one rank on each.
std::uint64_t ranks_per_node_guess(std::uint64_t world) {
  return world <= kRanksPerNodeGuess ? std::max<std::uint64_t>(world, 1) : 1;
}

}  // namespace

Result<JobChoice> take_job_choice(OptionFields& fields) {
  JobChoice choice;
  const OptionFields::Document* const datasets = fields.list("datasets");
  if (datasets == nullptr || datasets->empty() || datasets->size() > kDatasetsMax) {
    fields.complain("datasets", "is no list of datasets");
  } else {
    for (const OptionFields::Document& json : *datasets) {
      MR_ASSIGN_OR_RETURN(SourceChoice source, parse_source(json, choice.sources.size()));
      choice.sources.push_back(std::move(source));
    }
  }
  MR_ASSIGN_OR_RETURN(choice.order.mode, parse_order_mode(fields.text("order", "block")));
  choice.order.seed = fields.number("seed", 0);
  choice.order.window_rows = fields.number("window_rows", kWindowRows);
  choice.order.epoch_samples = fields.number("epoch_samples", 0);
  const auto is_weighted = [](const SourceChoice& source) {
    return source.share.kind == ShareKind::kWeight;
  };
  if (choice.order.epoch_samples != 0 && !std::ranges::all_of(choice.sources, is_weighted)) {
    fields.complain("epoch_samples",
                    "is the size of an epoch that is mixed by weights: give each dataset one, or "
                    "\"repeat\" or \"choose\" instead");
  }
  if (choice.order.window_rows < kWindowRowsMin || choice.order.window_rows > kWindowRowsMax) {
    fields.complain("window_rows",
                    fmt::format("is not from {} to {}", kWindowRowsMin, kWindowRowsMax));
  }
  return choice;
}

Result<std::vector<MixShare>> parse_shares(const OptionFields::Document& json) {
  if (!json.is_array()) return failure(StatusCode::kInvalidArgument, "the shares are no list");
  std::vector<MixShare> shares;
  for (const OptionFields::Document& each : json) {
    OptionFields fields(each, fmt::format("shares[{}].", shares.size()));
    shares.push_back(take_share(fields));
    MR_RETURN_IF_ERROR(fields.finish());
  }
  return shares;
}

Result<RankChoice> take_rank_choice(OptionFields& fields) {
  RankChoice choice{.rank = fields.number("rank", 0), .batch = fields.number("batch", 0)};
  choice.topology.world = fields.number("world", 1);
  choice.topology.ranks_per_node =
      fields.number("ranks_per_node", ranks_per_node_guess(choice.topology.world));
  choice.topology.replication = fields.number("replication", 1);
  choice.epochs = fields.number("epochs", 0);
  if (!fields.has("batch")) fields.complain("batch", "is needed");
  const std::string last = fields.text("last", "even");
  for (const auto& [name, steps] : kLastOptions) {
    if (name != last) continue;
    choice.last = steps;
    return choice;
  }
  fields.complain("last", "is neither even, drop nor pad");
  return choice;
}

LoaderStart take_start(OptionFields& fields) {
  return {.epoch = fields.number("epoch", 0), .state = fields.text("state")};
}

Duration take_seconds(OptionFields& fields, std::string_view name, double otherwise) {
  // Ten years is for ever, and adds up without an overflow.
  constexpr double kSecondsMax = 3.2e8;
  const double seconds = fields.amount(name, otherwise);
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(seconds < kSecondsMax ? seconds : kSecondsMax));
}

Result<LoaderOptions> take_loader_options(OptionFields& fields) {
  LoaderOptions options;
  MR_ASSIGN_OR_RETURN(options.choice, take_rank_choice(fields));
  PrefetchOptions& prefetch = options.prefetch;
  prefetch.batches = fields.number("prefetch", prefetch.batches);
  if (prefetch.batches == 0 || prefetch.batches > kPrefetchMax) {
    fields.complain("prefetch", fmt::format("is not from 1 to {}", kPrefetchMax));
  }
  MR_ASSIGN_OR_RETURN(prefetch.faults.action, parse_fault_action(fields.text("on_error", "raise")));
  prefetch.faults.failures_max = fields.number("failures_max", prefetch.faults.failures_max);
  prefetch.batch_timeout = take_seconds(fields, "sample_timeout", 300);
  options.watchdog = take_seconds(fields, "watchdog", 60);
  return options;
}

}  // namespace millrace
