#include "vfs/tree_numbers.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/at_hand.h"
#include "base/log.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "tests/dataset/registry_world.h"

namespace millrace {
namespace {

class TreeNumbersTest : public ::testing::Test {
 protected:
  std::unique_ptr<TreeNumbers> open(const std::string& store = "store") {
    return TreeNumbers::open(disk, "/trees", store).value();
  }
  std::uint32_t number(TreeNumbers& numbers, const std::string& name) {
    return numbers.number_of(ref_of(name + "@v1"), "nonce-" + name, facts_of(name).layout)
        .value()
        .number.value();
  }
  static std::uint32_t first_number(const std::string& name) {
    return derived_tree_number("nonce-" + name, 0).value();
  }
  std::string content() {
    std::string text(disk.stat("/trees")->size, '\0');
    const auto file = disk.open("/trees", OpenMode::kRead).value();
    EXPECT_TRUE(file->read_at(0, std::as_writable_bytes(std::span(text))));
    return text;
  }
  void replace(std::string_view text) {
    const auto file = disk.open("/trees", OpenMode::kCreate).value();
    ASSERT_TRUE(file->truncate(0).ok());
    ASSERT_TRUE(file->write_at(0, as_bytes(text)).ok());
  }

  MemoryDisk disk;
  LogCapture quiet;
};

TEST_F(TreeNumbersTest, AVersionKeepsItsNumber) {
  auto numbers = open();
  EXPECT_EQ(number(*numbers, "a"), first_number("a"));
  EXPECT_EQ(number(*numbers, "b"), first_number("b"));
  EXPECT_EQ(number(*numbers, "a"), first_number("a"));
  numbers = open();
  EXPECT_EQ(number(*numbers, "c"), first_number("c"));
  EXPECT_EQ(number(*numbers, "b"), first_number("b"));
  const NumberedTree b = numbers->find(TreeNumber(first_number("b"))).value();
  EXPECT_EQ(b.ref, ref_of("b@v1"));
  EXPECT_EQ(b.layout.manifest_key, facts_of("b").layout.manifest_key);
  EXPECT_EQ(b.layout.layout_digest, facts_of("b").layout.layout_digest);
  EXPECT_EQ(b.layout.manifest_bytes, facts_of("b").layout.manifest_bytes);
  EXPECT_EQ(b.layout.index_bytes, facts_of("b").layout.index_bytes);
  EXPECT_EQ(numbers->check_of(b.number), tree_check_of("nonce-b"));
  EXPECT_FALSE(numbers->find(TreeNumber(4)));
  EXPECT_FALSE(numbers->check_of(TreeNumber(4)));
}

TEST_F(TreeNumbersTest, FindsWhatWasServedByItsPath) {
  const auto numbers = open();
  number(*numbers, "group/a");
  EXPECT_EQ(numbers->find_below("group/a/v1")->ref, ref_of("group/a@v1"));
  EXPECT_EQ(numbers->find_below("group/a")->ref, ref_of("group/a@v1"));
  EXPECT_EQ(numbers->find_below("group")->ref, ref_of("group/a@v1"));
  for (const std::string_view path : {"gro", "group/a/v", "group/a/v1/f", "group/b"})
    EXPECT_FALSE(numbers->find_below(path)) << path;
  // That of another store, which this cache had before or has later, is never meant.
  {
    const auto other = open("other store");
    EXPECT_FALSE(other->find_below("group/a/v1"));
    ASSERT_TRUE(other->number_of(ref_of("group/a@v1"), "other", facts_of("o").layout));
  }
  EXPECT_EQ(open()->find_below("group/a/v1")->nonce, numbers->find_below("group/a/v1")->nonce);
  EXPECT_EQ(open("other store")->find_below("group/a/v1")->nonce, "other");
  // Of two in one store nobody can tell which one is meant.
  ASSERT_TRUE(numbers->number_of(ref_of("group/a@v1"), "another", facts_of("x").layout));
  EXPECT_FALSE(numbers->find_below("group/a/v1"));
  EXPECT_TRUE(numbers->find_below("group/a"));
}

// Numbers are for ever, and on every gateway: they are written down here.
TEST_F(TreeNumbersTest, ANumberComesFromTheNonce) {
  EXPECT_EQ(derived_tree_number("nonce-a", 0).value(), 2016613153U);
  EXPECT_EQ(derived_tree_number("nonce-a", 1).value(), 242038621U);
  EXPECT_EQ(tree_check_of("nonce-a"), 5952864U);
}

TEST_F(TreeNumbersTest, VersionsOfOneNumberAreKeptApart) {
  std::map<std::uint32_t, std::string> seen;
  std::string first;
  std::string second;
  for (int i = 0; first.empty(); ++i) {
    second = fmt::format("nonce {}", i);
    const auto [it, is_new] = seen.emplace(derived_tree_number(second, 0).value(), second);
    if (!is_new) first = it->second;
  }
  auto numbers = open();
  const TreeNumber a = numbers->number_of(ref_of("a@v1"), first, facts_of("a").layout)->number;
  const TreeNumber b = numbers->number_of(ref_of("b@v1"), second, facts_of("b").layout)->number;
  EXPECT_EQ(a, derived_tree_number(first, 0));
  EXPECT_EQ(b, derived_tree_number(second, 1));
  EXPECT_NE(tree_check_of(first), tree_check_of(second));
}

TEST_F(TreeNumbersTest, ANewLayoutReplacesTheOld) {
  auto numbers = open();
  EXPECT_EQ(number(*numbers, "a"), first_number("a"));
  EXPECT_EQ(number(*numbers, "b"), first_number("b"));
  const NumberedTree before =
      numbers->number_of(ref_of("a@v1"), "nonce-a", facts_of("other").layout).value();
  EXPECT_EQ(before.layout.layout_digest, facts_of("a").layout.layout_digest) << "it is here";
  numbers->renew(before, facts_of("other").layout);
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(numbers->find(TreeNumber(first_number("a")))->layout.layout_digest,
              facts_of("other").layout.layout_digest);
    EXPECT_EQ(number(*numbers, "a"), first_number("a"));
    numbers = open();
  }
  EXPECT_EQ(number(*numbers, "c"), first_number("c"));
}

TEST_F(TreeNumbersTest, WhoMustNotWaitForADiskChangesNothing) {
  auto numbers = open();
  EXPECT_EQ(number(*numbers, "a"), first_number("a"));
  {
    const AtHandOnly at_hand(AtHandOnly::Reach::kMemory);
    EXPECT_EQ(number(*numbers, "a"), first_number("a"));
    EXPECT_FALSE(at_hand.refused()) << "it is known";
    EXPECT_FALSE(numbers->number_of(ref_of("b@v1"), "nonce-b", facts_of("b").layout));
    EXPECT_TRUE(at_hand.refused());
  }
  {
    const AtHandOnly at_hand(AtHandOnly::Reach::kDisk);
    EXPECT_EQ(number(*numbers, "b"), first_number("b"));
    EXPECT_FALSE(at_hand.refused());
  }
  numbers = open();
  EXPECT_TRUE(numbers->find(TreeNumber(first_number("b"))));
}

// A name that was aborted and reserved again is another version.
TEST_F(TreeNumbersTest, TheNonceTellsVersionsApart) {
  auto numbers = open();
  EXPECT_EQ(number(*numbers, "a"), first_number("a"));
  EXPECT_EQ(numbers->number_of(ref_of("a@v1"), "another", facts_of("a").layout)->number,
            derived_tree_number("another", 0));
}

TEST_F(TreeNumbersTest, SurvivesAnyTornEnd) {
  {
    auto numbers = open();
    number(*numbers, "a");
    number(*numbers, "b");
  }
  const std::string whole = content();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    replace(std::string_view(whole).substr(0, size));
    auto numbers = open();
    const bool has_b = size == whole.size();
    EXPECT_EQ(numbers->find(TreeNumber(first_number("b"))).has_value(), has_b) << size;
    number(*numbers, "a");
    EXPECT_EQ(number(*numbers, "b"), first_number("b")) << size;
    numbers = open();
    EXPECT_EQ(number(*numbers, "b"), first_number("b")) << size;
  }
}

TEST_F(TreeNumbersTest, DamageIsNoticed) {
  {
    auto numbers = open();
    number(*numbers, "a");
  }
  std::string text = content();
  text[text.find("a@v1")] = 'b';
  replace(text);
  EXPECT_FALSE(open()->find(TreeNumber(first_number("a"))));
  replace("something else\n");
  EXPECT_EQ(TreeNumbers::open(disk, "/trees", "store").error().code(), StatusCode::kCorruption);
  EXPECT_EQ(content(), "something else\n") << "it is left alone";
}

TEST_F(TreeNumbersTest, NoNumberIsGivenOutThatIsNotOnTheDisk) {
  FaultyDisk faulty(disk);
  const auto numbers = TreeNumbers::open(faulty, "/trees", "store").value();
  faulty.set_fault(
      [](const DiskCall& call) { return call.operation == DiskOperation::kSync ? EIO : 0; });
  EXPECT_FALSE(numbers->number_of(ref_of("a@v1"), "nonce-a", facts_of("a").layout));
  faulty.set_fault({});
  EXPECT_FALSE(numbers->find(TreeNumber(first_number("a"))));
  EXPECT_EQ(number(*numbers, "b"), first_number("b"));
  EXPECT_EQ(number(*open(), "b"), first_number("b"));
}

TEST_F(TreeNumbersTest, AVersionThatHasANumberKeepsItWhenTheDiskIsFull) {
  FaultyDisk faulty(disk);
  const auto numbers = TreeNumbers::open(faulty, "/trees", "store").value();
  EXPECT_EQ(number(*numbers, "a"), first_number("a"));
  faulty.set_fault(
      [](const DiskCall& call) { return call.operation == DiskOperation::kWrite ? ENOSPC : 0; });
  const TreeNumber a(first_number("a"));
  numbers->renew(numbers->find(a).value(), facts_of("other").layout);
  EXPECT_EQ(numbers->find(a)->layout.layout_digest, facts_of("other").layout.layout_digest);
  EXPECT_EQ(number(*open(), "a"), first_number("a"));
}

}  // namespace
}  // namespace millrace
