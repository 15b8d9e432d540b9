#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nfsc/libnfs.h>

#include "tests/frontends/nfs4/nfs_world.h"

namespace millrace {
namespace {

// A client that others have written, through its C interface (NFSv4.0).
class LibNfs : public ::testing::Test {
 protected:
  void SetUp() override {
    large_ = publish_bytes(2 * kMiB + 5, 1);
    world_.tree.write("d/large", large_);
    world_.tree.write("d/small", "hello");
    world_.tree.link("link", "d/small");
    ASSERT_TRUE(world_.publish("a@v1"));
    world_.serve();
    nfs_ = {::nfs_init_context(), ::nfs_destroy_context};
  }
  // 0 or an errno below 0. Its port and version can only be said in a URL.
  int mount(const std::string& path) {
    const std::string url =
        fmt::format("nfs://127.0.0.1{}/?version=4&nfsport={}", path, world_.port());
    const std::unique_ptr<nfs_url, decltype(&::nfs_destroy_url)> parsed(
        ::nfs_parse_url_dir(nfs_.get(), url.c_str()), ::nfs_destroy_url);
    return ::nfs_mount(nfs_.get(), parsed->server, parsed->path);
  }

  NfsWorld world_;
  std::string large_;
  std::shared_ptr<nfs_context> nfs_;
};

TEST_F(LibNfs, MountsListsStatsAndReads) {
  ASSERT_EQ(mount("/datasets/a/v1"), 0) << ::nfs_get_error(nfs_.get());
  nfsdir* directory = nullptr;
  ASSERT_EQ(::nfs_opendir(nfs_.get(), "/d", &directory), 0) << ::nfs_get_error(nfs_.get());
  std::vector<std::string> names;
  for (const nfsdirent* entry = ::nfs_readdir(nfs_.get(), directory); entry != nullptr;
       entry = ::nfs_readdir(nfs_.get(), directory))
    names.emplace_back(entry->name);
  ::nfs_closedir(nfs_.get(), directory);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"large", "small"}));

  nfs_stat_64 stat{};
  ASSERT_EQ(::nfs_stat64(nfs_.get(), "/d/large", &stat), 0) << ::nfs_get_error(nfs_.get());
  EXPECT_EQ(stat.nfs_size, large_.size());
  EXPECT_TRUE(S_ISREG(stat.nfs_mode));

  nfsfh* file = nullptr;
  ASSERT_EQ(::nfs_open(nfs_.get(), "/d/large", O_RDONLY, &file), 0) << ::nfs_get_error(nfs_.get());
  std::string part(100'000, '\0');
  EXPECT_EQ(::nfs_pread(nfs_.get(), file, kMiB - 7, part.size(), part.data()),
            static_cast<int>(part.size()));
  EXPECT_EQ(part, large_.substr(kMiB - 7, part.size()));
  EXPECT_EQ(::nfs_pread(nfs_.get(), file, large_.size(), part.size(), part.data()), 0);
  EXPECT_EQ(::nfs_close(nfs_.get(), file), 0);

  std::string target(64, '\0');
  ASSERT_EQ(::nfs_readlink(nfs_.get(), "/link", target.data(), static_cast<int>(target.size())), 0);
  EXPECT_STREQ(target.c_str(), "d/small");
}

TEST_F(LibNfs, IsToldWhyNot) {
  EXPECT_NE(mount("/datasets/a/v2"), 0);
  ASSERT_EQ(mount("/datasets/a/v1"), 0) << ::nfs_get_error(nfs_.get());
  nfsfh* file = nullptr;
  EXPECT_EQ(::nfs_open(nfs_.get(), "/d/absent", O_RDONLY, &file), -ENOENT);
  EXPECT_EQ(::nfs_open(nfs_.get(), "/d/small", O_RDWR, &file), -EROFS);
  EXPECT_EQ(::nfs_mkdir(nfs_.get(), "/new"), -EROFS);
  EXPECT_EQ(::nfs_unlink(nfs_.get(), "/d/small"), -EROFS);
}

}  // namespace
}  // namespace millrace
