#include "service/loader_sources.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "loader/files_source.h"
#include "loader/sample_readers.h"
#include "service/version_sample_files.h"

namespace millrace {
namespace {

// What is shared: the same samples of the same bytes.
std::string key_of(const SourceChoice& choice, std::string_view name, std::string_view reader,
                   const Sha256Digest& content) {
  return fmt::format("{}\n{}\n{}\n{}\n{}{}", name, reader, choice.directory, to_hex(content),
                     choice.options.allow_pickle, choice.options.verify_hashes);
}

}  // namespace

bool names_a_place(const std::string& name) {
  return name.starts_with('/') || name.starts_with("./") || name.starts_with("../") ||
         name == "." || name == ".." || name.find("://") != std::string::npos;
}

std::string whole_place(const std::string& name) {
  if (!name.starts_with('.') || !names_a_place(name)) return name;
  return std::filesystem::absolute(name).lexically_normal().string();
}

Result<OpenSource> LoaderSources::open_tree(const RequestContext& context,
                                            const SourceChoice& choice,
                                            const std::shared_ptr<VersionTree>& tree) const {
  OpenSource opened;
  opened.files = std::make_shared<VersionSampleFiles>(tree);
  SampleEnvironment environment{
      .files = *opened.files, .store = parts_.store, .options = choice.options};
  // Only of what is registered may others want the index.
  const SampleCounting::Place place{.name = choice.name,
                                    .shared = names_a_place(choice.name) ? nullptr : &parts_.store};
  if (parts_.counting != nullptr) {
    environment.count_samples = [&](const RequestContext& asked) {
      return parts_.counting->open(asked, opened.files, place);
    };
  }
  MR_ASSIGN_OR_RETURN(std::unique_ptr<SampleSource> source,
                      open_samples(context, environment, choice.reader, choice.directory));
  opened.source = std::move(source);
  SourceFacts& facts = opened.facts;
  facts.content_digest = opened.files->manifest().content_digest();
  facts.reader = opened.source->reader();
  facts.samples = opened.source->samples();
  facts.stretches = opened.source->stretches();
  for (const SampleStretch& stretch : facts.stretches)
    facts.bytes += stretch.bytes;
  if (const auto* labelled = dynamic_cast<const FilesSource*>(opened.source.get())) {
    if (facts.reader == FilesSource::kReader) facts.classes = labelled->classes();
  }
  return opened;
}

Result<OpenSource> LoaderSources::open_one(const RequestContext& context,
                                           const SourceChoice& choice) const {
  const bool is_place = names_a_place(choice.name);
  if (is_place && parts_.require_version) {
    return failure(StatusCode::kPermissionDenied,
                   "only registered versions are served here (require_version): publish or "
                   "register it, and name it as NAME@VERSION");
  }
  std::shared_ptr<VersionTree> tree;
  std::string version;
  if (!is_place && choice.content) {
    // Who knows the content has it open already, by its version's own name: the registry need not
    // be asked again for each rank, worker and connection of a job.
    auto shared = find(key_of(choice, choice.name, choice.reader, *choice.content));
    if (shared) return *std::move(shared);
  }
  if (!is_place) {
    MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(choice.name));
    MR_ASSIGN_OR_RETURN(tree, parts_.datasets.version(context, ref));
    version = tree->ref().text();
  }
  // What may change under its name is shared only with who knows what it was.
  const auto key = [&](std::string_view reader, const Sha256Digest& content) {
    return key_of(choice, is_place ? choice.name : version, reader, content);
  };
  const std::optional<Sha256Digest> known =
      is_place ? choice.content : tree->objects()->manifest().content_digest();
  if (known) {
    if (auto shared = find(key(choice.reader, *known))) return *std::move(shared);
  }
  if (is_place) {
    MR_ASSIGN_OR_RETURN(std::shared_ptr<ObjectStore> store, parts_.store_at(choice.name));
    MR_ASSIGN_OR_RETURN(tree, parts_.unregistered.open(context, std::move(store)));
  }
  MR_ASSIGN_OR_RETURN(OpenSource opened, open_tree(context, choice, tree));
  opened.facts.version = version;
  // Also by the reader that was found, which who opens it again names.
  const Sha256Digest content = opened.facts.content_digest;
  const std::string reader = opened.facts.reader;
  return share(key(choice.reader, content), share(key(reader, content), std::move(opened)));
}

std::optional<OpenSource> LoaderSources::find(const std::string& key) const {
  MutexLock lock(mutex_);
  return find_locked(key);
}

std::optional<OpenSource> LoaderSources::find_locked(const std::string& key) const {
  const auto found = shared_.find(key);
  if (found == shared_.end()) return std::nullopt;
  OpenSource opened{.files = found->second.files.lock(),
                    .source = found->second.source.lock(),
                    .facts = found->second.facts};
  if (opened.files == nullptr || opened.source == nullptr) return std::nullopt;
  return opened;
}

OpenSource LoaderSources::share(const std::string& key, OpenSource source) const {
  MutexLock lock(mutex_);
  // Who has it open counts on finding it for as long as that lasts: it is not replaced.
  if (auto shared = find_locked(key)) return *std::move(shared);
  std::erase_if(shared_, [](const auto& each) { return each.second.source.expired(); });
  shared_[key] = {.files = source.files, .source = source.source, .facts = source.facts};
  return source;
}

Result<std::shared_ptr<ProcessEngine>> LoaderSources::open(
    const RequestContext& context, const std::vector<SourceChoice>& choices) const {
  std::vector<OpenSource> sources;
  for (const SourceChoice& choice : choices) {
    auto opened = open_one(context, choice);
    if (!opened) return failure(opened.error().with_context("dataset '" + choice.name + "'"));
    if (choice.content && *choice.content != opened->facts.content_digest) {
      return failure(StatusCode::kPreconditionFailed,
                     fmt::format("dataset '{}' has changed since it was opened", choice.name));
    }
    sources.push_back(*std::move(opened));
  }
  return std::make_shared<ProcessEngine>(std::move(sources), &parts_.cache.plans());
}

}  // namespace millrace
