#include "dataset/sample_name.h"

#include <algorithm>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(SampleName, IsCutAtTheFirstDotOfTheName) {
  const auto base = [](std::string_view path) {
    const auto name = sample_name(path);
    return name ? std::string(name->base) + "|" + std::string(name->extension) : "none";
  };
  EXPECT_EQ(base("train/0001.jpg"), "train/0001|jpg");
  EXPECT_EQ(base("train/0001.seg.png"), "train/0001|seg.png");
  EXPECT_EQ(base("a.b/c.d"), "a.b/c|d");
  EXPECT_EQ(base("x.JPG"), "x|JPG");
  EXPECT_EQ(base("x."), "x|");
  EXPECT_EQ(base("x"), "none");
  EXPECT_EQ(base("a.b/c"), "none");
  EXPECT_EQ(base(".hidden"), "none");
  EXPECT_EQ(base("a/.hidden.txt"), "none");
  EXPECT_EQ(base(""), "none");
  EXPECT_EQ(sample_field(sample_name("a/b.Seg.PNG").value()), "seg.png");
}

// Against the regular expression of the library itself.
TEST(SampleName, AgreesWithWebDataset) {
  const std::regex rule("^((?:.*/|)[^.]+)[.]([^/]*)$");
  std::mt19937_64 random(11);
  for (int n = 0; n < 20'000; ++n) {
    std::string path(1 + random() % 8, 'a');
    for (char& c : path)
      c = "ab./"[random() % 4];
    // Names that a manifest cannot have are nobody's concern.
    if (path.starts_with('/') || path.ends_with('/') || path.find("//") != std::string::npos) {
      continue;
    }
    std::smatch match;
    // It lets "a/.x" be the field "x" of a sample "a/". Files with hidden names are no data to us.
    const bool matches = std::regex_match(path, match, rule) && !match[1].str().ends_with('/');
    const auto name = sample_name(path);
    ASSERT_EQ(name.has_value(), matches) << path;
    if (matches) {
      ASSERT_EQ(name->base, match[1].str()) << path;
      ASSERT_EQ(name->extension, match[2].str()) << path;
    }
  }
}

TEST(SampleCounter, CountsDistinctBases) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::set<std::pair<std::string, std::string>> files;
    for (int n = 0; n < 200; ++n) {
      std::string name(1 + random() % 4, 'a');
      for (char& c : name)
        c = "ab.-"[random() % 4];
      files.emplace(std::string(1, "de"[random() % 2]), name);
    }
    std::set<std::string> bases;
    SampleCounter counter;
    for (const auto& [directory, name] : files) {
      const std::string path = directory + "/" + name;
      counter.add(path);
      if (const auto sample = sample_name(path)) bases.emplace(sample->base);
    }
    EXPECT_EQ(counter.count(), bases.size());
  }
}

}  // namespace
}  // namespace millrace
