#include "vfs/buckets_tree.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "base/file_name.h"
#include "base/log.h"
#include "vfs/node_number.h"

namespace millrace {
namespace {

constexpr std::uint16_t kBucketDirectoryPermissions = 0555;
constexpr std::uint16_t kBucketFilePermissions = 0444;

std::unexpected<Status> no_such_path(std::string_view path) {
  return failure(StatusCode::kNotFound, fmt::format("there is no '/buckets/{}'", path));
}

NodeAttributes file_attributes(NodeNumber number, const BucketEntry& entry) {
  return {.number = number,
          .kind = NodeKind::kFile,
          .permissions = kBucketFilePermissions,
          .size = entry.size,
          .modified = entry.modified,
          .lifetime = NodeLifetime::kShort};
}

// Stands between the path of a file and the identity of its object: no name has it.
constexpr char kIdentityMark = '\0';

// Where the last name of a path begins, the '/' behind a directory left aside.
std::size_t name_begin(std::string_view path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? 0 : slash + 1;
}

}  // namespace

BucketsTree::BucketsTree(const Parts& parts, const std::vector<BucketExport>& exports,
                         BucketViewOptions options)
    : parts_(parts), started_(parts.clock.wall_now()) {
  const std::size_t shares = std::max<std::size_t>(1, exports.size());
  options.pages_kept_max = std::max<std::size_t>(1, options.pages_kept_max / shares);
  options.names_kept_max = std::max<std::size_t>(1, options.names_kept_max / shares);
  for (const BucketExport& exported : exports) {
    assert(!file_name_fault(exported.name));
    parts_.cache.add_store(exported.id, exported.store);
    const std::string path = "/buckets/" + exported.name;
    buckets_.try_emplace(exported.name,
                         Bucket{path, exported.id,
                                std::make_shared<BucketView>(path, exported.store, parts.clock,
                                                             parts.requests, options)});
  }
}

// ---- Nodes

std::string BucketsTree::Place::directory() const { return key.substr(0, name_begin(key)); }

std::string BucketsTree::Place::name() const {
  const std::size_t begin = name_begin(key);
  return key.substr(begin, key.size() - begin - (is_directory() ? 1 : 0));
}

Result<BucketsTree::Place> BucketsTree::place(NodeNumber node) {
  if (node == buckets_node()) return Place{.path = "", .bucket = nullptr, .key = ""};
  MR_ASSIGN_OR_RETURN(std::string path, parts_.paths.find(node));
  const std::size_t slash = path.find('/');
  const auto found = buckets_.find(std::string_view(path).substr(0, slash));
  // It was exported once.
  if (slash == std::string::npos || found == buckets_.end()) return no_such_path(path);
  std::string identity;
  if (const std::size_t mark = path.find(kIdentityMark); mark != std::string::npos) {
    identity = path.substr(mark + 1);
    path.resize(mark);
  }
  std::string key = path.substr(slash + 1);
  return Place{.path = std::move(path),
               .bucket = &found->second,
               .key = std::move(key),
               .identity = std::move(identity)};
}

Result<BucketsTree::Place> BucketsTree::directory_place(NodeNumber node) {
  MR_ASSIGN_OR_RETURN(Place found, place(node));
  if (!found.is_directory()) {
    return failure(StatusCode::kInvalidArgument, "only a directory has entries");
  }
  return found;
}

Result<BucketEntry> BucketsTree::entry(const RequestContext& context, const Place& place) {
  MR_ASSIGN_OR_RETURN(std::optional<BucketEntry> found,
                      place.bucket->view->find(context, place.directory(), place.name()));
  if (!found || found->is_directory() != place.is_directory()) return no_such_path(place.path);
  if (!place.is_directory() && found->identity.value() != place.identity) {
    return failure(StatusCode::kNotFound,
                   fmt::format("'/buckets/{}' is another object by now", place.path));
  }
  return *std::move(found);
}

NodeAttributes BucketsTree::directory_attributes(NodeNumber number) const {
  return {.number = number,
          .kind = NodeKind::kDirectory,
          .permissions = kBucketDirectoryPermissions,
          .modified = started_,
          .lifetime = NodeLifetime::kShort};
}

Result<NodeAttributes> BucketsTree::add(const Place& directory, const BucketEntry& entry) {
  std::string text = directory.path + entry.text;
  if (!entry.is_directory()) text += kIdentityMark + entry.identity.value();
  MR_ASSIGN_OR_RETURN(const NodeNumber number, parts_.paths.add(text));
  if (entry.is_directory()) return directory_attributes(number);
  return file_attributes(number, entry);
}

void BucketsTree::keep_numbers() {
  const Status kept = parts_.paths.flush();
  if (loses_numbers_.exchange(!kept.ok()) || kept.ok()) return;
  log_warn("nodes of /buckets cannot be noted, and are forgotten at a restart",
           {{"error", kept.to_string()}});
}

// ---- The tree

Result<NodeAttributes> BucketsTree::attributes(const RequestContext& context, NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const Place at, place(node));
  if (at.bucket == nullptr || at.is_bucket()) return directory_attributes(node);
  MR_ASSIGN_OR_RETURN(const BucketEntry found, entry(context, at));
  return add({.path = at.path.substr(0, name_begin(at.path)), .bucket = at.bucket, .key = ""},
             found);
}

Result<NodeAttributes> BucketsTree::lookup(const RequestContext& context, NodeNumber directory,
                                           std::string_view name) {
  MR_ASSIGN_OR_RETURN(const Place at, directory_place(directory));
  std::optional<BucketEntry> found;
  if (at.bucket == nullptr) {
    if (buckets_.contains(name)) found = BucketEntry{.text = std::string(name) + "/"};
  } else {
    MR_ASSIGN_OR_RETURN(found, at.bucket->view->find(context, at.key, name));
  }
  if (!found) return no_such_path(at.path + std::string(name));
  MR_ASSIGN_OR_RETURN(const NodeAttributes attributes, add(at, *found));
  keep_numbers();
  return attributes;
}

Result<NodeNumber> BucketsTree::parent(const RequestContext& /*context*/, NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const Place at, place(node));
  if (at.bucket == nullptr) return root_node();
  const std::string above = at.path.substr(0, name_begin(at.path));
  if (above.empty()) return buckets_node();
  MR_ASSIGN_OR_RETURN(const NodeNumber number, parts_.paths.add(above));
  keep_numbers();
  return number;
}

Status BucketsTree::read_directory(const RequestContext& context, NodeNumber directory,
                                   std::uint64_t cookie, const Visitor& visitor) {
  MR_ASSIGN_OR_RETURN(const Place at, directory_place(directory));
  Status shown;
  if (at.bucket == nullptr) {
    shown = show_buckets(cookie, visitor);
  } else {
    MR_ASSIGN_OR_RETURN(std::string after, text_of_cookie(at, cookie));
    shown = show_entries(context, at, std::move(after), visitor);
  }
  keep_numbers();
  return shown;
}

Status BucketsTree::show_buckets(std::uint64_t cookie, const Visitor& visitor) {
  // Settings come and go: what follows a cookie must not depend on which buckets are there.
  std::map<std::uint64_t, std::string> by_cookie;
  for (const auto& [name, bucket] : buckets_)
    by_cookie.emplace(hash_of(named_node(NamedNodes::kBuckets, name + "/")), name);
  for (auto it = by_cookie.upper_bound(cookie); it != by_cookie.end(); ++it) {
    const auto& [place, name] = *it;
    MR_ASSIGN_OR_RETURN(const NodeAttributes attributes,
                        add({.path = "", .bucket = nullptr, .key = ""}, {.text = name + "/"}));
    if (!visitor({.name = name, .attributes = attributes, .cookie = place})) break;
  }
  return {};
}

Result<std::string> BucketsTree::text_of_cookie(const Place& directory, std::uint64_t cookie) {
  if (cookie == 0) return "";
  MR_ASSIGN_OR_RETURN(const std::string path,
                      parts_.paths.find(named_node(NamedNodes::kBuckets, cookie)));
  const std::string_view shown = std::string_view(path).substr(0, path.find(kIdentityMark));
  if (name_begin(shown) != directory.path.size() || !shown.starts_with(directory.path)) {
    return failure(StatusCode::kInvalidArgument, "the cookie is of another directory");
  }
  return std::string(shown.substr(directory.path.size()));
}

Status BucketsTree::show_entries(const RequestContext& context, const Place& directory,
                                 std::string after, const Visitor& visitor) {
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<const BucketPage> page,
                        directory.bucket->view->page(context, directory.key, after));
    if (!page->has_keys && page->after.empty() && !directory.is_bucket()) {
      return no_such_path(directory.path).error();
    }
    for (auto it = page->behind(after); it != page->entries.end(); ++it) {
      MR_ASSIGN_OR_RETURN(const NodeAttributes attributes, add(directory, *it));
      if (!visitor({.name = it->name(),
                    .attributes = attributes,
                    .cookie = hash_of(attributes.number)})) {
        return {};
      }
    }
    if (page->is_last) return {};
    after = page->through;
  }
}

Result<std::string> BucketsTree::read_link(const RequestContext& /*context*/,
                                           NodeNumber /*symlink*/) {
  return failure(StatusCode::kInvalidArgument, "this is no symlink");
}

std::shared_ptr<BucketFile> BucketsTree::file(NodeNumber number, const Place& place,
                                              const BucketEntry& entry,
                                              std::shared_ptr<const Caller> opener) const {
  return std::make_shared<BucketFile>(
      parts_.cache,
      ObjectVersion(place.bucket->id, ObjectKey(place.key), entry.identity, entry.size),
      file_attributes(number, entry), place.bucket->view, place.directory(), place.name(),
      FileAccounts(parts_.observer, place.bucket->path, std::move(opener)));
}

Result<std::shared_ptr<OpenFile>> BucketsTree::open(const RequestContext& context,
                                                    NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const Place at, place(node));
  if (at.is_directory()) return failure(StatusCode::kInvalidArgument, "only a file can be opened");
  MR_ASSIGN_OR_RETURN(const BucketEntry found, entry(context, at));
  return file(node, at, found, context.caller());
}

Result<std::vector<NodeFact>> BucketsTree::facts(const RequestContext& context, NodeNumber node) {
  MR_ASSIGN_OR_RETURN(const Place at, place(node));
  if (at.bucket == nullptr) return std::vector<NodeFact>();
  std::vector<NodeFact> facts{{"store", at.bucket->id.value()}, {"key", at.key}};
  if (at.is_directory()) return facts;
  MR_ASSIGN_OR_RETURN(const BucketEntry found, entry(context, at));
  MR_ASSIGN_OR_RETURN(std::string cached, file(node, at, found, nullptr)->cached(context));
  facts.push_back({"etag", found.identity.value()});
  facts.push_back({"cached", std::move(cached)});
  return facts;
}

Result<TreeUsage> BucketsTree::usage(const RequestContext& /*context*/, NodeNumber /*node*/) {
  return TreeUsage();
}

std::uint64_t BucketsTree::hidden_keys() const {
  std::uint64_t keys = 0;
  for (const auto& [name, bucket] : buckets_)
    keys += bucket.view->hidden_keys();
  return keys;
}

}  // namespace millrace
