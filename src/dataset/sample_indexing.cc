#include "dataset/sample_indexing.h"

#include "dataset/manifest.h"
#include "dataset/sample_index_store.h"

namespace millrace {

Result<std::uint64_t> index_samples(const RequestContext& context,
                                    const PublishEnvironment& environment,
                                    const SampleIndexing& indexing) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Manifest> manifest,
                      Manifest::open(indexing.manifest_path));
  SampleIndexStore indexes(environment.store);
  const RequestContext request =
      context.with_deadline(environment.clock.now() + indexing.request_timeout);
  const auto known = indexes.open(request, manifest->content_digest());
  if (known) return (*known)->samples();
  if (known.error() != StatusCode::kNotFound) return failure(known.error());
  const VersionReader reader(
      environment.store, *manifest, indexing.ref,
      {.request_timeout = indexing.request_timeout, .stores = indexing.stores}, environment.clock);
  MR_ASSIGN_OR_RETURN(
      const std::unique_ptr<BuiltSampleIndex> built,
      indexing.shards != nullptr
          ? indexing.shards->finish(*manifest)
          : build_sample_index(context, reader,
                               {.parallel = indexing.parallel,
                                .scratch = environment.state_directory + "/scratch"}));
  MR_RETURN_IF_ERROR(indexes.put(context, *built));
  return built->table().samples();
}

}  // namespace millrace
