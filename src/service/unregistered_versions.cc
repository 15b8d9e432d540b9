#include "service/unregistered_versions.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "dataset/manifest_builder.h"
#include "dataset/registration_sink.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

// Removes the name of a listing, of which the mapping is enough.
class ListingFile {
 public:
  explicit ListingFile(std::string path) : path_(std::move(path)) {}
  ~ListingFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ListingFile(const ListingFile&) = delete;
  ListingFile& operator=(const ListingFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

Status list_objects(const RequestContext& context, ObjectStore& store, Clock& clock,
                    const std::string& path, const std::string& scratch) {
  const RegistrationOptions options;
  StoreSource source(store, "", {.threads = options.parallel}, clock);
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<ManifestBuilder> builder,
                      ManifestBuilder::create({.path = path, .scratch = scratch}));
  const std::string own_store;
  RegistrationSink sink(context, {.source = source,
                                  .builder = *builder,
                                  .store_url = own_store,
                                  .reserved = nullptr,
                                  .shards = nullptr,
                                  .clock = clock,
                                  .options = options});
  MR_RETURN_IF_ERROR(source.scan(context, sink));
  MR_RETURN_IF_ERROR(sink.wait());
  MR_RETURN_IF_ERROR(sink.problems().refuse(source.describe()));
  MR_ASSIGN_OR_RETURN(const ManifestSummary summary, builder->finish());
  if (summary.totals.files > 0) return {};
  return {StatusCode::kNotFound, fmt::format("there is no object below {}", source.describe())};
}

}  // namespace

VersionRef unregistered_ref() { return VersionRef::parse("unregistered@listed").value(); }

Result<std::unique_ptr<Manifest>> list_unregistered(const RequestContext& context,
                                                    ObjectStore& store,
                                                    const std::string& directory, Random& random,
                                                    Clock& clock) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return failure(file_error(error.value(), "make directory", directory));
  const ListingFile listing(fmt::format("{}/{}.manifest", directory, random.token()));
  MR_RETURN_IF_ERROR(list_objects(context, store, clock, listing.path(), directory));
  return Manifest::open(listing.path());
}

Result<std::shared_ptr<VersionTree>> UnregisteredVersions::open(
    const RequestContext& context, std::shared_ptr<ObjectStore> store) const {
  MR_ASSIGN_OR_RETURN(
      std::shared_ptr<const Manifest> manifest,
      list_unregistered(context, *store, parts_.directory, parts_.random, parts_.clock));
  const StoreId id(store->describe());
  parts_.reads.cache.add_store(id, std::move(store));
  // There is no newer layout of what has no registry.
  const auto reopen = [](const RequestContext&) -> Result<std::shared_ptr<const Manifest>> {
    return nullptr;
  };
  return std::make_shared<VersionTree>(VersionTree::Identity{.number = TreeNumber(kTreeNumberMax),
                                                             .ref = unregistered_ref(),
                                                             .store = id,
                                                             .parent = NodeNumber(0),
                                                             .place = id.value()},
                                       std::move(manifest), reopen, parts_.reads);
}

}  // namespace millrace
