// Claims of docs/semantics.md that the tree shows without a front end
// (tests/vfs/semantics_test.cc), on a real mount of a real daemon. A test's name begins with the
// number of its claim.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "platform/file.h"
#include "tests/cli/mount_world.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;

// What is claimed to be seen after 5 s is there after 5 s, and a slow machine's time to look.
constexpr auto kFiveSeconds = std::chrono::seconds(10);

class MountSemanticsTest : public MountTest {
 protected:
  void mount_tree() {
    succeed(
        "mkdir -p live/d; millrace --buckets live=file://$DIR/live --log-level debug mount mnt");
  }
  std::string bytes_at(const File& file, std::uint64_t offset, std::size_t length) {
    std::string bytes(length, '\0');
    const ssize_t got =
        ::pread(file.descriptor(), bytes.data(), length, static_cast<off_t>(offset));
    if (got < 0) return std::strerror(errno);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  std::string fact(const std::string& name, const std::string& what) {
    char text[512];
    const ssize_t got =
        ::getxattr(path(name).c_str(), ("user.millrace." + what).c_str(), text, sizeof(text));
    return got < 0 ? std::strerror(errno) : std::string(text, static_cast<std::size_t>(got));
  }
  ino_t number(const std::string& name) {
    struct stat found{};
    EXPECT_EQ(::stat(path(name).c_str(), &found), 0) << name;
    return found.st_ino;
  }
  bool exists(const std::string& name) { return std::filesystem::exists(path(name)); }
  void restart() {
    const int before = daemon_pid();
    ASSERT_GT(before, 0);
    ::kill(before, SIGKILL);
    ASSERT_TRUE(becomes([&] { return daemon_pid() > 0 && daemon_pid() != before; }));
  }
};

TEST_F(MountSemanticsTest, S1VersionsStayWhatTheyAreWhenACollectionPacksThemAnew) {
  succeed(
      "mkdir -p few/d; cp -a tree/d/1?.jpg few/d; millrace publish few a@v2; millrace mount a@v2 "
      "mnt;"
      "millrace version rm --yes --retention 0s a@v1");
  const std::string all = "cd mnt; find . -printf '%p %i %m %s %T@ %y %l\\n' | sort";
  const std::string before = succeed(all).out;
  ASSERT_THAT(succeed("millrace version gc").out, HasSubstr("a@v2: repacked"));
  // As the collection of a day later does it, to which nobody read by the old layout.
  succeed("rm -r home/.local/share/millrace/store/a/v1/*/packs");
  succeed("diff -r few mnt");
  EXPECT_EQ(succeed(all).out, before);
  // Of which neither the kernel nor the daemon knows anything yet.
  succeed("millrace umount mnt; millrace stop; millrace mount a@v2 mnt");
  EXPECT_EQ(succeed(all).out, before);
  succeed("diff -r few mnt");
}

TEST_F(MountSemanticsTest, S2AliasesHaveMovedWhenTheCommandReturns) {
  succeed("millrace publish tree a@v2; millrace alias set a@current v1");
  mount_tree();
  EXPECT_EQ(std::filesystem::read_symlink(path("mnt/datasets/a/current")), "v1");
  succeed("millrace alias set a@current v2");
  EXPECT_EQ(std::filesystem::read_symlink(path("mnt/datasets/a/current")), "v2");
  succeed("millrace alias rm a@current");
  EXPECT_FALSE(std::filesystem::is_symlink(path("mnt/datasets/a/current")));
}

TEST_F(MountSemanticsTest, S2AliasesThatOthersMoveAreSeenWithinFiveSeconds) {
  succeed(
      "millrace publish tree a@v2; millrace alias set a@current v1; millrace alias set a@old v1");
  mount_tree();
  EXPECT_EQ(std::filesystem::read_symlink(path("mnt/datasets/a/current")), "v1");
  EXPECT_TRUE(exists("mnt/datasets/a/old/empty"));
  // By commands that do not find the daemon, as on another machine.
  succeed(
      "millrace --socket $DIR/none alias set a@current v2;"
      "millrace --socket $DIR/none alias rm a@old");
  EXPECT_TRUE(becomes(
      [this] { return std::filesystem::read_symlink(path("mnt/datasets/a/current")) == "v2"; },
      kFiveSeconds));
  EXPECT_TRUE(becomes([this] { return !exists("mnt/datasets/a/old"); }, kFiveSeconds));
}

TEST_F(MountSemanticsTest, S3VersionsHaveComeAndGoneWhenTheCommandReturns) {
  mount_tree();
  EXPECT_FALSE(exists("mnt/datasets/a/v2"));
  const File file = File::open(path("mnt/datasets/a/v1/large.bin"), O_RDONLY).value();
  succeed("millrace publish tree a@v2");
  EXPECT_TRUE(exists("mnt/datasets/a/v2/empty"));
  succeed("millrace version rm --yes a@v1");
  EXPECT_FALSE(exists("mnt/datasets/a/v1"));
  EXPECT_TRUE(bytes_at(file, 0, 5'000'000) == read("tree/large.bin")) << "read on, and not cached";
}

TEST_F(MountSemanticsTest, S4AChangedObjectOfAVersionIsAnError) {
  mount_tree();
  succeed(
      "object=$(find home -type f -size +4000k -path '*store*'); test -f \"$object\";"
      "chmod u+w $object; head -c 5000000 /dev/urandom > $object");
  const File file = File::open(path("mnt/datasets/a/v1/large.bin"), O_RDONLY).value();
  EXPECT_EQ(bytes_at(file, 0, 100), std::strerror(EIO));
  const std::string log = read("home/.local/share/millrace/serve.log");
  EXPECT_THAT(log, HasSubstr("dataset=a"));
  EXPECT_THAT(log, HasSubstr("version=v1"));
  EXPECT_THAT(log, HasSubstr("path=large.bin"));
}

TEST_F(MountSemanticsTest, S5FactsOfVersions) {
  mount_tree();
  EXPECT_EQ(fact("mnt/datasets/a/v1/large.bin", "version"), "a@v1");
  EXPECT_EQ(fact("mnt/datasets/a/v1/large.bin", "digest"), fact("mnt/datasets/a/v1", "digest"));
  EXPECT_EQ(fact("mnt/datasets/a/v1/large.bin", "cached"), "no");
  succeed("cat mnt/datasets/a/v1/large.bin > /dev/null");
  EXPECT_TRUE(becomes([this] { return fact("mnt/datasets/a/v1/large.bin", "cached") == "yes"; }));
}

TEST_F(MountSemanticsTest, S6TheSizeOfAVersion) {
  mount_tree();
  const Outcome shown = succeed(
      "df -B1 --output=size,itotal mnt/datasets/a/v1 | tail -n 1;"
      "echo $(find tree -type f -printf '%s\n' | awk '{sum += $1} END {printf \"%d\", sum}')"
      " $(find tree | wc -l)");
  std::istringstream figures(shown.out);
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes_expected = 0;
  std::uint64_t entries_expected = 0;
  figures >> bytes >> entries >> bytes_expected >> entries_expected;
  constexpr std::uint64_t kBlock = 4096;
  EXPECT_EQ(bytes, (bytes_expected + kBlock - 1) / kBlock * kBlock) << shown.out;
  EXPECT_EQ(entries, entries_expected);
}

TEST_F(MountSemanticsTest, S7ABucketOfAServerIsShownAsItIs) {
  const millrace::testing::StrictS3Server server;
  be_known_to_s3();
  const std::string bucket = "s3://test-bucket/live/";
  variables_["AWS_ENDPOINT_URL"] = server.url();
  variables_["MILLRACE_BUCKETS"] = "live=s3://test-bucket/live?endpoint=" + server.url();
  succeed("millrace store cp tree/large.bin '" + bucket + "d/large.bin?endpoint=" + server.url() +
          "'; millrace mount mnt; cmp tree/large.bin mnt/buckets/live/d/large.bin");
  succeed("millrace store cp tree/d/1.jpg '" + bucket + "d/1.jpg?endpoint=" + server.url() + "'");
  EXPECT_TRUE(becomes([this] { return exists("mnt/buckets/live/d/1.jpg"); }, kFiveSeconds));
  succeed("cmp tree/d/1.jpg mnt/buckets/live/d/1.jpg; ls -lR mnt/buckets");
}

TEST_F(MountSemanticsTest, S8OpenFilesOfBucketsArePinned) {
  mount_tree();
  write("live/f", std::string(16'000'000, 'b'));
  ASSERT_TRUE(becomes([this] { return exists("mnt/buckets/live/f"); }, kFiveSeconds));
  const File file = File::open(path("mnt/buckets/live/f"), O_RDONLY | O_DIRECT).value();
  const auto direct = [&file](std::uint64_t offset) {
    alignas(4096) static char page[4096];
    const ssize_t got = ::pread(file.descriptor(), page, sizeof(page), static_cast<off_t>(offset));
    return got < 0 ? std::string(std::strerror(errno)) : std::string(page, 1);
  };
  EXPECT_EQ(direct(0), "b");
  write("live/f.new", std::string(16'000'000, 'a'));
  succeed("mv live/f.new live/f");
  EXPECT_EQ(direct(15'998'976), std::strerror(ESTALE));
  EXPECT_EQ(direct(0), "b") << "what is cached reads on";
  struct stat found{};
  EXPECT_EQ(::fstat(file.descriptor(), &found), 0) << std::strerror(errno);
  EXPECT_EQ(found.st_size, 16'000'000);
  EXPECT_TRUE(becomes(
      [this] {
        const auto again = File::open(path("mnt/buckets/live/f"), O_RDONLY);
        return again && bytes_at(*again, 15'998'976, 1) == "a";
      },
      kFiveSeconds));
}

TEST_F(MountSemanticsTest, S8WhoReadsACachedFileWhileItIsReplacedComesToItsEnd) {
  mount_tree();
  const std::string content(1'000'000, 'b');
  write("live/f", content);
  ASSERT_TRUE(becomes([this] { return exists("mnt/buckets/live/f"); }, kFiveSeconds));
  const File file = File::open(path("mnt/buckets/live/f"), O_RDONLY).value();
  EXPECT_EQ(bytes_at(file, 0, 2'000'000), content);
  const ino_t before = number("mnt/buckets/live/f");
  write("live/f.new", "another");
  succeed("mv live/f.new live/f");
  ASSERT_TRUE(becomes([&] { return number("mnt/buckets/live/f") != before; }, kFiveSeconds));
  // What the kernel was told of the first one is as old by now.
  EXPECT_EQ(bytes_at(file, 0, 2'000'000), content);
  struct stat found{};
  EXPECT_EQ(::fstat(file.descriptor(), &found), 0) << std::strerror(errno);
  EXPECT_EQ(found.st_size, 1'000'000);
}

TEST_F(MountSemanticsTest, S9KeysThatAreNoNamesAreHidden) {
  millrace::testing::StrictS3Server server;
  be_known_to_s3();
  variables_["MILLRACE_BUCKETS"] = "live=s3://test-bucket/live?endpoint=" + server.url();
  for (const char* key : {"a//b", "./b", "../b", "both", "both/b", "fine"})
    server.put_object("test-bucket", std::string("live/") + key, "x");
  server.put_object("test-bucket", "live/" + std::string(256, 'n'), "x");
  server.put_object("test-bucket", "live/made/", "");
  server.put_object("test-bucket", "live/odd/", "bytes");
  succeed("millrace mount mnt");
  EXPECT_EQ(succeed("cd mnt/buckets/live; find . -printf '%p %y\\n' | sort").out,
            ". d\n./a d\n./both d\n./both/b f\n./fine f\n./made d\n./odd d\n");
  EXPECT_EQ(bash("cat $DIR/mnt/buckets/live/fine $DIR/mnt/buckets/live/both/b").out, "xx");
  const std::string log = read("home/.local/share/millrace/serve.log");
  std::size_t hidden = 0;
  const std::string line = "a key cannot be shown as a file";
  for (std::size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1))
    ++hidden;
  EXPECT_EQ(hidden, 3U) << "one for each directory: " << log;
  EXPECT_THAT(log, HasSubstr("key=a// "));
  EXPECT_THAT(log, HasSubstr("key=odd/ "));
}

TEST_F(MountSemanticsTest, S10FactsOfBuckets) {
  mount_tree();
  write("live/d/f", "x");
  ASSERT_TRUE(becomes([this] { return exists("mnt/buckets/live/d/f"); }, kFiveSeconds));
  EXPECT_EQ(fact("mnt/buckets/live/d/f", "store"), "file://" + path("live"));
  EXPECT_EQ(fact("mnt/buckets/live/d/f", "key"), "d/f");
  EXPECT_EQ(fact("mnt/buckets/live/d/f", "cached"), "no");
  EXPECT_NE(fact("mnt/buckets/live/d/f", "etag"), std::strerror(ENODATA));
  EXPECT_EQ(fact("mnt/buckets/live/d", "key"), "d/");
}

TEST_F(MountSemanticsTest, S14PermissionsCountForOthersAndNobodyWrites) {
  succeed("chmod 640 tree/d/1.jpg; chmod 644 tree/d/2.jpg; millrace publish tree a@v2");
  mount_tree();
  succeed(
      "chmod 755 $DIR; test \"$(stat -c %u:%g mnt/datasets/a/v2/d/1.jpg)\" = $(id -u):$(id -g)");
  const auto other = [this](const std::string& groups, const std::string& command) {
    return bash("setpriv --reuid 65533 --regid 65533 " + groups + " " + command + " > /dev/null");
  };
  const std::string file = path("mnt/datasets/a/v2/d/1.jpg");
  EXPECT_THAT(other("--clear-groups", "cat " + file).err, HasSubstr("Permission denied"));
  EXPECT_EQ(other("--groups " + std::to_string(::getegid()), "cat " + file).exit_code, 0);
  EXPECT_EQ(other("--clear-groups", "cat " + path("mnt/datasets/a/v2/d/2.jpg")).exit_code, 0);
  for (const char* name :
       {"mnt/new", "mnt/datasets/a/v2/new", "mnt/datasets/a/v2/d/2.jpg", "mnt/buckets/live/new"}) {
    EXPECT_LT(::open(path(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 0) << name;
    EXPECT_EQ(errno, EROFS) << name;
  }
}

TEST_F(MountSemanticsTest, S13S15S16AttributesOfNodes) {
  succeed(
      "chmod 640 tree/d/1.jpg; touch -d '2020-02-02 02:02:02.5' tree/d/1.jpg;"
      "millrace publish tree a@v2");
  mount_tree();
  write("live/d/f", "x");
  ASSERT_TRUE(becomes([this] { return exists("mnt/buckets/live/d/f"); }, kFiveSeconds));
  const auto shown = [this](const std::string& form, const std::string& name) {
    return succeed("stat -c '" + form + "' " + name).out;
  };
  EXPECT_EQ(shown("%a %s %Y", "mnt/datasets/a/v2/d/1.jpg"), shown("%a %s %Y", "tree/d/1.jpg"));
  EXPECT_EQ(shown("%y", "mnt/datasets/a/v2/d/1.jpg"), shown("%y", "tree/d/1.jpg"));
  EXPECT_EQ(shown("%a %s", "mnt/datasets/a/v2/d/link"), "777 12\n");
  EXPECT_EQ(shown("%s", "mnt/datasets/a/v2/d"), "0\n");
  EXPECT_EQ(shown("%a %s", "mnt/buckets/live/d/f"), "444 1\n");
  EXPECT_EQ(shown("%a %s", "mnt/buckets/live/d"), "555 0\n");
  EXPECT_EQ(shown("%Y", "mnt/buckets/live/d/f"), shown("%Y", "live/d/f"));
  const File file = File::open(path("mnt/datasets/a/v2/d/1.jpg"), O_RDONLY).value();
  EXPECT_EQ(bytes_at(file, 700, 10), "");
  EXPECT_EQ(bytes_at(file, 1 << 30, 10), "");
}

TEST_F(MountSemanticsTest, S24LocksAreOfTheMachineAndTimesOfAccessAreNotKept) {
  mount_tree();
  succeed(
      "f=mnt/datasets/a/v1/large.bin; before=$(stat -c %X $f); cat $f > /dev/null;"
      "test $(stat -c %X $f) = $before;"
      "flock -s $f true; exec 7< $f; flock -x 7; ! flock -n -s $f true; exec 7<&-;"
      "flock -n -s $f true");
}

TEST_F(MountSemanticsTest, S17NumbersSurviveARestart) {
  mount_tree();
  write("live/d/f", "x");
  ASSERT_TRUE(becomes([this] { return exists("mnt/buckets/live/d/f"); }, kFiveSeconds));
  std::map<std::string, ino_t> numbers;
  for (const char* name : {"mnt", "mnt/datasets", "mnt/datasets/a", "mnt/datasets/a/v1/large.bin",
                           "mnt/buckets/live/d", "mnt/buckets/live/d/f"})
    numbers[name] = number(name);
  ASSERT_NO_FATAL_FAILURE(restart());
  succeed("echo 2 > /proc/sys/vm/drop_caches");
  for (const auto& [name, before] : numbers)
    EXPECT_EQ(number(name), before) << name;
  // Through another mount, too, of which the kernel knows nothing yet.
  succeed("millrace umount mnt");
  mount_tree();
  for (const auto& [name, before] : numbers)
    EXPECT_EQ(number(name), before) << name;
}

TEST_F(MountSemanticsTest, S18AListingIsTakenUpAnywhere) {
  constexpr int kNames = 3000;
  mount_tree();
  for (int n = 0; n < kNames; ++n)
    write(fmt::format("live/many/{:04}", n), "");
  ASSERT_TRUE(becomes([this] { return exists("mnt/buckets/live/many/0000"); }, kFiveSeconds));
  DIR* const directory = ::opendir(path("mnt/buckets/live/many").c_str());
  ASSERT_NE(directory, nullptr);
  std::vector<std::string> seen;
  const auto list = [&](int names_max) {
    const dirent* entry = nullptr;
    while (names_max-- > 0 && (entry = ::readdir(directory)) != nullptr) {
      if (entry->d_name[0] != '.') seen.emplace_back(entry->d_name);
    }
  };
  list(1234);
  const long place = ::telldir(directory);
  list(100);
  seen.resize(seen.size() - 100);
  ASSERT_NO_FATAL_FAILURE(restart());
  ::seekdir(directory, place);
  list(kNames);
  ::closedir(directory);
  EXPECT_EQ(seen.size(), std::size_t{kNames});
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

}  // namespace
}  // namespace millrace::cli
