#include "loader/file_hashes.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using ::testing::HasSubstr;
using Hashes = std::vector<std::pair<std::string, std::string>>;

// Of no bytes, as Python's hashlib and xxhash have them.
const Hashes kOfNothing = {
    {"md5", "d41d8cd98f00b204e9800998ecf8427e"},
    {"sha1", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {"sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"sha3_256", "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"},
    {"blake2s", "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9"},
    {"xxh32", "02cc5d05"},
    {"xxh64", "ef46db3751d8e999"},
    {"xxh3_64", "2d06800538d394c2"},
    {"xxh128", "99aa06d3014798d86001c324468d497f"},
    {"xxh3_128", "99AA06D3014798D86001C324468D497F"},
};

TEST(FileHashes, AllThatWritersTakeAreChecked) {
  EXPECT_TRUE(check_hashes({}, kOfNothing, "f").ok())
      << check_hashes({}, kOfNothing, "f").to_string();
  const std::string other = "x";
  for (const auto& hash : kOfNothing) {
    const Status status = check_hashes(as_bytes(other), Hashes{hash}, "shard.00000.mds");
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << hash.first;
    EXPECT_THAT(status.message(), HasSubstr("shard.00000.mds: its " + hash.first));
  }
}

TEST(FileHashes, WhatCannotBeCheckedIsNotPassedOver) {
  for (const char* name : {"shake_128", "adler32", ""}) {
    const Status status = check_hashes({}, Hashes{{name, "00"}}, "f");
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << name;
  }
}

}  // namespace
}  // namespace millrace
