#include "app/config_file.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto entries = parse_config(text, "c.yaml");
  EXPECT_FALSE(entries.has_value()) << text;
  return entries ? "" : entries.error().message();
}

TEST(ConfigFile, ReadsNamesValuesAndLines) {
  const auto entries =
      parse_config("# comment\nstore: \"s3://b/p?x=1\"\n\ncache: /a b\n", "c.yaml");
  ASSERT_TRUE(entries.has_value()) << entries.error().to_string();
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].value, "s3://b/p?x=1");
  EXPECT_EQ((*entries)[0].line, 2);
  EXPECT_EQ((*entries)[1].value, "/a b");
  EXPECT_EQ((*entries)[1].line, 4);
}

TEST(ConfigFile, AnEmptyFileSetsNothing) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "{}"}) {
    const auto entries = parse_config(text, "c.yaml");
    ASSERT_TRUE(entries.has_value()) << '"' << text << "\": " << entries.error().to_string();
    EXPECT_TRUE(entries->empty());
  }
}

TEST(ConfigFile, RefusesWhatAFlatFileDoesNotNeed) {
  EXPECT_THAT(refusal("a: 1\na: 2\n"), AllOf(HasSubstr("c.yaml:2"), HasSubstr("line 1")));
  EXPECT_THAT(refusal("a: &x 1\n"), AllOf(HasSubstr("c.yaml:1"), HasSubstr("anchors")));
  EXPECT_THAT(refusal("a: *x\n"), HasSubstr("c.yaml:1"));
  EXPECT_THAT(refusal("a: !!binary aGk=\n"), HasSubstr("tags"));
  EXPECT_THAT(refusal("a:\n  b: 1\n"), HasSubstr("not a mapping"));
  EXPECT_THAT(refusal("a: [1]\n"), HasSubstr("not a list"));
  EXPECT_THAT(refusal("- a\n"), HasSubstr("'name: value'"));
  EXPECT_THAT(refusal("just text\n"), HasSubstr("'name: value'"));
  EXPECT_THAT(refusal("a:\n"), AllOf(HasSubstr(":1: "), HasSubstr("no value")));
  EXPECT_THAT(refusal("a: 1\n---\nb: 2\n"), HasSubstr("more than one document"));
  EXPECT_THAT(refusal("a: b: c\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(refusal(std::string_view("a: 1\n\0", 6)), HasSubstr("c.yaml:2: a NUL byte"));
  EXPECT_THAT(refusal(std::string(kConfigFileBytesMax + 1, ' ')), HasSubstr("1 MiB"));
}

TEST(ConfigFile, BombsEndAtOnce) {
  EXPECT_THAT(refusal("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n"), HasSubstr("c.yaml:1"));
  EXPECT_FALSE(parse_config(std::string(500'000, '['), "c.yaml").has_value());
  EXPECT_FALSE(parse_config(std::string(500'000, '{'), "c.yaml").has_value());
  EXPECT_FALSE(parse_config("a: " + std::string(500'000, '['), "c.yaml").has_value());
}

TEST(ConfigFile, AnyBytesEndInEntriesOrARefusal) {
  std::mt19937 random(20260102);  // NOLINT: a fixed seed, so that a failure repeats.
  const std::string alphabet = "ab:-&*!{}[]'\"#|>%@ \n\t,?\\\x80\xff";
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    const auto length = random() % 40;
    for (std::size_t i = 0; i < length; ++i)
      text += alphabet[random() % alphabet.size()];
    const auto entries = parse_config(text, "c.yaml");
    if (!entries) {
      ASSERT_THAT(entries.error().message(), HasSubstr("c.yaml:"));
    }
  }
}

}  // namespace
}  // namespace millrace
