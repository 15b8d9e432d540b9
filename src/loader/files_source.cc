#include "loader/files_source.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "base/little_endian.h"
#include "dataset/manifest_cursor.h"
#include "dataset/sample_name.h"

namespace millrace {

namespace {

// Fine enough to see where sizes change, coarse enough to take no memory.
constexpr std::uint64_t kStretchSamples = 4096;

}  // namespace

Result<std::unique_ptr<FilesSource>> FilesSource::open(const Manifest& manifest,
                                                       const FilesSourceOptions& options) {
  std::unique_ptr<FilesSource> source(new FilesSource(manifest, options));
  MR_RETURN_IF_ERROR(source->list_all());
  if (source->samples_ > 0) return source;
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("no {} in {}", options.grouped ? "files with an extension" : "files",
                             options.directory.empty() ? "the version" : options.directory));
}

Status FilesSource::list_all() {
  MR_ASSIGN_OR_RETURN(const std::optional<EntryIndex> root, manifest_.resolve(options_.directory));
  if (!root) {
    return {StatusCode::kNotFound,
            fmt::format("the version has no directory '{}'", options_.directory)};
  }
  // Level by level, as the manifest has them: samples that are neighbours lie in the same packs.
  struct Directory {
    EntryIndex index;
    std::int32_t label;
    bool is_root;
  };
  std::deque<Directory> directories = {{.index = *root, .label = -1, .is_root = true}};
  while (!directories.empty()) {
    const Directory directory = directories.front();
    directories.pop_front();
    MR_RETURN_IF_ERROR(list_directory(directory.index, directory.label));
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest_.entry(directory.index));
    MR_ASSIGN_OR_RETURN(const ChildRange children, manifest_.children(entry));
    ChildCursor cursor(manifest_, children);
    for (;;) {
      MR_ASSIGN_OR_RETURN(const auto child, cursor.next());
      if (!child) break;
      if (child->entry.kind() != EntryKind::kDirectory) continue;
      std::int32_t label = directory.label;
      if (directory.is_root) {
        label = static_cast<std::int32_t>(classes_.size());
        classes_.emplace_back(child->name);
      }
      directories.push_back({.index = child->entry.index(), .label = label, .is_root = false});
    }
  }
  return {};
}

Status FilesSource::list_directory(EntryIndex directory, std::int32_t label) {
  label_ = label;
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest_.entry(directory));
  MR_ASSIGN_OR_RETURN(const ChildRange children, manifest_.children(entry));
  ChildCursor cursor(manifest_, children);
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto child, cursor.next());
    if (!child) break;
    if (child->entry.kind() != EntryKind::kFile || child->name.starts_with('.')) continue;
    add_file(child->entry.index(), child->entry.size(), child->name);
  }
  end_sample();
  return {};
}

void FilesSource::add_file(EntryIndex index, std::uint64_t bytes, std::string_view name) {
  std::string_view base = name;
  if (options_.grouped) {
    const auto parsed = sample_name(name);
    if (!parsed) return;
    base = parsed->base;
  }
  // A group with something else between its files is two runs of files, and so two samples would
  // come of it: names of one base are neighbours in a manifest, unless one has no dot.
  const bool goes_on = options_.grouped && pending_.files > 0 && pending_.base == base &&
                       pending_.first_file + pending_.files == index;
  if (!goes_on) {
    end_sample();
    pending_ = {.base = std::string(base), .first_file = index, .files = 0, .bytes = 0};
  }
  ++pending_.files;
  pending_.bytes += bytes;
}

void FilesSource::end_sample() {
  const Pending ended = std::exchange(pending_, {});
  if (ended.files == 0) return;
  bool goes_on = false;
  if (!runs_.empty()) {
    const Run& run = runs_.back();
    const std::uint64_t next = run.first_file + (samples_ - run.first_sample) * run.files;
    goes_on = run.files == ended.files && run.label == label_ && next == ended.first_file;
  }
  if (!goes_on) {
    runs_.push_back({.first_sample = samples_,
                     .first_file = ended.first_file,
                     .files = ended.files,
                     .label = label_});
  }
  if (stretches_.empty() || stretches_.back().samples == kStretchSamples) {
    stretches_.emplace_back();
  }
  ++stretches_.back().samples;
  stretches_.back().bytes += ended.bytes;
  ++samples_;
}

const FilesSource::Run& FilesSource::run_of(std::uint64_t sample) const {
  assert(sample < samples_);
  return *std::prev(std::ranges::upper_bound(runs_, sample, {}, &Run::first_sample));
}

Result<SampleLocation> FilesSource::locate(const RequestContext&, std::uint64_t sample) {
  const Run& run = run_of(sample);
  const auto first =
      static_cast<EntryIndex>(run.first_file + (sample - run.first_sample) * run.files);
  SampleLocation location{.sample = sample};
  MR_ASSIGN_OR_RETURN(location.key, manifest_.path_of(first));
  for (EntryIndex file = first; file < first + run.files; ++file) {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest_.entry(file));
    SamplePart part{.field = "data", .file = file, .range = {.offset = 0, .length = entry.size()}};
    if (options_.grouped) {
      MR_ASSIGN_OR_RETURN(const std::string_view name, manifest_.name(entry));
      const auto parsed = sample_name(name);
      part.field = parsed ? sample_field(*parsed) : std::string(name);
    }
    location.parts.push_back(std::move(part));
  }
  if (options_.grouped) {
    if (const auto parsed = sample_name(location.key)) location.key = std::string(parsed->base);
  }
  return location;
}

Result<std::vector<SampleValue>> FilesSource::decode(const SampleLocation& location,
                                                     const std::vector<Slice>& parts) {
  assert(parts.size() == location.parts.size());
  std::vector<SampleValue> values;
  for (std::size_t n = 0; n < parts.size(); ++n) {
    values.push_back({.name = location.parts[n].field, .bytes = parts[n]});
  }
  if (!options_.grouped) {
    Buffer label = Buffer::allocate(sizeof(std::int64_t));
    const std::int64_t number = this->label(location.sample);
    store_little_endian(label.data(), static_cast<std::uint64_t>(number));
    values.push_back({.name = "label", .type = "int64", .bytes = std::move(label).freeze()});
  }
  return values;
}

}  // namespace millrace
