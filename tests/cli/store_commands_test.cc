#include <filesystem>

#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

using StoreCommands = MillraceTest;

TEST_F(StoreCommands, WithNothingConfiguredTheEmbeddedStoreWorks) {
  write("hello.txt", "hello\n");
  EXPECT_EQ(millrace({"store", "ls"}).exit_code, 0);
  const Outcome copied = millrace({"store", "cp", "hello.txt", "store:"});
  EXPECT_EQ(copied.exit_code, 0) << copied.err;
  EXPECT_EQ(copied.out, "");
  EXPECT_THAT(copied.err, HasSubstr("copied 1 object, 6 B"));
  EXPECT_EQ(millrace({"store", "ls"}).out, "hello.txt\n");
  EXPECT_EQ(millrace({"store", "cat", "hello.txt"}).out, "hello\n");
  EXPECT_EQ(read("home/.local/share/millrace/store/hello.txt"), "hello\n");
}

TEST_F(StoreCommands, LsFoldsDirectoriesAndTellsThemFromNothing) {
  for (const char* name : {"a.txt", "d/1", "d/2", "d/e/3"})
    write(std::string("s/") + name, "x");
  EXPECT_EQ(millrace({"store", "ls", "./s"}).out, "a.txt\nd/\n");
  EXPECT_EQ(millrace({"--store", "./s", "store", "ls", "d"}).out, "d/1\nd/2\nd/e/\n");
  EXPECT_EQ(millrace({"--store", "./s", "store", "ls", "-r"}).out, "a.txt\nd/1\nd/2\nd/e/3\n");
  EXPECT_THAT(millrace({"store", "ls", "-l", "./s"}).out, HasSubstr("1 B  20"));
  const Outcome none = millrace({"--store", "./s", "store", "ls", "nope"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("nothing at or below"));
  EXPECT_EQ(millrace({"store", "ls", "./none/"}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(path("none"))) << "reading must not make directories";
}

TEST_F(StoreCommands, ATreeIsNotCopiedIntoItself) {
  write("s/d/a", "x");
  for (const std::string target : {"store:d", "store:d/sub"}) {
    const Outcome refused = millrace({"--store", "./s", "store", "cp", "-r", "store:d", target});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("is inside"));
  }
  EXPECT_EQ(millrace({"--store", "./s", "store", "cp", "-r", "store:d", "store:d2"}).exit_code, 0);
}

TEST_F(StoreCommands, AFileWhoseNameIsNotUtf8IsNamed) {
  write("t/bad\xff", "x");
  const Outcome refused = millrace({"store", "cp", "-r", "t", "store:t"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("t/bad"), HasSubstr("rename it")));
}

TEST_F(StoreCommands, StatShowsAnObject) {
  write("s/a", "abc");
  const Outcome text = millrace({"--store", "./s", "store", "stat", "a"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("size:     3 B (3 bytes)"), HasSubstr("identity: ")));
  const auto json = millrace({"--store", "./s", "store", "stat", "a", "--json"}).json();
  EXPECT_EQ(json["size"], 3);
  EXPECT_EQ(json["key"], "a");
  EXPECT_TRUE(json["metadata"].is_object());
  EXPECT_EQ(millrace({"--store", "./s", "store", "stat", "b"}).exit_code, 3);
}

TEST_F(StoreCommands, CatStreamsPartsInOrder) {
  const std::string big = pattern(20'000'001);
  write("s/big", big);
  EXPECT_TRUE(millrace({"--store", "./s", "store", "cat", "big"}).out == big);
  const std::vector<std::string> cat = {"--store", "./s", "store", "cat", "big"};
  const auto part = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), cat.begin(), cat.end());
    return millrace(flags);
  };
  EXPECT_EQ(part({"--range", "10-19"}).out, big.substr(10, 10));
  EXPECT_EQ(part({"--range", "20000000-"}).out, big.substr(20'000'000));
  EXPECT_EQ(part({"--offset", "8MiB", "--length", "3"}).out, big.substr(8 << 20, 3));
  EXPECT_EQ(part({"--range", "5-1"}).exit_code, 2);
  EXPECT_EQ(part({"--range", "x"}).exit_code, 2);
  EXPECT_EQ(part({"--offset", "1GiB"}).exit_code, 2);
}

TEST_F(StoreCommands, CpMovesBytesEveryWay) {
  const std::string big = pattern(40'000'003);
  write("big", big);
  EXPECT_EQ(millrace({"store", "cp", "big", "store:x/big"}).exit_code, 0);
  EXPECT_EQ(millrace({"store", "cp", "store:x/big", "store:y/"}).exit_code, 0);
  EXPECT_EQ(millrace({"store", "cp", "store:y/big", "back"}).exit_code, 0);
  EXPECT_TRUE(read("back") == big);
  EXPECT_EQ(millrace({"store", "cp", "store:y/big", "file://" + path("other/z")}).exit_code, 0);
  EXPECT_TRUE(read("other/z") == big);
  EXPECT_EQ(millrace({"store", "cp", "-", "store:in"}, big).exit_code, 0);
  EXPECT_TRUE(millrace({"store", "cp", "store:in", "-"}).out == big);
  EXPECT_EQ(millrace({"store", "cp", "-", "store:empty"}, "").exit_code, 0);
  EXPECT_EQ(millrace({"store", "stat", "empty", "--json"}).json()["size"], 0);
}

TEST_F(StoreCommands, CpRefusesWhatItCannotMean) {
  write("a", "1");
  write("d/f", "2");
  EXPECT_THAT(millrace({"store", "cp", "a", "b"}).err, HasSubstr("store:b"));
  EXPECT_THAT(millrace({"store", "cp", "d", "store:"}).err, HasSubstr("add -r"));
  EXPECT_THAT(millrace({"store", "cp", "-", "store:"}, "x").err, HasSubstr("has no name"));
  EXPECT_EQ(millrace({"store", "cp", "missing", "store:"}).exit_code, 3);
  EXPECT_EQ(millrace({"store", "cp", "store:missing", "here"}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(path("here")));
}

TEST_F(StoreCommands, NoClobberKeepsWhatIsThere) {
  write("a", "old");
  ASSERT_EQ(millrace({"store", "cp", "a", "store:a"}).exit_code, 0);
  write("a", "new");
  const Outcome refused = millrace({"store", "cp", "--no-clobber", "a", "store:a"});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_THAT(refused.err, HasSubstr("exists already"));
  EXPECT_EQ(millrace({"store", "cat", "a"}).out, "old");
  EXPECT_EQ(millrace({"store", "cp", "-n", "store:a", "a"}).exit_code, 6);
  EXPECT_EQ(read("a"), "new");
}

TEST_F(StoreCommands, CpCopiesTrees) {
  for (int i = 0; i < 60; ++i)
    write("tree/" + std::to_string(i % 7) + "/f" + std::to_string(i), "x");
  const auto up = millrace({"--json", "store", "cp", "-r", "tree", "store:t"}).json();
  EXPECT_EQ(up["objects"], 60);
  EXPECT_EQ(up["bytes"], 60);
  EXPECT_EQ(millrace({"store", "cp", "-r", "store:t", "back"}).exit_code, 0);
  EXPECT_EQ(bash("diff -r tree back").exit_code, 0);
  const auto again = millrace({"--json", "store", "cp", "-r", "-n", "tree", "store:t"}).json();
  EXPECT_EQ(again["skipped"], 60);
  EXPECT_EQ(millrace({"store", "cp", "-r", "store:none", "x"}).exit_code, 3);
  EXPECT_EQ(millrace({"store", "cp", "-r", "none", "store:"}).exit_code, 3);
}

TEST_F(StoreCommands, RmRemovesAndRefuses) {
  for (const char* name : {"a", "d/1", "d/2"})
    write(std::string("s/") + name, "x");
  variables_["MILLRACE_STORE"] = "./s";
  EXPECT_EQ(millrace({"store", "rm", "nope"}).exit_code, 3);
  EXPECT_THAT(millrace({"store", "rm", "d"}).err, HasSubstr("add -r"));
  EXPECT_EQ(millrace({"store", "rm", "-r", "d"}).exit_code, 0);
  EXPECT_EQ(millrace({"store", "rm", "-r", "d"}).exit_code, 3);
  const Outcome all = millrace({"store", "rm", "-r", "store:"});
  EXPECT_EQ(all.exit_code, 2);
  EXPECT_THAT(all.err, HasSubstr("--yes"));
  EXPECT_EQ(millrace({"store", "ls"}).out, "a\n");
  EXPECT_EQ(millrace({"store", "rm", "-r", "--yes", "store:", "--json"}).json()["removed"], 1);
}

TEST_F(StoreCommands, RmAsksOnATerminal) {
  write("s/a", "x");
  const Outcome no = on_terminal({"--store", "./s", "store", "rm", "a"}, "n\n");
  EXPECT_THAT(no.out, HasSubstr("[y/N]"));
  EXPECT_NE(no.exit_code, 0);
  EXPECT_EQ(read("s/a"), "x");
  EXPECT_EQ(on_terminal({"--store", "./s", "store", "rm", "a"}, "y\n").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("s/a")));
}

TEST_F(StoreCommands, BenchMeasuresAndCleansUp) {
  const Outcome bench = millrace({"store", "bench", "--size", "64KiB", "--count", "4",
                                  "--small-count", "8", "-j", "2", "--json"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_EQ(std::count(bench.out.begin(), bench.out.end(), '\n'), 4);
  const auto first = nlohmann::json::parse(bench.out.substr(0, bench.out.find('\n')));
  EXPECT_EQ(first["phase"], "put");
  EXPECT_GT(first["bytes_per_second"], 0);
  EXPECT_GE(first["latency_p99_ms"], first["latency_p50_ms"]);
  EXPECT_EQ(millrace({"store", "ls", "-r"}).out, "");
  const Outcome text =
      millrace({"store", "bench", "--count", "1", "--small-count", "1", "--size", "1KiB"});
  EXPECT_THAT(text.err, AllOf(HasSubstr("2 objects"), HasSubstr("requests")));
}

TEST_F(StoreCommands, ProgressIsForTerminalsOnly) {
  const std::string big = pattern(30'000'000);
  write("big", big);
  EXPECT_THAT(millrace({"store", "cp", "big", "store:"}).err, Not(HasSubstr("\r")));
  EXPECT_THAT(on_terminal({"store", "cp", "big", "store:"}).out,
              AllOf(HasSubstr("\rcopying"), HasSubstr("%")));
  EXPECT_THAT(on_terminal({"-q", "store", "cp", "big", "store:"}).out, Not(HasSubstr("copying")));
}

}  // namespace
}  // namespace millrace::cli
