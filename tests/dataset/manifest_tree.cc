#include "tests/dataset/manifest_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cache/unit.h"
#include "dataset/manifest_cursor.h"

namespace millrace {
namespace {

using TreeRandom = std::mt19937_64;

std::string odd_name(TreeRandom& random) {
  switch (random() % 8) {
    case 0:
      return std::string(random() % 255 + 1, 'x');
    case 1: {
      std::string name;
      for (std::size_t i = random() % 20 + 1; i > 0; --i) {
        const char c = static_cast<char>(random() % 255 + 1);
        name += c == '/' ? '.' : c;
      }
      return name == "." || name == ".." ? "..." : name;
    }
    case 2:
      return std::string(1, "!-.0"[random() % 4]) + "a";
    default:
      return fmt::format("n{:05}.jpg", random() % 3000);
  }
}

ContentHash odd_hash(TreeRandom& random) {
  Sha256Digest digest = sha256(as_bytes(std::to_string(random())));
  if (random() % 2 == 0) return ContentHash::of_content(digest);
  return ContentHash::of_identity(ObjectIdentity(fmt::format("odd-{}", random())));
}

ContentHash usual_etag(TreeRandom& random) {
  const std::string hex = fmt::format("{:016x}{:016x}", random(), random());
  switch (random() % 3) {
    case 0:
      return ContentHash::of_identity(ObjectIdentity(hex));
    case 1:
      return ContentHash::of_identity(ObjectIdentity('"' + hex + '"'));
    default:
      return ContentHash::of_identity(
          ObjectIdentity(fmt::format("\"{}-{}\"", hex, random() % 10000 + 1)));
  }
}

Extent odd_extent(TreeRandom& random, const ManifestTree& tree) {
  const auto object = static_cast<std::uint32_t>(random() % tree.objects.size());
  const std::uint64_t size = tree.objects[object].size;
  const std::uint64_t offset = random() % size;
  const std::uint64_t bytes = random() % (size - offset) + 1;
  return {.object = object,
          .codec = ExtentCodec::kNone,
          .offset = offset,
          .stored_bytes = bytes,
          .logical_bytes = bytes};
}

void fill_file(TreeRandom& random, const ManifestTree& tree, NewEntry& entry) {
  switch (random() % 5) {
    case 0:
      entry.hash = ContentHash::of_content(sha256({}));
      return;
    case 1:
      entry.size = random() % 1'000'000 + 1;
      entry.hash = usual_etag(random);
      entry.extents = {{.object = kOwnObject,
                        .codec = ExtentCodec::kNone,
                        .offset = 0,
                        .stored_bytes = entry.size,
                        .logical_bytes = entry.size}};
      return;
    case 2:
      for (std::uint64_t i = random() % 9 + 2; i > 0; --i)
        entry.extents.push_back(odd_extent(random, tree));
      break;
    default:
      entry.extents.push_back(odd_extent(random, tree));
      break;
  }
  for (const Extent& extent : entry.extents)
    entry.size += extent.logical_bytes;
  entry.hash = odd_hash(random);
}

void add_random_objects(TreeRandom& random, ManifestTree& tree) {
  for (int i = 0; i < 20; ++i) {
    ManifestTree::Object object{.key = fmt::format("packs/{}.tar", i),
                                .identity = fmt::format("\"id{}\"", random()),
                                .size = random() % (3 * kUnitBytes) + 1,
                                .foreign = random() % 2 == 0,
                                .checksums = {}};
    if (object.foreign && random() % 2 == 0) {
      object.store = fmt::format("s3://bucket{}?endpoint=http://host", random() % 3);
    }
    if (!object.foreign) {
      for (std::uint32_t unit = 0; unit < unit_count(object.size); ++unit)
        object.checksums.push_back(static_cast<std::uint32_t>(random()));
    }
    tree.objects.push_back(std::move(object));
  }
}

void expect_content(const Manifest& manifest, const ManifestTree& tree, const NewEntry& wanted,
                    const ManifestEntry& entry) {
  const auto extents = manifest.extents(entry);
  ASSERT_TRUE(extents) << extents.error().to_string();
  EXPECT_EQ(*extents, wanted.extents);
  for (const Extent& extent : *extents) {
    const auto object = manifest.object_of(entry, extent);
    ASSERT_TRUE(object) << object.error().to_string();
    if (extent.object == kOwnObject) {
      EXPECT_EQ(object->key.value(), tree.prefix + wanted.path);
      EXPECT_EQ(object->identity, wanted.hash.identity());
      EXPECT_EQ(object->size, wanted.size);
      EXPECT_TRUE(object->foreign);
      EXPECT_EQ(object->store, tree.prefix_store);
      continue;
    }
    const ManifestTree::Object& model = tree.objects[extent.object];
    EXPECT_EQ(object->key.value(), model.key);
    EXPECT_EQ(object->identity.value(), model.identity);
    EXPECT_EQ(object->size, model.size);
    EXPECT_EQ(object->foreign, model.foreign);
    EXPECT_EQ(object->store, model.store);
    EXPECT_EQ(object->checksums ? *object->checksums : UnitChecksums{}, model.checksums);
  }
}

void expect_found(const Manifest& manifest, const ManifestTree& tree, const NewEntry& wanted,
                  EntryIndex index) {
  const auto entry = manifest.entry(index);
  ASSERT_TRUE(entry) << entry.error().to_string();
  EXPECT_EQ(entry->kind(), wanted.kind);
  EXPECT_EQ(entry->mode(), wanted.mode);
  EXPECT_EQ(entry->mtime_ns(), wanted.mtime_ns);
  EXPECT_EQ(entry->hash(), wanted.hash);
  EXPECT_EQ(manifest.path_of(index).value_or("failed"), wanted.path);
  EXPECT_EQ(manifest.name(*entry).value_or("failed"), entry_base(wanted.path));
  if (wanted.kind == EntryKind::kSymlink) {
    EXPECT_EQ(manifest.symlink_target(*entry).value_or("failed"), wanted.symlink_target);
    EXPECT_EQ(entry->size(), wanted.symlink_target.size());
  } else {
    EXPECT_EQ(entry->size(), wanted.size);
    EXPECT_FALSE(manifest.symlink_target(*entry));
  }
  EXPECT_EQ(manifest.find(index, "no such name").value_or(index), std::nullopt);
  expect_content(manifest, tree, wanted, *entry);
}

}  // namespace

ManifestFolder::ManifestFolder() {
  std::string pattern = ::testing::TempDir() + "/manifest-XXXXXX";
  path_ = ::mkdtemp(pattern.data());
}

ManifestFolder::~ManifestFolder() { std::filesystem::remove_all(path_); }

std::vector<std::string> ManifestFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::string read_bytes(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void ManifestTree::add_directories(const std::string& path) {
  if (!entries.contains(path)) {
    entries[path] = {.path = path, .kind = EntryKind::kDirectory, .mode = 0755};
  }
  if (!path.empty()) add_directories(std::string(entry_parent(path)));
}

void ManifestTree::add(NewEntry entry) {
  add_directories(std::string(entry_parent(entry.path)));
  entries.insert_or_assign(entry.path, entry);
}

ManifestTree random_tree(std::uint64_t seed, std::size_t entries) {
  TreeRandom random(seed);
  ManifestTree tree;
  tree.prefix = random() % 2 == 0 ? "" : "some/prefix/";
  tree.prefix_store = random() % 2 == 0 ? "" : "s3://bucket1?endpoint=http://host";
  add_random_objects(random, tree);
  std::vector<std::string> directories = {""};
  tree.add_directories("");
  while (tree.entries.size() < entries) {
    // Favours the last ones, so that the tree grows deep too.
    const std::size_t pick =
        random() % 3 == 0 ? directories.size() - 1 : random() % directories.size();
    const std::string parent = directories[pick];
    const std::string name = odd_name(random);
    NewEntry entry{.path = parent.empty() ? name : parent + "/" + name};
    if (entry.path.size() > 900 || tree.entries.contains(entry.path)) continue;
    if (random() % 4 != 0) entry.mode = static_cast<std::uint16_t>(random() % 010000);
    entry.mtime_ns = static_cast<std::int64_t>(random());
    if (const std::uint64_t kind = random() % 10; kind < 2) {
      entry.kind = EntryKind::kDirectory;
      directories.push_back(entry.path);
    } else if (kind < 3) {
      entry.kind = EntryKind::kSymlink;
      entry.symlink_target = std::string(random() % 300 + 1, 't') + "/../\xff";
    } else {
      fill_file(random, tree, entry);
    }
    tree.add(std::move(entry));
  }
  return tree;
}

ManifestTree wide_tree(std::size_t files) {
  ManifestTree tree;
  tree.add_directories("d");
  tree.objects.push_back(
      {.key = "pack", .identity = "1", .size = files * 1000, .foreign = true, .checksums = {}});
  for (std::size_t i = 0; i < files; ++i) {
    tree.add({.path = fmt::format("d/n01440764_{:06}.JPEG", i),
              .mode = 0644,
              .size = 1000,
              .hash = ContentHash::of_content(sha256(as_bytes(std::to_string(i)))),
              .extents = {{.object = 0,
                           .codec = ExtentCodec::kNone,
                           .offset = i * 1000,
                           .stored_bytes = 1000,
                           .logical_bytes = 1000}}});
  }
  return tree;
}

Result<ManifestSummary> build_tree(const ManifestTree& tree, const std::string& path,
                                   std::uint64_t seed, TreeOrder order, std::size_t run_bytes) {
  const bool sorted = order == TreeOrder::kSorted;
  MR_ASSIGN_OR_RETURN(
      const auto builder,
      ManifestBuilder::create({.path = path,
                               .prefix = tree.prefix,
                               .prefix_store = tree.prefix_store,
                               .arrival = sorted ? EntryArrival::kSorted : EntryArrival::kAnyOrder,
                               .run_bytes = run_bytes}));
  for (const ManifestTree::Object& object : tree.objects) {
    MR_ASSIGN_OR_RETURN([[maybe_unused]] const std::uint32_t number,
                        builder->add_object({.key = ObjectKey(object.key),
                                             .identity = ObjectIdentity(object.identity),
                                             .size = object.size,
                                             .foreign = object.foreign,
                                             .store = object.store,
                                             .checksums = object.checksums}));
  }
  std::vector<const NewEntry*> entries;
  for (const auto& [unused, entry] : tree.entries)
    entries.push_back(&entry);
  if (sorted) {
    std::ranges::sort(entries, [](const NewEntry* a, const NewEntry* b) {
      return compare_entries(a->path, b->path) < 0;
    });
  } else {
    std::ranges::shuffle(entries, TreeRandom(seed));
  }
  for (const NewEntry* entry : entries)
    MR_RETURN_IF_ERROR(builder->add(*entry));
  return builder->finish();
}

void expect_entry(const Manifest& manifest, const ManifestTree& tree, const std::string& path) {
  SCOPED_TRACE(path);
  const auto index = manifest.resolve(path);
  ASSERT_TRUE(index) << index.error().to_string();
  ASSERT_TRUE(*index);
  expect_found(manifest, tree, tree.entries.at(path), **index);
}

void expect_tree(const Manifest& manifest, const ManifestTree& tree) {
  ASSERT_EQ(manifest.entries(), tree.entries.size());
  EXPECT_EQ(manifest.prefix(), tree.prefix);
  std::map<std::string, std::vector<std::string>> children;
  for (const auto& [path, entry] : tree.entries) {
    if (!path.empty()) children[std::string(entry_parent(path))].emplace_back(entry_base(path));
    expect_entry(manifest, tree, path);
    if (::testing::Test::HasFailure()) return;
  }
  ManifestCursor cursor(manifest);
  std::string last;
  for (EntryIndex index = 0; index < manifest.entries(); ++index) {
    const auto item = cursor.next();
    ASSERT_TRUE(item && *item);
    EXPECT_EQ((*item)->entry.index(), index);
    EXPECT_TRUE(index == 0 || compare_entries(last, (*item)->path) < 0);
    last = (*item)->path;
    ASSERT_TRUE(tree.entries.contains(last));
    std::vector<std::string>& wanted = children[last];
    std::ranges::sort(wanted);
    const auto range = manifest.children((*item)->entry);
    ASSERT_TRUE(range) << range.error().to_string();
    std::vector<std::string> names;
    ChildCursor child_cursor(manifest, *range);
    while (const auto child = child_cursor.next().value()) {
      EXPECT_EQ(child->entry.parent(), index);
      names.emplace_back(child->name);
    }
    EXPECT_EQ(names, wanted) << last;
  }
  EXPECT_FALSE(cursor.next().value());
}

}  // namespace millrace
