#include "vfs/datasets_tree.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "base/log.h"

namespace millrace {
namespace {

constexpr std::uint16_t kListPermissions = 0555;
constexpr std::uint16_t kAliasPermissions = 0777;
constexpr std::size_t kDatasetsKept = 4096;
// Of Registry::resolve().
constexpr int kResolveRequestsMax = 4;

std::string path_below(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

std::string parent_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

NodeNumber number_of(const std::string& path) {
  return path.empty() ? datasets_node() : named_node(NamedNodes::kDatasets, path);
}

Status status_of(const Result<NodeAttributes>& result) {
  return result ? Status() : result.error();
}

Result<NodeAttributes> root_attributes(const RequestContext& context, VersionTree& tree) {
  MR_ASSIGN_OR_RETURN(NodeAttributes attributes, tree.attributes(context, tree.root()));
  // Its name may be removed; what is below it never changes.
  attributes.lifetime = NodeLifetime::kShort;
  return attributes;
}

std::unexpected<Status> no_such(std::string_view what) {
  return failure(StatusCode::kNotFound, fmt::format("there is no '{}' in the registry", what));
}

}  // namespace

DatasetsTree::DatasetsTree(const Registry& registry, VersionTrees& versions, Clock& clock,
                           RecentRefresh refresh)
    : registry_(registry),
      versions_(versions),
      started_(clock.wall_now()),
      patience_(refresh.patience),
      datasets_(clock, kAnswerLifetime, 1, refresh),
      names_(clock, kAnswerLifetime, kDatasetsKept, refresh) {
  nodes_.emplace(datasets_node(), Directory{""});
}

// ---- What the registry says

void DatasetsTree::ask_again() {
  datasets_.age_all();
  names_.age_all();
}

Result<std::vector<DatasetName>> DatasetsTree::datasets(const RequestContext& context,
                                                        RecentWait wait) {
  const auto ask = [this](const RequestContext& asking) { return registry_.datasets(asking); };
  return datasets_.get(context, "datasets", ask, std::nullopt, wait);
}

Result<DatasetsTree::Names> DatasetsTree::names(const RequestContext& context,
                                                const DatasetName& dataset, RecentWait wait) {
  const auto ask = [this, dataset](const RequestContext& asking) -> Result<Names> {
    Names names;
    MR_ASSIGN_OR_RETURN(const std::vector<VersionListing> listed,
                        registry_.versions(asking, dataset));
    for (const VersionListing& version : listed) {
      if (version.entry && version.entry->readable()) names.versions.push_back(*version.entry);
    }
    MR_ASSIGN_OR_RETURN(names.aliases, registry_.aliases().list(asking, dataset));
    return names;
  };
  return names_.get(context, dataset.text(), ask, std::nullopt, wait);
}

Result<std::optional<DatasetName>> DatasetsTree::dataset_at(const RequestContext& context,
                                                            const std::string& path,
                                                            RecentWait wait) {
  MR_ASSIGN_OR_RETURN(const std::vector<DatasetName> all, datasets(context, wait));
  const auto found = std::ranges::find(all, path, &DatasetName::text);
  if (found == all.end()) return std::nullopt;
  return *found;
}

Result<std::vector<std::string>> DatasetsTree::components(const RequestContext& context,
                                                          const std::string& path,
                                                          RecentWait wait) {
  MR_ASSIGN_OR_RETURN(const std::vector<DatasetName> all, datasets(context, wait));
  const std::string prefix = path.empty() ? "" : path + "/";
  std::set<std::string> found;
  for (const DatasetName& dataset : all) {
    if (!dataset.text().starts_with(prefix)) continue;
    const std::string rest = dataset.text().substr(prefix.size());
    found.insert(rest.substr(0, rest.find('/')));
  }
  return std::vector<std::string>(found.begin(), found.end());
}

// ---- Nodes

Result<NodeAttributes> DatasetsTree::add(Node node) {
  const auto path_of = [](const Node& any) -> const std::string& {
    return std::visit([](const auto& kind) -> const std::string& { return kind.path; }, any);
  };
  const NodeAttributes attributes = attributes_of(node);
  MutexLock lock(mutex_);
  const auto [known, is_new] = nodes_.try_emplace(attributes.number, node);
  if (!is_new && path_of(known->second) != path_of(node)) {
    return failure(StatusCode::kInternal, fmt::format("'{}' and '{}' have one node number",
                                                      path_of(known->second), path_of(node)));
  }
  known->second = std::move(node);
  return attributes;
}

NodeAttributes DatasetsTree::attributes_of(const Node& node) const {
  NodeAttributes attributes{.number = {},
                            .kind = NodeKind::kDirectory,
                            .permissions = kListPermissions,
                            .modified = started_,
                            .lifetime = NodeLifetime::kShort};
  if (const Alias* alias = std::get_if<Alias>(&node)) {
    attributes.number = number_of(alias->path);
    attributes.kind = NodeKind::kSymlink;
    attributes.permissions = kAliasPermissions;
    attributes.size = alias->target.size();
  } else {
    attributes.number = number_of(std::get<Directory>(node).path);
  }
  return attributes;
}

Result<DatasetsTree::Node> DatasetsTree::node(const RequestContext& context, NodeNumber number) {
  const auto known = [&]() -> std::optional<Node> {
    MutexLock lock(mutex_);
    const auto found = nodes_.find(number);
    return found == nodes_.end() ? std::nullopt : std::optional(found->second);
  };
  if (auto found = known()) return *std::move(found);
  // A client may know it from before a restart; most often from a version that was served then.
  MR_RETURN_IF_ERROR(add_served_directories());
  if (auto found = known()) return *std::move(found);
  MR_RETURN_IF_ERROR(find_all_nodes(context));
  if (auto found = known()) return *std::move(found);
  return failure(StatusCode::kNotFound, "there is no such node any more");
}

Status DatasetsTree::find_all_nodes(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(const std::vector<DatasetName> all, datasets(context));
  for (const DatasetName& dataset : all) {
    for (std::string path = dataset.text(); !path.empty(); path = parent_path(path))
      MR_RETURN_IF_ERROR(status_of(add(Directory{path})));
    MR_ASSIGN_OR_RETURN(const Names names, this->names(context, dataset));
    for (const AliasEntry& alias : names.aliases) {
      MR_RETURN_IF_ERROR(status_of(add(Alias{.path = path_below(dataset.text(), alias.alias.text()),
                                             .target = alias.target->text()})));
    }
  }
  return {};
}

Status DatasetsTree::add_served_directories() {
  for (const NumberedTree& tree : versions_.known()) {
    for (std::string path = tree.ref.dataset.text(); !path.empty(); path = parent_path(path))
      MR_RETURN_IF_ERROR(status_of(add(Directory{path})));
  }
  return {};
}

Result<std::string> DatasetsTree::directory_path(const RequestContext& context,
                                                 NodeNumber directory) {
  MR_ASSIGN_OR_RETURN(const Node found, node(context, directory));
  if (const Directory* list = std::get_if<Directory>(&found)) return list->path;
  return failure(StatusCode::kInvalidArgument, "only a directory has entries");
}

Result<NodeAttributes> DatasetsTree::version_root(const RequestContext& context,
                                                  const VersionEntry& entry) {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<VersionTree> tree, versions_.of(context, entry));
  return root_attributes(context, *tree);
}

Result<std::shared_ptr<VersionTree>> DatasetsTree::version(const RequestContext& context,
                                                           const VersionRef& ref) {
  std::optional<NumberedTree> served =
      versions_.known_below(path_below(ref.dataset.text(), ref.version.text()));
  if (served && served->ref != ref) served.reset();
  // What can be had without the store is not waited for as long as the request may. By the
  // machine's clock, as the store has it.
  const RequestContext asking =
      served ? context.with_deadline(system_clock().now() + kResolveRequestsMax * patience_)
             : context;
  const Result<VersionEntry> entry = registry_.resolve(asking, ref);
  if (entry) return versions_.of(context, *entry);
  if (!served || !is_unanswered(entry.error())) return failure(entry.error());
  log_warn("the store cannot be asked for a version; going on with what was served before",
           {{"version", ref.text()}, {"error", entry.error().to_string()}});
  return versions_.find(context, served->number);
}

Status DatasetsTree::find_version(const RequestContext& context, TreeNumber number,
                                  std::uint32_t check) {
  const auto fits = [&](const std::string& nonce) {
    if (tree_check_of(nonce) != check) return false;
    for (std::uint32_t attempt = 0; attempt < kTreeNumberAttempts; ++attempt) {
      if (derived_tree_number(nonce, attempt) == number) return true;
    }
    return false;
  };
  MR_ASSIGN_OR_RETURN(const std::vector<DatasetName> all, datasets(context));
  for (const DatasetName& dataset : all) {
    MR_ASSIGN_OR_RETURN(const Names names, this->names(context, dataset));
    for (const VersionEntry& version : names.versions) {
      if (!fits(version.facts->reservation)) continue;
      MR_ASSIGN_OR_RETURN(const std::shared_ptr<VersionTree> tree, versions_.of(context, version));
      if (tree_of(tree->root()) == number) return {};
    }
  }
  return {StatusCode::kNotFound, "no version of the registry has this node"};
}

// ---- The tree

Result<NodeAttributes> DatasetsTree::attributes(const RequestContext& context, NodeNumber number) {
  MR_ASSIGN_OR_RETURN(const Node found, node(context, number));
  return attributes_of(found);
}

Result<NodeAttributes> DatasetsTree::lookup(const RequestContext& context, NodeNumber directory,
                                            std::string_view name) {
  MR_ASSIGN_OR_RETURN(const std::string path, directory_path(context, directory));
  const std::string child = path_below(path, name);
  const std::optional<NumberedTree> served = versions_.known_below(child);
  Result<NodeAttributes> found =
      lookup_listed(context, path, name, served ? RecentWait::kBriefly : RecentWait::kForAnswer);
  if (found || !served || !is_unanswered(found.error())) return found;
  if (child != path_below(served->ref.dataset.text(), served->ref.version.text())) {
    return add(Directory{child});
  }
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<VersionTree> tree,
                      versions_.find(context, served->number));
  return root_attributes(context, *tree);
}

Result<NodeAttributes> DatasetsTree::lookup_listed(const RequestContext& context,
                                                   const std::string& path, std::string_view name,
                                                   RecentWait wait) {
  MR_ASSIGN_OR_RETURN(const std::optional<DatasetName> dataset, dataset_at(context, path, wait));
  if (!dataset) {
    MR_ASSIGN_OR_RETURN(const std::vector<std::string> known, components(context, path, wait));
    if (std::ranges::find(known, name) == known.end()) return no_such(path_below(path, name));
    return add(Directory{path_below(path, name)});
  }
  MR_ASSIGN_OR_RETURN(const Names names, this->names(context, *dataset, wait));
  for (const VersionEntry& version : names.versions) {
    if (version.ref.version.text() == name) return version_root(context, version);
  }
  for (const AliasEntry& alias : names.aliases) {
    if (alias.alias.text() != name) continue;
    return add(Alias{.path = path_below(path, name), .target = alias.target->text()});
  }
  return no_such(fmt::format("{}@{}", dataset->text(), name));
}

Result<NodeNumber> DatasetsTree::parent(const RequestContext& context, NodeNumber number) {
  if (number == datasets_node()) return root_node();
  MR_ASSIGN_OR_RETURN(const Node found, node(context, number));
  return std::visit([](const auto& kind) { return number_of(parent_path(kind.path)); }, found);
}

Result<std::map<std::uint64_t, DatasetsTree::Child>> DatasetsTree::children(
    const RequestContext& context, const std::string& path) {
  // Names come and go: what follows a cookie must not depend on which are there.
  std::map<std::uint64_t, Child> children;
  const auto add_child = [&](const std::string& name, std::variant<Node, VersionEntry> what) {
    children.emplace(hash_of(number_of(path_below(path, name))), Child{name, std::move(what)});
  };
  MR_ASSIGN_OR_RETURN(const std::optional<DatasetName> dataset, dataset_at(context, path));
  if (!dataset) {
    MR_ASSIGN_OR_RETURN(const std::vector<std::string> names, components(context, path));
    for (const std::string& name : names)
      add_child(name, Node(Directory{path_below(path, name)}));
    return children;
  }
  MR_ASSIGN_OR_RETURN(const Names names, this->names(context, *dataset));
  for (const VersionEntry& version : names.versions)
    add_child(version.ref.version.text(), version);
  for (const AliasEntry& alias : names.aliases) {
    const std::string& name = alias.alias.text();
    add_child(name, Node(Alias{.path = path_below(path, name), .target = alias.target->text()}));
  }
  return children;
}

Result<NodeEntry> DatasetsTree::listed(const RequestContext& context, const Child& child) {
  NodeEntry entry;
  if (const Node* node = std::get_if<Node>(&child.what)) {
    MR_ASSIGN_OR_RETURN(entry.attributes, add(*node));
    return entry;
  }
  MR_ASSIGN_OR_RETURN(const TreeNumber number,
                      versions_.number_of(std::get<VersionEntry>(child.what)));
  if (const std::shared_ptr<VersionTree> tree = versions_.opened(number)) {
    // What was opened may still have to be fetched.
    const AtHandOnly at_hand(AtHandOnly::Reach::kDisk);
    const Result<NodeAttributes> root = root_attributes(context, *tree);
    if (root) {
      entry.attributes = *root;
      return entry;
    }
  }
  entry.attributes = {.number = version_node(number, Manifest::root()),
                      .kind = NodeKind::kDirectory,
                      .permissions = kListPermissions,
                      .modified = started_,
                      .lifetime = NodeLifetime::kShort};
  entry.has_attributes = false;
  return entry;
}

Status DatasetsTree::read_directory(const RequestContext& context, NodeNumber directory,
                                    std::uint64_t cookie, const Visitor& visitor) {
  MR_ASSIGN_OR_RETURN(const std::string path, directory_path(context, directory));
  MR_ASSIGN_OR_RETURN(const auto children, this->children(context, path));
  for (auto it = children.upper_bound(cookie); it != children.end(); ++it) {
    Result<NodeEntry> entry = listed(context, it->second);
    if (!entry && entry.error() == StatusCode::kNotFound) continue;
    if (!entry) return entry.error();
    entry->name = it->second.name;
    entry->cookie = it->first;
    if (!visitor(*entry)) break;
  }
  return {};
}

Result<std::string> DatasetsTree::read_link(const RequestContext& context, NodeNumber symlink) {
  MR_ASSIGN_OR_RETURN(const Node found, node(context, symlink));
  const Alias* alias = std::get_if<Alias>(&found);
  if (alias == nullptr) return failure(StatusCode::kInvalidArgument, "this is no symlink");
  // It may have moved since it was looked up.
  MR_ASSIGN_OR_RETURN(const NodeAttributes now,
                      lookup(context, number_of(parent_path(alias->path)),
                             alias->path.substr(alias->path.rfind('/') + 1)));
  MR_ASSIGN_OR_RETURN(const Node moved, node(context, now.number));
  alias = std::get_if<Alias>(&moved);
  if (alias == nullptr) return failure(StatusCode::kNotFound, "the alias is gone");
  return alias->target;
}

Result<std::shared_ptr<OpenFile>> DatasetsTree::open(const RequestContext& /*context*/,
                                                     NodeNumber /*file*/) {
  return failure(StatusCode::kInvalidArgument, "only a file can be opened");
}

Result<std::vector<NodeFact>> DatasetsTree::facts(const RequestContext& /*context*/,
                                                  NodeNumber /*node*/) {
  return std::vector<NodeFact>();
}

Result<TreeUsage> DatasetsTree::usage(const RequestContext& /*context*/, NodeNumber /*node*/) {
  return TreeUsage();
}

}  // namespace millrace
