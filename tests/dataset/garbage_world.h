#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "dataset/garbage_collector.h"
#include "dataset/manifest_builder.h"
#include "dataset/publish_uploads.h"
#include "dataset/tar_format.h"
#include "tests/dataset/manifest_tree.h"
#include "tests/dataset/registry_world.h"

namespace millrace {

// Calls `before` ahead of every request to the store below; when that fails, so does the request,
// and nothing reaches the store. `after` may take back the answer to a request that took effect.
class GuardedObjectStore final : public ObjectStore {
 public:
  using Guard = std::function<Status()>;
  GuardedObjectStore(
      std::shared_ptr<ObjectStore> inner, Guard before, Guard after = [] { return Status(); })
      : inner_(std::move(inner)), before_(std::move(before)), after_(std::move(after)) {}

  void get_range(const RequestContext& context, GetRequest request,
                 Completion<GetResult> done) override {
    if (Status status = before_(); !status.ok()) {
      done.complete(failure(std::move(status)));
      return;
    }
    inner_->get_range(context, std::move(request), std::move(done));
  }
  Result<ObjectInfo> head(const RequestContext& context, const ObjectKey& key) override {
    MR_RETURN_IF_ERROR(before_());
    return inner_->head(context, key);
  }
  Result<ListPage> list(const RequestContext& context, const ListRequest& request) override {
    MR_RETURN_IF_ERROR(before_());
    return inner_->list(context, request);
  }
  Result<ObjectInfo> put(const RequestContext& context, const ObjectKey& key, Slice data,
                         const PutOptions& options) override {
    MR_RETURN_IF_ERROR(before_());
    auto stored = inner_->put(context, key, std::move(data), options);
    MR_RETURN_IF_ERROR(after_());
    return stored;
  }
  Result<std::unique_ptr<Upload>> start_upload(const RequestContext& context, const ObjectKey& key,
                                               const PutOptions& options) override {
    MR_RETURN_IF_ERROR(before_());
    return inner_->start_upload(context, key, options);
  }
  Result<ObjectInfo> copy(const RequestContext& context, const ObjectInfo& source,
                          const ObjectKey& target) override {
    MR_RETURN_IF_ERROR(before_());
    return inner_->copy(context, source, target);
  }
  Status remove(const RequestContext& context, std::span<const ObjectKey> keys) override {
    MR_RETURN_IF_ERROR(before_());
    MR_RETURN_IF_ERROR(inner_->remove(context, keys));
    return after_();
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::shared_ptr<ObjectStore> inner_;
  const Guard before_;
  const Guard after_;
};

// A publisher without a source: reserves, takes some files over from a base, stores some objects of
// its own, each with several files in it, commits. Each step can be seen from outside between two
// requests.
class FakePublisher {
 public:
  static constexpr int kMembers = 4;

  FakePublisher(RegistryAccess access, std::string directory, std::uint64_t seed,
                bool packs = false)
      : access_(std::move(access)),
        registry_(access_),
        directory_(std::move(directory)),
        manifests_(access_.store, directory_ + "/manifests"),
        random_(seed),
        packs_(packs) {
    std::filesystem::create_directories(directory_);
  }

  Status publish(const VersionRef& ref, const std::optional<VersionRef>& base) {
    MR_ASSIGN_OR_RETURN(const Reservation reservation, registry_.reserve(context_, ref, {}));
    return publish(reservation, base);
  }
  Status publish(const Reservation& reservation, const std::optional<VersionRef>& base) {
    MR_ASSIGN_OR_RETURN(VersionLayout layout, store(reservation, base));
    VersionFacts facts = facts_of(reservation.ref.text());
    facts.layout = std::move(layout);
    MR_ASSIGN_OR_RETURN(const VersionEntry entry, registry_.commit(context_, reservation, facts));
    return {};
  }
  // All but the commit.
  Result<VersionLayout> store(const Reservation& reservation,
                              const std::optional<VersionRef>& base) {
    const std::string path = directory_ + "/" + reservation.nonce;
    MR_ASSIGN_OR_RETURN(const auto builder, ManifestBuilder::create({.path = path}));
    int files = 0;
    if (base) MR_RETURN_IF_ERROR(take_over(*base, *builder, files));
    const std::string prefix = reservation_prefix(reservation.ref, reservation.nonce);
    for (std::uint64_t n = 0; n < 1 + random_() % 2; ++n) {
      MR_RETURN_IF_ERROR(store_object(
          packs_ ? pack_key(prefix, n) : ObjectKey(prefix + "files/" + std::to_string(n)), *builder,
          files));
    }
    if (const auto summary = builder->finish(); !summary) return failure(summary.error());
    MR_ASSIGN_OR_RETURN(VersionLayout layout,
                        manifests_.put(context_, path, reservation.ref, reservation.nonce));
    std::filesystem::remove(path);
    return layout;
  }

 private:
  Status take_over(const VersionRef& base, ManifestBuilder& builder, int& files) {
    const auto entry = registry_.version(context_, base);
    if (!entry) return entry.error() == StatusCode::kNotFound ? Status() : entry.error();
    if (!entry->readable()) return {};
    MR_ASSIGN_OR_RETURN(const auto manifest, manifests_.open(context_, entry->facts->layout));
    std::map<std::uint32_t, std::uint32_t> objects;
    for (EntryIndex index = 0; index < manifest->entries(); ++index) {
      MR_ASSIGN_OR_RETURN(const ManifestEntry file, manifest->entry(index));
      if (file.kind() != EntryKind::kFile || random_() % 3 == 0) continue;
      MR_ASSIGN_OR_RETURN(const auto extents, manifest->extents(file));
      Extent extent = extents.at(0);
      MR_ASSIGN_OR_RETURN(const ManifestObject object, manifest->object_of(file, extent));
      if (!objects.contains(extent.object)) {
        MR_ASSIGN_OR_RETURN(objects[extent.object], builder.add_object({.key = object.key,
                                                                        .identity = object.identity,
                                                                        .size = object.size}));
      }
      extent.object = objects.at(extent.object);
      MR_RETURN_IF_ERROR(add(builder, extent, file.hash(), files));
    }
    return {};
  }
  // As a tar has its members, but that their headers are zeros.
  Status store_object(const ObjectKey& key, ManifestBuilder& builder, int& files) {
    std::string bytes;
    std::vector<std::string> members;
    for (int n = 0; n < kMembers; ++n) {
      members.push_back(key.value() + " " + std::to_string(n));
      bytes += std::string(kTarBlockBytes, '\0') + members.back();
      bytes.resize(tar_padded(bytes.size()));
    }
    bytes.resize(bytes.size() + kTarEndBytes);
    MR_ASSIGN_OR_RETURN(const ObjectInfo info,
                        access_.store.put(context_, key, Slice::copy_of(bytes), PutOptions{}));
    MR_ASSIGN_OR_RETURN(
        const std::uint32_t object,
        builder.add_object({.key = key, .identity = info.identity, .size = bytes.size()}));
    for (const std::string& member : members) {
      MR_RETURN_IF_ERROR(add(builder,
                             {.object = object,
                              .offset = bytes.find(member),
                              .stored_bytes = member.size(),
                              .logical_bytes = member.size()},
                             ContentHash::of_content(sha256(as_bytes(member))), files));
    }
    return {};
  }
  static Status add(ManifestBuilder& builder, const Extent& extent, const ContentHash& hash,
                    int& files) {
    return builder.add({.path = std::to_string(files++),
                        .size = extent.logical_bytes,
                        .hash = hash,
                        .extents = {extent}});
  }

  const RequestContext context_ = RequestContext::background();
  const RegistryAccess access_;
  const Registry registry_;
  const std::string directory_;
  ManifestStore manifests_;
  std::mt19937_64 random_;
  const bool packs_;
};

// What must be in the store, and what is.
class GarbageWorld : public RegistryWorld {
 public:
  using RegistryWorld::RegistryWorld;

  // Fails the test when a version that is published or removed lacks anything. Returns the keys of
  // all that such versions need.
  std::set<std::string> check_versions() {
    std::set<std::string> needed;
    ManifestStore manifests(*memory, folder.file("check"));
    const auto every = registry().every_version(context).value();
    for (const VersionListing& listing : every) {
      const VersionState state = listing.entry->state();
      if (state != VersionState::kPublished && state != VersionState::kRemoved) continue;
      SCOPED_TRACE(listing.ref.text());
      const VersionLayout& layout = listing.entry->facts->layout;
      needed.insert(layout.manifest_key);
      const auto manifest = manifests.open(context, layout);
      EXPECT_TRUE(manifest.has_value()) << manifest.error().to_string();
      if (!manifest) continue;
      for (std::uint32_t n = 0; n < (*manifest)->objects(); ++n) {
        const ManifestObject object = (*manifest)->object(n).value();
        const auto info = memory->head(context, object.key);
        EXPECT_TRUE(info.has_value()) << object.key.value();
        if (info) {
          EXPECT_EQ(info->identity, object.identity);
        }
        needed.insert(object.key.value());
      }
      check_content(**manifest);
    }
    return needed;
  }

  // Every file has the bytes that its hash is of.
  void check_content(const Manifest& manifest) {
    for (EntryIndex index = 0; index < manifest.entries(); ++index) {
      const ManifestEntry entry = manifest.entry(index).value();
      if (entry.kind() != EntryKind::kFile || entry.hash().kind != HashKind::kSha256) continue;
      std::string bytes;
      const auto extents = manifest.extents(entry).value();
      for (const Extent& extent : extents) {
        const auto got =
            memory->get(context, {.key = manifest.object_of(entry, extent).value().key,
                                  .range = ByteRange{extent.offset, extent.stored_bytes}});
        EXPECT_TRUE(got.has_value());
        if (got) bytes += got->data.text();
      }
      EXPECT_EQ(entry.hash(), ContentHash::of_content(sha256(as_bytes(bytes))))
          << manifest.path_of(index).value();
    }
  }

  // Everything but the logs.
  std::set<std::string> stored() {
    std::set<std::string> keys;
    ListRequest request;
    do {
      const ListPage page = memory->list(context, request).value();
      for (const ObjectInfo& info : page.objects) {
        if (!info.key.value().starts_with(".millrace/datasets/")) keys.insert(info.key.value());
      }
      request.continuation = page.continuation;
    } while (!request.continuation.empty());
    return keys;
  }

  FakePublisher publisher(std::uint64_t seed = 1, bool packs = false) {
    return FakePublisher(access(), folder.file("publisher"), seed, packs);
  }
  Result<GarbageReport> collect(GarbageOptions options = {}) {
    options.manifest_directory = folder.file("gc");
    return GarbageCollector(access("gc"), std::move(options)).run(context);
  }

  ManifestFolder folder;
};

}  // namespace millrace
