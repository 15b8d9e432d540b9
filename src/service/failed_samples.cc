#include "service/failed_samples.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/checked_line.h"
#include "base/log.h"
#include "base/units.h"
#include "dataset/log_record_fields.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

using FailedJson = nlohmann::json;

constexpr std::string_view kFailedSamplesHeader = "millrace-failed-samples 1\n";
constexpr std::uint64_t kFailedSamplesBytesMax = 64 * kMiB;
// More of a key or a complaint is cut off: it is for people.
constexpr std::size_t kFailedTextBytesMax = 256;

std::string failed_sample_line(const FailedSample& row) {
  const FailedJson fields{{"run", row.run},       {"dataset", row.dataset},
                          {"sample", row.sample}, {"key", row.key},
                          {"action", row.action}, {"error", row.error},
                          {"times", row.times},   {"last", record_time(row.last)}};
  return checked_line(fields.dump(-1, ' ', false, FailedJson::error_handler_t::replace));
}

Result<FailedSample> parse_failed_sample(std::string_view line, const std::string& path) {
  const std::optional<std::string_view> text = checked_text(line);
  const FailedJson object = text ? FailedJson::parse(*text, nullptr, false) : FailedJson();
  if (!object.is_object()) {
    return failure(StatusCode::kCorruption,
                   fmt::format("a line of {} does not fit its checksum", path));
  }
  Status status;
  LogRecordFields fields(object, path, status);
  FailedSample row{.run = fields.text("run"),
                   .dataset = fields.text("dataset"),
                   .sample = fields.number("sample"),
                   .key = fields.text("key"),
                   .action = fields.text("action"),
                   .error = fields.text("error"),
                   .times = fields.number("times"),
                   .last = fields.time("last")};
  MR_RETURN_IF_ERROR(status);
  return row;
}

}  // namespace

std::string encode_failed_samples(const std::vector<FailedSample>& rows) {
  std::string text(kFailedSamplesHeader);
  for (const FailedSample& row : rows)
    text += failed_sample_line(row);
  return text;
}

Result<std::vector<FailedSample>> decode_failed_samples(std::string_view text,
                                                        const std::string& path) {
  if (!text.starts_with(kFailedSamplesHeader)) {
    return failure(StatusCode::kCorruption,
                   fmt::format("{} was written by another version of Millrace, or is something "
                               "else; move it away",
                               path));
  }
  text.remove_prefix(kFailedSamplesHeader.size());
  std::vector<FailedSample> rows;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    Result<FailedSample> row = parse_failed_sample(text.substr(0, end), path);
    if (row) {
      rows.push_back(*std::move(row));
    } else {
      log_error("some of which samples failed is lost", {{"error", row.error().to_string()}});
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return rows;
}

Result<std::unique_ptr<FailedSamples>> FailedSamples::open(Parts parts,
                                                           FailedSamplesOptions options) {
  std::unique_ptr<FailedSamples> samples(new FailedSamples(std::move(parts), options));
  MR_RETURN_IF_ERROR(samples->load());
  samples->saves_.start();
  return samples;
}

FailedSamples::FailedSamples(Parts parts, FailedSamplesOptions options)
    : parts_(std::move(parts)),
      options_(options),
      saves_({.clock = parts_.clock,
              .work = parts_.work,
              .period = options_.save_period,
              .what = "which samples failed",
              .save = [this] { return save(); }}) {}

FailedSamples::~FailedSamples() {
  saves_.stop();
  if (Status status = save(); !status.ok()) {
    log_error("which samples failed since the last save is lost", {{"error", status.to_string()}});
  }
}

Status FailedSamples::load() {
  const Result<std::string> text =
      read_small_file(parts_.disk, parts_.path, kFailedSamplesBytesMax);
  if (!text) return text.error().code() == StatusCode::kNotFound ? Status() : text.error();
  MR_ASSIGN_OR_RETURN(std::vector<FailedSample> rows, decode_failed_samples(*text, parts_.path));
  MutexLock lock(mutex_);
  for (FailedSample& row : rows) {
    Key key{.run = row.run, .dataset = row.dataset, .sample = row.sample};
    rows_.insert_or_assign(std::move(key), std::move(row));
  }
  return {};
}

std::size_t FailedSamples::listed(const std::string& run) const {
  std::size_t count = 0;
  for (auto it = rows_.lower_bound({.run = run}); it != rows_.end() && it->first.run == run; ++it)
    ++count;
  return count;
}

void FailedSamples::add(FailedSample failed) {
  if (failed.run.empty()) return;
  failed.run.resize(std::min(failed.run.size(), kFailedTextBytesMax));
  failed.dataset.resize(std::min(failed.dataset.size(), kFailedTextBytesMax));
  failed.key.resize(std::min(failed.key.size(), kFailedTextBytesMax));
  failed.error.resize(std::min(failed.error.size(), kFailedTextBytesMax));
  MutexLock lock(mutex_);
  Key key{.run = failed.run, .dataset = failed.dataset, .sample = failed.sample};
  if (!rows_.contains(key) && listed(failed.run) >= options_.listed_max) {
    key = {.run = failed.run, .dataset = std::string(kOtherFailures), .sample = 0};
    failed.dataset = kOtherFailures;
    failed.sample = 0;
    failed.key.clear();
  }
  FailedSample& row = rows_[key];
  failed.times = row.times + 1;
  failed.last = parts_.clock.wall_now();
  row = std::move(failed);
  changed_ = true;
  if (rows_.size() <= options_.rows_max) return;
  rows_.erase(std::ranges::min_element(
      rows_, {}, [](const auto& each) { return std::pair(each.second.last, each.first); }));
}

std::vector<FailedSample> FailedSamples::of_run(const std::string& run) const {
  MutexLock lock(mutex_);
  std::vector<FailedSample> found;
  for (auto it = rows_.lower_bound({.run = run}); it != rows_.end() && it->first.run == run; ++it)
    found.push_back(it->second);
  return found;
}

Status FailedSamples::save() {
  MutexLock saving(saving_);
  std::vector<FailedSample> rows;
  {
    MutexLock lock(mutex_);
    if (!std::exchange(changed_, false)) return {};
    for (const auto& [key, row] : rows_)
      rows.push_back(row);
  }
  Status status = replace_small_file(parts_.disk, parts_.path, encode_failed_samples(rows));
  if (!status.ok()) {
    MutexLock lock(mutex_);
    changed_ = true;
  }
  return status;
}

}  // namespace millrace
