#include "dataset/entry_sorter.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dataset/entry_order.h"
#include "tests/dataset/manifest_tree.h"

namespace millrace {
namespace {

struct Sorted {
  std::vector<std::string> lines;  // "path kind payload", or "path implied".
  std::vector<std::string> reports;
  bool spilled = false;
};

struct Added {
  std::string path;
  EntryKind kind = EntryKind::kFile;
  std::string payload = {};
};

Sorted sort_all(const std::vector<Added>& entries, std::size_t run_bytes) {
  const ManifestFolder folder;
  Sorted sorted;
  EntrySorter sorter({.directory = folder.path(),
                      .run_bytes = run_bytes,
                      .report = [&sorted](std::string_view path, std::string_view why) {
                        sorted.reports.push_back(fmt::format("{}: {}", path, why));
                        return Status();
                      }});
  for (const Added& entry : entries)
    EXPECT_TRUE(sorter.add(entry.path, entry.kind, as_bytes(entry.payload)).ok());
  EXPECT_TRUE(sorter.seal().ok());
  while (const auto entry = sorter.next().value()) {
    sorted.lines.push_back(entry->implied
                               ? fmt::format("{} implied", entry->path)
                               : fmt::format("{} {} {}", entry->path, entry_kind_name(entry->kind),
                                             as_text(entry->payload)));
  }
  sorted.spilled = sorter.spilled();
  EXPECT_TRUE(folder.names().empty());
  return sorted;
}

constexpr std::size_t kRunSizes[] = {1, 100, 5000, 64 * kMiB};

TEST(EntryOrderTest, IsByDepthThenByNames) {
  const std::vector<std::string> order = {"",    "a",    "a!",  "b",      "\x80",  "a/b",   "a/b!",
                                          "a/c", "a!/a", "b/a", "\x80/a", "a/b/a", "a/b!/a"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < order.size(); ++j)
      EXPECT_EQ(compare_entries(order[i], order[j]), i <=> j) << order[i] << " " << order[j];
  }
}

TEST(EntryOrderTest, KnowsWhatCanBeAPath) {
  const std::string long_name(255, 'n');
  std::string long_path = long_name;
  while (long_path.size() + 1 + long_name.size() <= 4095)
    long_path += "/" + long_name;
  for (const std::string& path : {std::string(), std::string("a"), std::string("a/.../b"),
                                  std::string("\xff\x01\n"), long_name, long_path}) {
    EXPECT_EQ(entry_path_fault(path), std::nullopt) << path;
  }
  for (const std::string& path :
       {std::string("/"), std::string("/a"), std::string("a/"), std::string("a//b"),
        std::string("."), std::string("a/.."), std::string("a/./b"), std::string("a\0b", 3),
        long_name + "n", long_path + "/" + long_name}) {
    EXPECT_NE(entry_path_fault(path), std::nullopt) << path;
  }
}

TEST(EntrySorterTest, MakesParentsAndKeepsTheOrder) {
  for (const std::size_t run_bytes : kRunSizes) {
    SCOPED_TRACE(run_bytes);
    const Sorted sorted = sort_all({{"b/c/d", EntryKind::kFile, "1"},
                                    {"a", EntryKind::kSymlink, "2"},
                                    {"b", EntryKind::kDirectory, "3"},
                                    {"a!b", EntryKind::kFile, "4"}},
                                   run_bytes);
    EXPECT_EQ(sorted.lines,
              (std::vector<std::string>{" implied", "a symlink 2", "a!b file 4", "b directory 3",
                                        "b/c implied", "b/c/d file 1"}));
    EXPECT_TRUE(sorted.reports.empty());
  }
  EXPECT_EQ(sort_all({}, 1).lines, std::vector<std::string>{" implied"});
}

TEST(EntrySorterTest, ReportsWhatCannotBe) {
  for (const std::size_t run_bytes : kRunSizes) {
    SCOPED_TRACE(run_bytes);
    const Sorted sorted = sort_all({{"x", EntryKind::kFile, "first"},
                                    {"x", EntryKind::kFile, "second"},
                                    {"f", EntryKind::kFile, ""},
                                    {"f/g", EntryKind::kFile, ""},
                                    {"e", EntryKind::kSymlink, ""},
                                    {"e", EntryKind::kDirectory, ""},
                                    {"..", EntryKind::kFile, ""},
                                    {"h//i", EntryKind::kFile, ""},
                                    {"", EntryKind::kFile, ""}},
                                   run_bytes);
    EXPECT_EQ(sorted.lines, (std::vector<std::string>{" implied", "e directory ", "f implied",
                                                      "x file first", "f/g file "}));
    EXPECT_EQ(sorted.reports,
              (std::vector<std::string>{
                  "..: '..' in it is no name", "h//i: it has an empty name between slashes",
                  ": the root is a directory", "e: it is a directory and also a symlink",
                  "f: it is a directory and also a file", "x: it is there twice"}));
  }
}

TEST(EntrySorterTest, FailsWhenTheReportSaysSo) {
  const ManifestFolder folder;
  EntrySorter sorter({.directory = folder.path()});
  const Status bad = sorter.add("a/../b", EntryKind::kFile, {});
  EXPECT_TRUE(bad == StatusCode::kInvalidArgument);
  EXPECT_NE(bad.message().find("a/../b"), std::string::npos);
  ASSERT_TRUE(sorter.add("twice", EntryKind::kFile, {}).ok());
  ASSERT_TRUE(sorter.add("twice", EntryKind::kFile, {}).ok());
  ASSERT_TRUE(sorter.seal().ok());
  Result<std::optional<SortedEntry>> next = sorter.next();
  while (next && *next)
    next = sorter.next();
  ASSERT_FALSE(next);
  EXPECT_NE(next.error().message().find("'twice'"), std::string::npos);
}

TEST(EntrySorterTest, SpilledRunsGiveWhatMemoryGives) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<Added> entries;
    for (int i = 0; i < 2000; ++i) {
      std::string path = fmt::format("{}", random() % 9);
      for (std::uint64_t depth = random() % 5; depth > 0; --depth)
        path += fmt::format("{}{}", "/!0"[random() % 3], random() % 9);
      entries.push_back({std::move(path), static_cast<EntryKind>(random() % 3),
                         std::string(random() % 200, 'p') + std::to_string(i)});
    }
    const Sorted memory = sort_all(entries, 64 * kMiB);
    EXPECT_FALSE(memory.spilled);
    for (const std::size_t run_bytes : {std::size_t{1}, std::size_t{3000}, std::size_t{200'000}}) {
      const Sorted spilled = sort_all(entries, run_bytes);
      EXPECT_TRUE(spilled.spilled);
      EXPECT_EQ(spilled.lines, memory.lines);
      EXPECT_EQ(spilled.reports, memory.reports);
    }
  }
}

TEST(EntrySorterTest, RefusesAPayloadWithoutMeasure) {
  const ManifestFolder folder;
  EntrySorter sorter({.directory = folder.path()});
  const std::vector<std::byte> payload(EntrySorter::kPayloadBytesMax + 1);
  EXPECT_TRUE(sorter.add("a", EntryKind::kFile, payload) == StatusCode::kResourceExhausted);
}

TEST(EntrySorterTest, SaysWhenItCannotWrite) {
  EntrySorter sorter({.directory = "/no/such/directory", .run_bytes = 1});
  Status status;
  for (int i = 0; i < 2000 && status.ok(); ++i)
    status = sorter.add(fmt::format("{}", i), EntryKind::kFile, std::vector<std::byte>(1000));
  EXPECT_TRUE(status == StatusCode::kNotFound) << status.to_string();
}

}  // namespace
}  // namespace millrace
