#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "objectstore/object_store.h"

// The contract of ObjectStore, as tests that every back end and every wrapper passes. The tests
// live in contract_*.cc of this folder and are linked into every test program of it. To run them
// for a store, write a contract_<store>_test.cc:
//
//   INSTANTIATE_TEST_SUITE_P(
//       File, ObjectStoreContract,
//       ::testing::Values(ContractTarget{
//           .name = "file",
//           .make_store = [] { return std::make_shared<FileObjectStore>(...); },
//           .traits = {.keys_may_be_prefixes_of_keys = false}}),
//       contract_target_name);
//
// make_store() is called once per test and may return the same shared store every time: each test
// keeps to a prefix of its own and removes what it made.

namespace millrace {

// What a store can do. The default is everything; a false says that the contract's other half
// holds: the store refuses the request with kUnsupported or kInvalidArgument and changes nothing.
struct ContractTraits {
  // "a" and "a/b" can both be objects. False for directories as buckets.
  bool keys_may_be_prefixes_of_keys = true;
  // "//", a trailing "/", "." and ".." as components.
  bool any_key = true;
  // U+0001 and its like, which XML 1.0 cannot carry.
  bool control_characters_in_keys = true;
  bool create_if_absent = true;
  bool replace_if_identity = true;
  bool conditional_upload = true;
  bool metadata = true;
  std::size_t key_bytes_max = kKeyBytesMax;
  // Uploads are tried with sizes around this part size.
  std::size_t part_bytes = 5 * kMiB;
  // How many keys the list model test makes: fewer for slow servers.
  std::uint32_t list_keys = 200;
};

struct ContractTarget {
  std::string name;  // Letters, digits and '_': part of the test's name.
  std::function<std::shared_ptr<ObjectStore>()> make_store;
  ContractTraits traits = {};

  friend void PrintTo(const ContractTarget& target, std::ostream* out) { *out << target.name; }
};

inline std::string contract_target_name(const ::testing::TestParamInfo<ContractTarget>& info) {
  return info.param.name;
}

class ObjectStoreContract : public ::testing::TestWithParam<ContractTarget> {
 protected:
  void SetUp() override;
  // Removes everything under the test's prefix.
  void TearDown() override;

  const ContractTraits& traits() const { return GetParam().traits; }
  ObjectStore& store() { return *store_; }
  // A minute from now: long for any single request, short enough to end a run that hangs.
  RequestContext context() const;

  // All keys of this test begin with this; it ends in '/'.
  const std::string& prefix() const { return prefix_; }
  ObjectKey key(std::string_view name) const { return ObjectKey(prefix_ + std::string(name)); }

  // Shorthands. The must_ ones record a failure when the store refuses.
  Result<ObjectInfo> put(const ObjectKey& key, std::string_view text, PutOptions options = {});
  ObjectInfo must_put(const ObjectKey& key, std::string_view text, PutOptions options = {});
  Result<std::string> read(const ObjectKey& key, std::optional<ByteRange> range = {});
  std::string must_read(const ObjectKey& key, std::optional<ByteRange> range = {});
  StatusCode head_code(const ObjectKey& key);
  // Every page, in one. Fails the test when a page is out of order or a continuation never ends.
  ListPage list_all(ListRequest request);
  // `size` bytes that differ from place to place and with the seed.
  static std::string pattern(std::size_t size, std::uint64_t seed);
  Result<ObjectInfo> upload(const ObjectKey& key, std::string_view bytes, std::size_t piece_bytes,
                            PutOptions options = {});

 private:
  std::shared_ptr<ObjectStore> store_;
  std::string prefix_;
};

}  // namespace millrace
