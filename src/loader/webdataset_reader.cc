#include "dataset/manifest_cursor.h"
#include "dataset/sample_index_builder.h"
#include "dataset/sample_index_store.h"
#include "loader/sample_readers.h"
#include "loader/webdataset_source.h"

namespace millrace {

namespace {

Result<std::unique_ptr<SampleSource>> open_webdataset(const RequestContext& context,
                                                      const SampleEnvironment& environment,
                                                      const std::string& directory) {
  // The index is of all tar files of a version.
  if (!directory.empty()) {
    return failure(StatusCode::kUnsupported,
                   "tar shards can be read of a whole version only, not of a directory in it");
  }
  const Manifest& manifest = environment.files.manifest();
  auto index = SampleIndexStore(environment.store).open(context, manifest.content_digest());
  if (!index && index.error().code() == StatusCode::kNotFound) {
    if (!environment.count_samples) {
      return failure(StatusCode::kNotFound,
                     "the version has no sample index, by which samples are found in tar files: "
                     "publish or register it with --index");
    }
    index = environment.count_samples(context);
  }
  if (!index) return failure(index.error());
  return WebDatasetSource::open(manifest, *std::move(index));
}

// Whether all files are tar files, as far as it is cheap to look.
Result<bool> holds_tar_files(const Manifest& manifest) {
  constexpr int kLookedAtMax = 1000;
  bool found = false;
  ManifestCursor cursor(manifest);
  for (int looked_at = 0; looked_at < kLookedAtMax; ++looked_at) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) break;
    if (item->entry.kind() != EntryKind::kFile) continue;
    if (!is_sample_shard(item->path)) return false;
    found = true;
  }
  return found;
}

}  // namespace

const SampleReader kWebDatasetReader = {
    .name = WebDatasetSource::kReader,
    .recognises = [](const RequestContext& context, const SampleEnvironment& environment,
                     const std::string& directory) -> Result<bool> {
      if (!directory.empty()) return false;
      const Sha256Digest digest = environment.files.manifest().content_digest();
      const auto index = environment.store.head(context, sample_index_key(digest));
      if (index) return true;
      if (index.error().code() != StatusCode::kNotFound) return failure(index.error());
      if (!environment.count_samples) return false;
      return holds_tar_files(environment.files.manifest());
    },
    .open = open_webdataset,
};

}  // namespace millrace
