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

// How many of the first files are tar files: as far as it is cheap to look.
enum class TarFiles : std::uint8_t { kNone, kSome, kAll };
Result<TarFiles> tar_files(const Manifest& manifest) {
  constexpr int kLookedAtMax = 1000;
  bool found = false;
  bool others = false;
  ManifestCursor cursor(manifest);
  for (int looked_at = 0; looked_at < kLookedAtMax; ++looked_at) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) break;
    if (item->entry.kind() != EntryKind::kFile) continue;
    (is_sample_shard(item->path) ? found : others) = true;
  }
  if (!found) return TarFiles::kNone;
  return others ? TarFiles::kSome : TarFiles::kAll;
}

}  // namespace

const SampleReader kWebDatasetReader = {
    .name = WebDatasetSource::kReader,
    .recognises = [](const RequestContext& context, const SampleEnvironment& environment,
                     const std::string& directory) -> Result<bool> {
      if (!directory.empty()) return false;
      const Manifest& manifest = environment.files.manifest();
      MR_ASSIGN_OR_RETURN(const TarFiles found, tar_files(manifest));
      // The store need not be asked, which takes a round trip before the first batch.
      if (found == TarFiles::kNone) return false;
      const auto index =
          environment.store.head(context, sample_index_key(manifest.content_digest()));
      if (index) return true;
      if (index.error().code() != StatusCode::kNotFound) return failure(index.error());
      return environment.count_samples && found == TarFiles::kAll;
    },
    .open = open_webdataset,
};

}  // namespace millrace
