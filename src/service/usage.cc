#include "service/usage.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "metrics/metrics.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

// A row takes at most about a kilobyte: names have limits.
constexpr std::uint64_t kUsageFileBytesMax = 64 * kMiB;
constexpr std::size_t kUsageNameBytesMax = 256;

// What a row is called when there are too many: first nobody's in particular, then no version's.
UsageKey folded(const UsageKey& key) {
  const std::string other(kOtherUsage);
  if (key.principal != other || key.run != other) return {key.version, other, other};
  return {other, other, other};
}

// What the names of buckets begin with, and no version's does.
constexpr std::string_view kBucketsPath = "/buckets/";

using NamedCounts = std::vector<std::pair<std::string, UsageCounts>>;

// Those in `named`, and the others together. Where there is room, those that were read most are
// named, and stay so: the sum of the others would sink when one leaves it, and no counter may.
NamedCounts shown_by_name(const std::map<std::string, UsageCounts>& by_name, std::size_t names_max,
                          std::set<std::string>& named) {
  NamedCounts shown(by_name.begin(), by_name.end());
  std::ranges::sort(shown, std::greater(), [](const auto& entry) {
    return std::pair(entry.second.read_bytes, entry.first);
  });
  std::optional<UsageCounts> others;
  std::erase_if(shown, [&](const auto& entry) {
    const auto& [name, counts] = entry;
    const bool is_one = name != kOtherUsage;
    if (is_one && named.size() < names_max) named.insert(name);
    if (is_one && named.contains(name)) return false;
    others = others.value_or(UsageCounts());
    *others += counts;
    return true;
  });
  if (others) shown.emplace_back(std::string(kOtherUsage), *others);
  return shown;
}

// A bucket may be called anything that a file may.
std::string label_text(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

// `kind` is what the names are of, in a word.
std::string render_series(std::string_view kind, const NamedCounts& shown) {
  struct Series {
    std::string_view name;
    std::string_view help;
    std::uint64_t UsageCounts::* value;
  };
  constexpr std::array<Series, 4> kSeries = {{
      {"read_bytes", "Bytes that readers of a {} were given.", &UsageCounts::read_bytes},
      {"reads", "Reads of a {} that were answered.", &UsageCounts::reads},
      {"fetched_bytes", "Bytes that stores delivered because a {} was read or preloaded.",
       &UsageCounts::fetched_bytes},
      {"handed_out_files", "Files of a {} that were handed out whole: reads of them are not seen.",
       &UsageCounts::handed_out_files},
  }};
  std::string out;
  for (const Series& series : kSeries) {
    if (shown.empty()) break;
    const std::string name = fmt::format("millrace_{}_{}_total", kind, series.name);
    out += fmt::format("# HELP {} {}\n# TYPE {} counter\n", name,
                       fmt::format(fmt::runtime(series.help), kind), name);
    for (const auto& [label, counts] : shown)
      out +=
          fmt::format("{}{{{}=\"{}\"}} {}\n", name, kind, label_text(label), counts.*series.value);
  }
  return out;
}

// How often a key was folded.
constexpr int kFoldsMax = 2;
int folds_of(const UsageKey& key) {
  if (key.principal != kOtherUsage || key.run != kOtherUsage) return 0;
  return key.version == kOtherUsage ? kFoldsMax : 1;
}

}  // namespace

// Many threads add to one at a time: counters that do not meet in memory.
class Usage::Account final : public ReadAccount {
 public:
  void add_fetched(std::uint64_t bytes) override { fetched_bytes_.add(bytes); }
  void add_read(std::uint64_t bytes) override {
    reads_.add();
    read_bytes_.add(bytes);
  }
  void add_handed_out(std::uint64_t bytes) override {
    handed_out_files_.add();
    handed_out_bytes_.add(bytes);
  }

  // What was counted since the last call. One caller at a time.
  UsageCounts take() {
    const UsageCounts now{.read_bytes = read_bytes_.value(),
                          .reads = reads_.value(),
                          .fetched_bytes = fetched_bytes_.value(),
                          .handed_out_files = handed_out_files_.value(),
                          .handed_out_bytes = handed_out_bytes_.value()};
    const UsageCounts before = std::exchange(taken_, now);
    return {.read_bytes = now.read_bytes - before.read_bytes,
            .reads = now.reads - before.reads,
            .fetched_bytes = now.fetched_bytes - before.fetched_bytes,
            .handed_out_files = now.handed_out_files - before.handed_out_files,
            .handed_out_bytes = now.handed_out_bytes - before.handed_out_bytes};
  }

 private:
  Counter read_bytes_;
  Counter reads_;
  Counter fetched_bytes_;
  Counter handed_out_files_;
  Counter handed_out_bytes_;
  UsageCounts taken_;
};

Result<std::unique_ptr<Usage>> Usage::open(Parts parts, UsageOptions options) {
  std::unique_ptr<Usage> usage(new Usage(std::move(parts), options));
  MR_RETURN_IF_ERROR(usage->load());
  usage->saves_.start();
  return usage;
}

Usage::Usage(Parts parts, UsageOptions options)
    : parts_(std::move(parts)),
      options_(options),
      saves_({.clock = parts_.clock,
              .work = parts_.work,
              .period = options_.save_period,
              .what = "who read what",
              .save = [this] { return save(); }}) {}

Usage::~Usage() {
  saves_.stop();
  if (Status status = save(); !status.ok()) {
    log_error("who read what since the last save is lost", {{"error", status.to_string()}});
  }
}

Status Usage::load() {
  const Result<std::string> text = read_small_file(parts_.disk, parts_.path, kUsageFileBytesMax);
  if (!text) return text.error().code() == StatusCode::kNotFound ? Status() : text.error();
  MR_ASSIGN_OR_RETURN(const std::vector<UsageRow> rows, decode_usage(*text, parts_.path));
  MutexLock lock(mutex_);
  for (const UsageRow& row : rows) {
    Row& known = rows_[row.key];
    known.counts += row.counts;
    known.last = std::max(known.last, row.last);
  }
  fold();
  return {};
}

std::shared_ptr<ReadAccount> Usage::account(std::string_view what, const Caller& caller) {
  UsageKey key{.version = std::string(what),
               .principal = caller.principal.substr(0, kUsageNameBytesMax),
               .run = caller.run.substr(0, kUsageNameBytesMax)};
  MutexLock lock(mutex_);
  auto found = accounts_.find(key);
  while (found == accounts_.end() && accounts_.size() >= options_.accounts_max &&
         folds_of(key) < kFoldsMax) {
    settle();
    if (accounts_.size() < options_.accounts_max) break;
    key = folded(key);
    found = accounts_.find(key);
  }
  if (found == accounts_.end()) {
    found = accounts_.try_emplace(std::move(key), std::make_shared<Account>()).first;
  }
  return found->second;
}

void Usage::settle() {
  const WallTime now = parts_.clock.wall_now();
  for (auto it = accounts_.begin(); it != accounts_.end();) {
    // Before it is emptied: whoever has it may still count.
    const bool is_unused = it->second.use_count() == 1;
    std::atomic_thread_fence(std::memory_order_acquire);
    const UsageCounts counts = it->second->take();
    if (counts != UsageCounts()) {
      Row& row = rows_[it->first];
      row.counts += counts;
      row.last = now;
      changed_ = true;
    }
    it = is_unused ? accounts_.erase(it) : std::next(it);
  }
  fold();
}

void Usage::fold() {
  const WallTime now = parts_.clock.wall_now();
  while (rows_.size() > options_.rows_max) {
    const auto oldest = std::ranges::min_element(rows_, {}, [](const auto& entry) {
      const int folds = folds_of(entry.first);
      return std::tuple(folds == kFoldsMax, entry.second.last, folds, entry.first);
    });
    if (folds_of(oldest->first) == kFoldsMax) return;
    const UsageKey key = folded(oldest->first);
    const UsageCounts counts = oldest->second.counts;
    rows_.erase(oldest);
    // Young, so that it is there for those that are folded next.
    Row& into = rows_[key];
    into.counts += counts;
    into.last = now;
    changed_ = true;
  }
}

std::vector<UsageRow> Usage::listed() const {
  std::vector<UsageRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_)
    rows.push_back({.key = key, .counts = row.counts, .last = row.last});
  return rows;
}

std::vector<UsageRow> Usage::rows() {
  MutexLock lock(mutex_);
  settle();
  return listed();
}

// ---- The file

Status Usage::save() {
  MutexLock saving(saving_);
  std::vector<UsageRow> rows;
  {
    MutexLock lock(mutex_);
    settle();
    if (!std::exchange(changed_, false)) return {};
    rows = listed();
  }
  Status status = replace_small_file(parts_.disk, parts_.path, encode_usage(rows));
  if (!status.ok()) {
    MutexLock lock(mutex_);
    changed_ = true;
  }
  return status;
}

// ---- Metrics

std::string Usage::render_prometheus(std::size_t names_max) {
  std::map<std::string, UsageCounts> versions;
  std::map<std::string, UsageCounts> buckets;
  for (const UsageRow& row : rows()) {
    const std::string& name = row.key.version;
    if (name.starts_with(kBucketsPath)) {
      buckets[name.substr(kBucketsPath.size())] += row.counts;
    } else {
      versions[name] += row.counts;
    }
  }
  MutexLock lock(mutex_);
  return render_series("version", shown_by_name(versions, names_max, named_versions_)) +
         render_series("bucket", shown_by_name(buckets, names_max, named_buckets_));
}

}  // namespace millrace
