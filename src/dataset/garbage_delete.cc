// Step 4 of a collection: what is not alive goes.

#include <utility>

#include <fmt/format.h>

#include "dataset/append_log_listing.h"
#include "dataset/garbage_collector.h"
#include "dataset/log_record_fields.h"
#include "dataset/publish_uploads.h"

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

}  // namespace millrace
