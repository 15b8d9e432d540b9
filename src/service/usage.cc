#include "service/usage.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
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

// What the names of buckets begin with, and no version's does.
constexpr std::string_view kBucketsPath = "/buckets/";
bool is_bucket(std::string_view name) { return name.starts_with(kBucketsPath); }
// As a label has it.
std::string_view shown_name(std::string_view name) {
  return is_bucket(name) ? name.substr(kBucketsPath.size()) : name;
}

// What a row is called when there are too many: first nobody's in particular, then no version's, or
// no bucket's.
UsageKey folded(const UsageKey& key) {
  const std::string other(kOtherUsage);
  if (key.principal != other || key.run != other) return {key.version, other, other};
  return {(is_bucket(key.version) ? std::string(kBucketsPath) : "") + other, other, other};
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
std::string render_series(std::string_view kind, const std::map<std::string, UsageCounts>& shown) {
  struct Series {
    std::string_view name;
    std::string_view help;
    std::uint64_t UsageCounts::* value;
  };
  constexpr std::array<Series, 5> kSeries = {{
      {"read_bytes", "Bytes that readers of a {} were given.", &UsageCounts::read_bytes},
      {"reads", "Reads of a {} that were answered.", &UsageCounts::reads},
      {"fetches", "Requests that stores answered because a {} was read or preloaded.",
       &UsageCounts::fetches},
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

// Names that are no row's own are together the others.
std::string render_rows(const std::vector<UsageRow>& rows) {
  std::map<std::string, UsageCounts> versions;
  std::map<std::string, UsageCounts> buckets;
  for (const UsageRow& row : rows) {
    auto& of_kind = is_bucket(row.key.version) ? buckets : versions;
    of_kind[std::string(row.is_named ? shown_name(row.key.version) : kOtherUsage)] += row.counts;
  }
  return render_series("version", versions) + render_series("bucket", buckets);
}

// How often a key was folded.
constexpr int kFoldsMax = 2;
int folds_of(const UsageKey& key) {
  if (key.principal != kOtherUsage || key.run != kOtherUsage) return 0;
  return shown_name(key.version) == kOtherUsage ? kFoldsMax : 1;
}

// What was shown by its name must not sink into the others.
bool may_fold(const UsageKey& key, const std::set<std::string>& named) {
  const int folds = folds_of(key);
  return folds == 0 || (folds < kFoldsMax && !named.contains(key.version));
}

}  // namespace

// Many threads add to one at a time: counters that do not meet in memory.
class Usage::Account final : public ReadAccount {
 public:
  void add_fetched(std::uint64_t bytes) override {
    fetches_.add();
    fetched_bytes_.add(bytes);
  }
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
                          .fetches = fetches_.value(),
                          .fetched_bytes = fetched_bytes_.value(),
                          .handed_out_files = handed_out_files_.value(),
                          .handed_out_bytes = handed_out_bytes_.value()};
    const UsageCounts before = std::exchange(taken_, now);
    return {.read_bytes = now.read_bytes - before.read_bytes,
            .reads = now.reads - before.reads,
            .fetches = now.fetches - before.fetches,
            .fetched_bytes = now.fetched_bytes - before.fetched_bytes,
            .handed_out_files = now.handed_out_files - before.handed_out_files,
            .handed_out_bytes = now.handed_out_bytes - before.handed_out_bytes};
  }

 private:
  Counter read_bytes_;
  Counter reads_;
  Counter fetches_;
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
    if (row.is_named) named_.insert(row.key.version);
  }
  // A file without names gets the same ones each time, until they are saved.
  name_more();
  metrics_ = render_rows(listed());
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
         may_fold(key, named_)) {
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
    const auto oldest =
        std::ranges::min_element(rows_, {}, [this](const auto& entry) MR_REQUIRES(mutex_) {
          const int folds = folds_of(entry.first);
          return std::tuple(!may_fold(entry.first, named_), entry.second.last, folds, entry.first);
        });
    if (!may_fold(oldest->first, named_)) return;
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

void Usage::name_more() {
  std::map<std::string, std::uint64_t> read_bytes;
  for (const auto& [key, row] : rows_) {
    if (shown_name(key.version) != kOtherUsage && !named_.contains(key.version))
      read_bytes[key.version] += row.counts.read_bytes;
  }
  std::vector<std::pair<std::string, std::uint64_t>> candidates(read_bytes.begin(),
                                                                read_bytes.end());
  std::ranges::sort(candidates, std::greater(),
                    [](const auto& entry) { return std::pair(entry.second, entry.first); });
  auto buckets = static_cast<std::size_t>(std::ranges::count_if(named_, is_bucket));
  std::size_t versions = named_.size() - buckets;
  for (const auto& [name, bytes] : candidates) {
    std::size_t& of_kind = is_bucket(name) ? buckets : versions;
    if (of_kind >= options_.names_max) continue;
    ++of_kind;
    named_.insert(name);
  }
}

std::vector<UsageRow> Usage::listed() const {
  std::vector<UsageRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_)
    rows.push_back({.key = key,
                    .counts = row.counts,
                    .last = row.last,
                    .is_named = named_.contains(key.version)});
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
    name_more();
    rows = listed();
  }
  Status status = replace_small_file(parts_.disk, parts_.path, encode_usage(rows));
  std::string metrics = render_rows(rows);
  MutexLock lock(mutex_);
  if (status.ok()) {
    metrics_ = std::move(metrics);
  } else {
    changed_ = true;
  }
  return status;
}

std::string Usage::render_prometheus() {
  MutexLock lock(mutex_);
  return metrics_;
}

}  // namespace millrace
