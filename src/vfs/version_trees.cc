#include "vfs/version_trees.h"

#include <utility>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "base/current_request.h"

namespace millrace {

Result<std::shared_ptr<VersionTree>> VersionTrees::of(const RequestContext& context,
                                                      const VersionEntry& entry) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const NumberedTree tree, numbered(entry));
  return open(context, tree);
}

Result<TreeNumber> VersionTrees::number_of(const VersionEntry& entry) {
  MR_ASSIGN_OR_RETURN(const NumberedTree tree, numbered(entry));
  MR_RETURN_IF_ERROR(check_lives(tree));
  return tree.number;
}

Result<NumberedTree> VersionTrees::numbered(const VersionEntry& entry) {
  return parts_.numbers.number_of(entry.ref, entry.facts->reservation, entry.facts->layout);
}

Status VersionTrees::check_lives(const NumberedTree& tree) {
  MutexLock lock(mutex_);
  if (!purged_.contains(tree.number.value())) return {};
  return {StatusCode::kNotFound, fmt::format("{} is purged", tree.ref.text())};
}

Result<std::shared_ptr<VersionTree>> VersionTrees::find(const RequestContext& context,
                                                        TreeNumber number) {
  if (std::shared_ptr<VersionTree> tree = opened(number)) return tree;
  MR_RETURN_IF_ERROR(AtHandOnly::may_wait_for_disk());
  const CurrentRequest current(context);
  const std::optional<NumberedTree> tree = parts_.numbers.find(number);
  if (!tree) return failure(StatusCode::kNotFound, "there is no such node");
  return open(context, *tree);
}

std::shared_ptr<VersionTree> VersionTrees::opened(TreeNumber number) {
  MutexLock lock(mutex_);
  const auto known = trees_.find(number.value());
  return known == trees_.end() ? nullptr : known->second;
}

Result<bool> VersionTrees::drop_if_purged(const RequestContext& context, TreeNumber number) {
  const std::optional<NumberedTree> tree = parts_.numbers.find(number);
  if (!tree) return false;
  const Result<VersionEntry> entry = parts_.registry.version(context, tree->ref);
  if (!entry && entry.error() != StatusCode::kNotFound) return failure(entry.error());
  const bool lives = entry && entry->facts && entry->facts->reservation == tree->nonce &&
                     entry->state() != VersionState::kPurged;
  if (lives) return false;
  MutexLock lock(mutex_);
  purged_.insert(number.value());
  trees_.erase(number.value());
  return true;
}

Result<std::shared_ptr<VersionTree>> VersionTrees::open(const RequestContext& context,
                                                        const NumberedTree& tree) {
  MR_RETURN_IF_ERROR(check_lives(tree));
  if (std::shared_ptr<VersionTree> known = opened(tree.number)) return known;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<const Manifest> manifest, find_manifest(context, tree));
  const auto reopen = [this, tree](const RequestContext& asking) { return newest(asking, tree); };
  auto added = std::make_shared<VersionTree>(
      VersionTree::Identity{.number = tree.number,
                            .ref = tree.ref,
                            .store = parts_.store,
                            .parent = named_node(NamedNodes::kDatasets, tree.ref.dataset.text())},
      std::move(manifest), reopen, parts_.reads);
  MutexLock lock(mutex_);
  // Any that nobody uses makes room: opening it again costs little.
  for (auto it = trees_.begin(); trees_.size() >= kTreesMax && it != trees_.end();) {
    it = it->second.use_count() == 1 ? trees_.erase(it) : std::next(it);
  }
  return trees_.try_emplace(tree.number.value(), std::move(added)).first->second;
}

// Pages are fetched as they are touched, for as long as the tree lives: each time for the request
// that touches them, or for none.
Result<std::shared_ptr<const Manifest>> VersionTrees::open_manifest(const VersionLayout& layout) {
  return parts_.manifests.open(RequestContext::background(), layout);
}

Result<std::shared_ptr<const Manifest>> VersionTrees::find_manifest(const RequestContext& context,
                                                                    const NumberedTree& tree) {
  Result<std::shared_ptr<const Manifest>> known = open_manifest(tree.layout);
  if (known || known.error() != StatusCode::kNotFound) return known;
  Result<std::shared_ptr<const Manifest>> newer = newest(context, tree);
  if (newer && *newer != nullptr) return newer;
  return failure(about_manifest(tree.ref.text(), newer ? known.error() : newer.error()));
}

Result<std::shared_ptr<const Manifest>> VersionTrees::newest(const RequestContext& context,
                                                             const NumberedTree& tree) {
  MR_RETURN_IF_ERROR(AtHandOnly::may_wait());
  MR_ASSIGN_OR_RETURN(const VersionEntry entry, parts_.registry.version(context, tree.ref));
  if (!entry.facts || entry.facts->reservation != tree.nonce) {
    return failure(StatusCode::kNotFound,
                   fmt::format("{} is another version now", tree.ref.text()));
  }
  const VersionLayout& layout = entry.facts->layout;
  if (layout.layout_digest == tree.layout.layout_digest) return nullptr;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<const Manifest> manifest, open_manifest(layout));
  parts_.numbers.renew(tree, layout);
  return manifest;
}

}  // namespace millrace
