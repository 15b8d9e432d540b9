#include "dataset/dataset_name.h"

#include <gtest/gtest.h>

#include "dataset/version_ref.h"

namespace millrace {

namespace {

std::string name_error(std::string_view text) {
  const auto name = DatasetName::parse(text);
  if (name) return "accepted";
  EXPECT_EQ(name.error().code(), StatusCode::kInvalidArgument);
  return name.error().message();
}

std::string ref_error(std::string_view text) {
  const auto ref = VersionRef::parse(text);
  if (ref) return "accepted";
  EXPECT_EQ(ref.error().code(), StatusCode::kInvalidArgument);
  return ref.error().message();
}

TEST(DatasetName, TakesWhatPeopleCallDatasets) {
  for (const char* text : {"imagenet", "ms-coco", "internal/user-logs", "a/b/c/d/e/f/g/h",
                           "A.b_c-9", "...", ".hidden", "a/.millrace", "-", "2026-03-01"}) {
    const auto name = DatasetName::parse(text);
    ASSERT_TRUE(name.has_value()) << name.error().to_string();
    EXPECT_EQ(name->text(), text);
    EXPECT_EQ(DatasetName::from_key_component(name->key_component()).value(), *name);
    EXPECT_EQ(name->key_component().find('/'), std::string::npos);
  }
}

TEST(DatasetName, SaysWhichRuleIsBroken) {
  EXPECT_NE(name_error("").find("nothing before, after or between"), std::string::npos);
  EXPECT_NE(name_error("/a").find("nothing before"), std::string::npos);
  EXPECT_NE(name_error("a/").find("nothing before"), std::string::npos);
  EXPECT_NE(name_error("a//b").find("nothing before"), std::string::npos);
  EXPECT_NE(name_error("a/./b").find("mean directories"), std::string::npos);
  EXPECT_NE(name_error("..").find("mean directories"), std::string::npos);
  EXPECT_NE(name_error("a b").find("use letters, digits"), std::string::npos);
  EXPECT_NE(name_error("a,b").find("not ','"), std::string::npos);
  EXPECT_NE(name_error("a\x1b[2J").find("not '?'"), std::string::npos);
  EXPECT_NE(name_error("\xC3\xA4").find("use letters"), std::string::npos);
  EXPECT_NE(name_error("a/b/c/d/e/f/g/h/i").find("at most 8 components"), std::string::npos);
  EXPECT_NE(name_error(std::string(129, 'a')).find("at most 128"), std::string::npos);
  EXPECT_NE(name_error(".millrace").find("registry itself"), std::string::npos);
  EXPECT_NE(name_error(".millrace/datasets").find("registry itself"), std::string::npos);
  EXPECT_EQ(name_error(std::string(128, 'a')), "accepted");
  const std::string two = std::string(127, 'a') + "/" + std::string(127, 'b');
  EXPECT_EQ(name_error(two), "accepted");
  EXPECT_NE(name_error(two + "c").find("at most 255"), std::string::npos);
}

TEST(DatasetName, PrefixesAreByComponent) {
  std::vector<std::string> texts;
  for (const DatasetName& prefix : DatasetName::parse("a/bc/d").value().proper_prefixes())
    texts.push_back(prefix.text());
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "a/bc"}));
  EXPECT_TRUE(DatasetName::parse("abc").value().proper_prefixes().empty());
}

TEST(DatasetName, KeyComponentsOfOthersAreRefused) {
  EXPECT_FALSE(DatasetName::from_key_component("a/b"));
  EXPECT_FALSE(DatasetName::from_key_component("a,,b"));
  EXPECT_FALSE(DatasetName::from_key_component(",a"));
  EXPECT_EQ(DatasetName::from_key_component("a,b").value().text(), "a/b");
}

TEST(VersionRef, SaysWhatToWrite) {
  EXPECT_EQ(VersionRef::parse("a/b@v1").value().text(), "a/b@v1");
  EXPECT_EQ(ref_error("imagenet"), "'imagenet' names no version: write imagenet@VERSION");
  EXPECT_EQ(ref_error("imagenet@"), "'imagenet' names no version: write imagenet@VERSION");
  EXPECT_NE(ref_error("@v1").find("no name of a dataset"), std::string::npos);
  EXPECT_NE(ref_error("a@b@c").find("'b@c' is no name of a version"), std::string::npos);
  EXPECT_NE(ref_error("a@v/1").find("no name of a version"), std::string::npos);
  EXPECT_NE(ref_error("a@..").find("mean directories"), std::string::npos);
  EXPECT_NE(ref_error("a@" + std::string(129, 'v')).find("at most 128"), std::string::npos);
}

TEST(AliasName, IsOneComponent) {
  EXPECT_TRUE(AliasName::parse("current"));
  const auto bad = AliasName::parse("a/b");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message().find("use letters, digits"), std::string::npos);
}

}  // namespace

}  // namespace millrace
