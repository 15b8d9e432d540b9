// What is large, long, odd or many, through the program and back, on files and on a real S3 server.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/bytes.h"
#include "base/random.h"
#include "tests/cli/millrace_process.h"
#include "tests/servers/ceph_server.h"
#include "tests/servers/torture.h"

namespace millrace::cli {
namespace {

using millrace::testing::CephServer;
using ::testing::HasSubstr;

class DatasetLimits : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    variables_["MILLRACE_STORE"] = path("s");
  }

  // From here on the store is a bucket, or what lies below a prefix of it.
  void use_ceph(CephServer& ceph, const std::string& prefix) {
    variables_["AWS_ACCESS_KEY_ID"] = ceph.access_key();
    variables_["AWS_SECRET_ACCESS_KEY"] = ceph.secret_key();
    variables_["MILLRACE_STORE"] = fmt::format("s3://{}{}?endpoint={}", CephServer::kSharedBucket,
                                               prefix.empty() ? "" : "/" + prefix, ceph.endpoint());
  }

  void succeed(const std::vector<std::string>& arguments) {
    const Outcome outcome = millrace(arguments);
    ASSERT_EQ(outcome.exit_code, 0) << arguments[0] << ": " << outcome.out << outcome.err;
  }
  void succeed_in_bash(const std::string& script) {
    const Outcome outcome = bash("set -euo pipefail; " + script);
    ASSERT_EQ(outcome.exit_code, 0) << script << ": " << outcome.out << outcome.err;
  }

  // Kinds, modes, times, targets and bytes of everything in `tree` and `out`, which is the same.
  void expect_same_trees() {
    succeed_in_bash(
        "diff -r --no-dereference tree out;"
        "for t in tree out; do (cd $t; find . -printf '%P\\0%y %m %T@ %l\\0') | sort -z >list-$t; "
        "done; cmp list-tree list-out");
  }
  void expect_round_trip(const std::string& ref) {
    std::filesystem::remove_all(path("out"));
    succeed({"publish", "tree", ref});
    succeed({"version", "verify", ref});
    succeed({"version", "extract", ref, "out"});
    expect_same_trees();
  }

  // A file of holes but for its ends, so that an end that is cut off or doubled is noticed.
  void write_sparse(const std::string& name, std::uint64_t size) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    const int file = ::open(path(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(size)), 0);
    ASSERT_EQ(::pwrite(file, "begin", 5, 0), 5);
    ASSERT_EQ(::pwrite(file, "end", 3, static_cast<off_t>(size) - 3), 3);
    ::close(file);
  }
  void write_odd_tree() {
    write("tree/empty", "");
    write("tree/not \xff\xfe utf-8/\x80", "small");
    write("tree/not \xff\xfe utf-8/large \xfd", std::string(2 * kMiB, 'l'));
    write("tree/new\nline\t'\"\\", "odd");
    write("tree/large\nline", std::string(2 * kMiB + 1, 'n'));
    write("tree/large \x01 control", std::string(2 * kMiB + 2, 'c'));
    write("tree/mode", "x");
    std::filesystem::create_directories(path("tree/void/deeper"));
    std::filesystem::create_symlink("no/where", path("tree/link"));
    ::chmod(path("tree/mode").c_str(), 0751);
    ::chmod(path("tree/void").c_str(), 0700);
    succeed_in_bash(
        "touch -h -d '2001-02-03 04:05:06.123456789 UTC' tree/mode tree/link tree/void");
  }
  // A path of `length` bytes whose components are as long as a directory allows.
  static std::string long_path(std::size_t length) {
    std::string path;
    while (path.size() < length)
      path += path.size() % 201 == 200 && path.size() + 1 < length ? '/' : 'k';
    return path;
  }
};

TEST_F(DatasetLimits, OddNamesRoundTripOnFiles) {
  write_odd_tree();
  expect_round_trip("odd@v1");
}

TEST_F(DatasetLimits, OddNamesRoundTripOnCeph) {
  use_ceph(CephServer::shared(), "odd");
  write_odd_tree();
  expect_round_trip("odd@v1");
  // Whatever was stored can be listed, and so collected.
  succeed({"version", "rm", "odd@v1", "--retention", "0s"});
  const Outcome gc = millrace({"version", "gc", "--json"});
  EXPECT_EQ(gc.exit_code, 0) << gc.err;
  EXPECT_GE(gc.json()["objects"], 4);
  EXPECT_EQ(millrace({"store", "ls", "-r", "odd"}).exit_code, 3);
}

// Keys are as long as the store allows, and a path that does not fit has another key.
TEST_F(DatasetLimits, KeysUpToTheLimit) {
  constexpr std::size_t kBesides = 2 + 3 + 33 + 6;  // "d/v1/<nonce>/files/".
  for (const std::string& prefix : {std::string(), std::string("below/a prefix")}) {
    SCOPED_TRACE(prefix);
    use_ceph(CephServer::shared(), prefix.empty() ? "" : "below/a%20prefix");
    const std::string name = prefix.empty() ? "d" : "e";
    const std::size_t below = prefix.empty() ? 0 : prefix.size() + 1;
    std::filesystem::remove_all(path("tree"));
    const std::size_t fits = 1024 - kBesides - below;
    write("tree/" + long_path(fits), std::string(2 * kMiB, 'a'));
    write("tree/" + long_path(fits + 1), std::string(2 * kMiB, 'b'));
    write("tree/" + long_path(1500), std::string(2 * kMiB, 'c'));
    expect_round_trip(name + "@v1");
    const std::string keys = millrace({"store", "ls", "-r", name + "/v1"}).out;
    EXPECT_THAT(keys, HasSubstr("/files/" + long_path(fits) + "\n"));
    EXPECT_EQ(keys.find(long_path(fits + 1)), std::string::npos);
    std::size_t digests = 0;
    for (std::size_t at = keys.find("/objects/"); at != keys.npos;
         at = keys.find("/objects/", at + 1))
      ++digests;
    EXPECT_EQ(digests, 2U) << keys;
  }
}

TEST_F(DatasetLimits, ALargeObjectOnFiles) {
  const std::uint64_t size = (full_torture() ? 5 * kGiB : 40 * kMiB) + 1;
  write_sparse("tree/big", size);
  expect_round_trip("big@v1");
  report_torture("publish_large_files", 0, fmt::format(R"("bytes":{})", size));
}

TEST_F(DatasetLimits, ALargeObjectOnCephIsUploadedAndCopiedInParts) {
  const std::uint64_t size = (full_torture() ? 5 * kGiB : 40 * kMiB) + 1;
  std::unique_ptr<CephServer> large;
  if (full_torture()) {
    large = std::make_unique<CephServer>(
        millrace::testing::CephOptions{.bluestore = true, .store_bytes = 24 * kGiB});
    large->create_bucket(CephServer::kSharedBucket);
  }
  use_ceph(large ? *large : CephServer::shared(), "large");
  write_sparse("tree/big", size);
  expect_round_trip("big@v1");
  std::filesystem::remove_all(path("out"));
  // Promoted, it is copied by the store; its bytes pass through here when it is compared.
  succeed({"store", "cp", "tree/big", "store:staging/big"});
  succeed({"promote", "store:staging", "big@v2"});
  succeed({"version", "extract", "big@v2", "out"});
  succeed_in_bash("cmp tree/big out/big");
  report_torture("publish_large_ceph", 0, fmt::format(R"("bytes":{})", size));
}

TEST_F(DatasetLimits, ADirectoryOfManyFiles) {
  const std::uint64_t files = full_torture() ? 1'000'000 : 20'000;
  std::filesystem::create_directories(path("tree"));
  for (std::uint64_t n = 0; n < files; ++n) {
    const std::string name = path(fmt::format("tree/{:07}.txt", n));
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_GE(file, 0);
    const std::string text = fmt::format("file {}", n);
    ASSERT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(file);
  }
  // Our own children include those of other tests, hence a parent in between.
  const Outcome published = bash(
      "python3 -c 'import resource, subprocess\n"
      "subprocess.run([\"millrace\", \"publish\", \"tree\", \"many@v1\", \"--json\"], check=True)\n"
      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=open(\"rss\", \"w\"))'");
  ASSERT_EQ(published.exit_code, 0) << published.err;
  EXPECT_EQ(published.json()["files"], files);
  const std::uint64_t publish_rss_bytes = std::stoull(read("rss")) * kKiB;
  EXPECT_LT(publish_rss_bytes, kGiB);
  const Outcome verified = millrace({"version", "verify", "many@v1"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("0 wrong"));
  succeed({"version", "extract", "many@v1", "out"});
  expect_same_trees();
  report_torture("publish_many_files", 0,
                 fmt::format(R"("files":{},"rss_bytes_max":{},"seconds":{:.1f})", files,
                             publish_rss_bytes, published.json()["seconds"].get<double>()));
}

}  // namespace
}  // namespace millrace::cli
