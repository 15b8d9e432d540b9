// Step 4 of a collection: what is not alive goes.

#include <utility>

#include <fmt/format.h>

#include "dataset/append_log_listing.h"
#include "dataset/garbage_collector.h"
#include "dataset/log_record_fields.h"
#include "dataset/publish_uploads.h"
#include "dataset/reserved_keys.h"
#include "dataset/sample_index_store.h"

namespace millrace {
namespace {

// Pages of a listing, each as one request of `context`.
Status for_each_garbage_page(const std::function<RequestContext()>& request, ObjectStore& store,
                             const std::string& prefix,
                             const std::function<Status(const ListPage&)>& take) {
  ListRequest list;
  list.prefix = prefix;
  do {
    MR_ASSIGN_OR_RETURN(const ListPage page, store.list(request(), list));
    MR_RETURN_IF_ERROR(take(page));
    list.continuation = page.continuation;
  } while (!list.continuation.empty());
  return {};
}

}  // namespace

Status GarbageCollector::erase(const RequestContext& context,
                               const std::vector<ObjectInfo>& objects, std::uint64_t& counter) {
  if (objects.empty()) return {};
  if (!options_.dry_run) {
    std::vector<ObjectKey> keys;
    for (const ObjectInfo& object : objects)
      keys.push_back(object.key);
    MR_RETURN_IF_ERROR(access_.store.remove(request(context), keys));
  }
  for (const ObjectInfo& object : objects) {
    options_.deleted(object.key.value(), object.size);
    report_.bytes += object.size;
  }
  counter += objects.size();
  return {};
}

Status GarbageCollector::collect_manifests(const RequestContext& context, const AliveKeys& alive) {
  return for_each_garbage_page(
      [&] { return request(context); }, access_.store, std::string(kManifestsPrefix),
      [&](const ListPage& page) -> Status {
        std::vector<ObjectInfo> garbage;
        for (const ObjectInfo& object : page.objects) {
          MR_ASSIGN_OR_RETURN(const ReservationFate fate,
                              fates_->of_manifest(request(context), object.key.value()));
          if (may_delete(fate) && alive.is_dead(object.key.value())) garbage.push_back(object);
        }
        return erase(context, garbage, report_.manifests);
      });
}

Status GarbageCollector::collect_objects(const RequestContext& context, const AliveKeys& alive) {
  for (const auto& [ref, entry] : fates_->versions()) {
    const std::string prefix = fmt::format("{}/{}/", ref.dataset.text(), ref.version.text());
    MR_ASSIGN_OR_RETURN(const auto folders, list_folders(request(context), access_.store, prefix));
    for (const std::string& folder : folders) {
      if (!is_record_nonce(folder)) continue;
      MR_ASSIGN_OR_RETURN(const ReservationFate fate, fates_->of(request(context), ref, folder));
      if (!may_delete(fate)) continue;
      MR_RETURN_IF_ERROR(collect_below(context, reservation_prefix(ref, folder), alive));
    }
  }
  return {};
}

Status GarbageCollector::collect_below(const RequestContext& context, const std::string& prefix,
                                       const AliveKeys& alive) {
  return for_each_garbage_page([&] { return request(context); }, access_.store, prefix,
                               [&](const ListPage& page) -> Status {
                                 std::vector<ObjectInfo> garbage;
                                 for (const ObjectInfo& object : page.objects) {
                                   if (alive.is_dead(object.key.value())) garbage.push_back(object);
                                 }
                                 return erase(context, garbage, report_.objects);
                               });
}

// One that a publish has found and counts on may go while it is open: so none goes then. Who misses
// an index later makes it again.
Status GarbageCollector::collect_indexes(const RequestContext& context) {
  if (!report_.open.empty()) return {};
  return for_each_garbage_page(
      [&] { return request(context); }, access_.store, std::string(kIndexesPrefix),
      [&](const ListPage& page) -> Status {
        std::vector<ObjectInfo> garbage;
        for (const ObjectInfo& object : page.objects) {
          const std::optional<Sha256Digest> content = indexed_content(object.key.value());
          if (content && !live_contents_.contains(*content)) garbage.push_back(object);
        }
        return erase(context, garbage, report_.others);
      });
}

// A probe that runs loses nothing but its answer, should a clock be wrong by a day.
Status GarbageCollector::collect_probes(const RequestContext& context) {
  const WallTime old = access_.clock.wall_now() - std::chrono::days(1);
  return for_each_garbage_page([&] { return request(context); }, access_.store,
                               std::string(kProbeFolder) + "/",
                               [&](const ListPage& page) -> Status {
                                 std::vector<ObjectInfo> garbage;
                                 for (const ObjectInfo& object : page.objects) {
                                   if (object.modified < old) garbage.push_back(object);
                                 }
                                 return erase(context, garbage, report_.others);
                               });
}

}  // namespace millrace
