#include "service/path_glob.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct GlobCase {
  std::string pattern;
  std::vector<std::string> matches;
  std::vector<std::string> others;
};

TEST(PathGlobTest, Matches) {
  const std::vector<GlobCase> cases = {
      {"a", {"a"}, {"b", "aa", "a/a", ""}},
      {"train/*.jpg", {"train/1.jpg", "train/.jpg"}, {"train/a/1.jpg", "1.jpg", "train/1.jpeg"}},
      {"**/*.jpg", {"1.jpg", "a/1.jpg", "a/b/1.jpg"}, {"1.png", "1.jpg/a"}},
      {"train/**/*.jpg",
       {"train/1.jpg", "train/a/b/1.jpg"},
       {"val/1.jpg", "train", "a/train/1.jpg"}},
      {"train/**", {"train/a", "train/a/b"}, {"train", "trains/a", "a/train/b"}},
      {"**", {"a", "a/b/c"}, {}},
      {"**/b/**/d", {"b/d", "a/b/c/d", "b/b/d", "a/b/c/b/x/d"}, {"a/d", "b", "d", "b/c"}},
      {"*", {"a", "\xff\xfe"}, {"a/b", ""}},
      {"a*b*c", {"abc", "aXbXbXc", "abbc"}, {"ab", "acb", "a/b/c"}},
      {"*a*a*a*a*b", {"aaaab"}, {std::string(200, 'a')}},
      {"?", {"a", "\xc3"}, {"", "ab", "\xc3\xa9", "/"}},
      {"[a-c]x", {"ax", "bx", "cx"}, {"dx", "x", "abx"}},
      {"[!a-c]", {"d", "-"}, {"a", "b"}},
      {"[^a]", {"b"}, {"a"}},
      {"[]]", {"]"}, {"["}},
      {"[a-]", {"a", "-"}, {"b"}},
      {"[\\]a]", {"]", "a"}, {"\\"}},
      {"\\*", {"*"}, {"a"}},
      {"a\\[b]", {"a[b]"}, {"ab"}},
      {"a**b", {"ab", "axxb"}, {"a/b"}},
      {"[\x01-\xff]", {"\xff", "a"}, {}},
  };
  for (const GlobCase& glob_case : cases) {
    const Result<PathGlob> glob = PathGlob::parse(glob_case.pattern);
    ASSERT_TRUE(glob) << glob_case.pattern << ": " << glob.error().message();
    EXPECT_EQ(glob->text(), glob_case.pattern);
    for (const std::string& path : glob_case.matches)
      EXPECT_TRUE(glob->matches(path)) << glob_case.pattern << " on " << path;
    for (const std::string& path : glob_case.others)
      EXPECT_FALSE(glob->matches(path)) << glob_case.pattern << " on " << path;
  }
}

TEST(PathGlobTest, RefusesWhatIsNone) {
  for (const std::string& pattern :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("[a"),
        std::string("[]"), std::string("[z-a]"), std::string("a\\"), std::string(5000, 'a')}) {
    const Result<PathGlob> glob = PathGlob::parse(pattern);
    ASSERT_FALSE(glob) << pattern;
    EXPECT_EQ(glob.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(glob.error().message().find("no pattern for paths"), std::string::npos);
  }
}

}  // namespace
}  // namespace millrace
