#include "loader/mds_source.h"
#include "loader/sample_readers.h"

namespace millrace {

namespace {

// Other formats have an index.json too; that of MDS begins with its shards.
Result<bool> looks_like_mds(const RequestContext& context, const SampleEnvironment& environment,
                            const std::string& directory) {
  const Manifest& manifest = environment.files.manifest();
  std::string path = directory.empty() ? "" : directory + "/";
  path += MdsSource::kIndexName;
  MR_ASSIGN_OR_RETURN(const std::optional<EntryIndex> found, manifest.resolve(path));
  if (!found) return false;
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(*found));
  if (entry.kind() != EntryKind::kFile) return false;
  constexpr std::uint64_t kHeadBytes = 4096;
  MR_ASSIGN_OR_RETURN(const Slice head,
                      MdsSource::read_index(context, environment.files, entry, kHeadBytes));
  return head.text().contains("\"shards\"");
}

}  // namespace

const SampleReader kMdsReader = {
    .name = MdsSource::kReader,
    .recognises = looks_like_mds,
    .open = [](const RequestContext& context, const SampleEnvironment& environment,
               const std::string& directory) -> Result<std::unique_ptr<SampleSource>> {
      return MdsSource::open(context, environment.files, directory, environment.options);
    },
};

}  // namespace millrace
