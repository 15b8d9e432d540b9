#include "frontends/nfs4/nfs_client_records.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/random.h"
#include "frontends/nfs4/nfs_server_identity.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

std::set<std::string> owners_on(Disk& disk) {
  const auto records = NfsClientRecords::open(disk, "/clients");
  EXPECT_TRUE(records) << records.error().to_string();
  return records ? (*records)->owners() : std::set<std::string>();
}

TEST(NfsClientRecords, SurviveAPowerLoss) {
  const std::string any_bytes("a\0\n\xff", 4);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    MemoryDisk disk;
    {
      const auto records = NfsClientRecords::open(disk, "/clients");
      ASSERT_TRUE(records);
      EXPECT_TRUE((*records)->add(any_bytes).ok());
      EXPECT_TRUE((*records)->add("b").ok());
      EXPECT_TRUE((*records)->add("b").ok());
      EXPECT_TRUE((*records)->remove("b").ok());
      EXPECT_TRUE((*records)->add("c").ok());
      // Not synced: it may come back.
      EXPECT_TRUE((*records)->remove("c").ok());
      EXPECT_TRUE((*records)->contains(any_bytes));
      EXPECT_FALSE((*records)->contains("c"));
    }
    disk.simulate_power_loss(seed);
    std::set<std::string> owners = owners_on(disk);
    owners.erase("c");
    EXPECT_EQ(owners, std::set<std::string>{any_bytes});
  }
}

TEST(NfsClientRecords, TheFileStaysShort) {
  MemoryDisk disk;
  const auto records = NfsClientRecords::open(disk, "/clients");
  ASSERT_TRUE(records);
  EXPECT_TRUE((*records)->add("stays").ok());
  for (int i = 0; i < 5000; ++i) {
    EXPECT_TRUE((*records)->add("comes and goes").ok());
    EXPECT_TRUE((*records)->remove("comes and goes").ok());
  }
  EXPECT_LT(disk.stat("/clients")->size, 100'000U);
  EXPECT_EQ(owners_on(disk), std::set<std::string>{"stays"});
}

TEST(NfsClientRecords, DamagedLinesAreDroppedAndForeignFilesLeftAlone) {
  MemoryDisk disk;
  {
    const auto records = NfsClientRecords::open(disk, "/clients");
    EXPECT_TRUE((*records)->add("first").ok());
    EXPECT_TRUE((*records)->add("second").ok());
  }
  std::string text = *read_small_file(disk, "/clients", kMiB);
  text[text.find('+') + 1] ^= 1;
  text += "00000000 +torn";
  ASSERT_TRUE(replace_small_file(disk, "/clients", text).ok());
  LogCapture log;
  EXPECT_EQ(owners_on(disk), std::set<std::string>{"second"});
  EXPECT_NE(log.text().find("damaged"), std::string::npos);

  ASSERT_TRUE(replace_small_file(disk, "/clients", "millrace-nfs-clients 2\n").ok());
  EXPECT_EQ(NfsClientRecords::open(disk, "/clients").error(), StatusCode::kCorruption);
  EXPECT_EQ(*read_small_file(disk, "/clients", kMiB), "millrace-nfs-clients 2\n");
}

// Whatever call fails: what add() said is kept, and the next add() works again.
TEST(NfsClientRecords, GoOnAfterEachFailureOfTheDisk) {
  for (std::uint64_t n = 0; n < 40; ++n) {
    MemoryDisk memory;
    FaultyDisk disk(memory);
    std::set<std::string> kept;
    {
      const auto records = NfsClientRecords::open(disk, "/clients");
      ASSERT_TRUE(records);
      disk.set_fault(fail_nth_call(n, EIO));
      for (int i = 0; i < 4; ++i) {
        const std::string owner = "owner " + std::to_string(i);
        if ((*records)->add(owner).ok()) kept.insert(owner);
      }
      disk.set_fault({});
      EXPECT_GE(kept.size(), 2U) << n;
      EXPECT_TRUE((*records)->add("last").ok());
      kept.insert("last");
    }
    memory.simulate_power_loss(n);
    const std::set<std::string> found = owners_on(memory);
    for (const std::string& owner : kept)
      EXPECT_TRUE(found.contains(owner)) << n << " " << owner;
  }
}

TEST(NfsServerIdentity, IsKeptAndEveryLifeIsAnother) {
  MemoryDisk disk;
  const auto first = NfsServerIdentity::open(disk, "/identity", system_random());
  ASSERT_TRUE(first) << first.error().to_string();
  disk.simulate_power_loss(3);
  const auto second = NfsServerIdentity::open(disk, "/identity", system_random());
  ASSERT_TRUE(second);
  EXPECT_EQ(second->owner().major_id, first->owner().major_id);
  EXPECT_EQ(second->owner().scope, first->owner().scope);
  EXPECT_EQ(second->life(), first->life() + 1);

  const auto other = NfsServerIdentity::open(disk, "/other", system_random());
  EXPECT_NE(other->owner().major_id, first->owner().major_id);
}

TEST(NfsServerIdentity, ADamagedFileIsNotReplaced) {
  MemoryDisk disk;
  ASSERT_TRUE(NfsServerIdentity::open(disk, "/identity", system_random()));
  const std::string whole = *read_small_file(disk, "/identity", kMiB);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    ASSERT_TRUE(replace_small_file(disk, "/identity", damaged).ok());
    EXPECT_EQ(NfsServerIdentity::open(disk, "/identity", system_random()).error(),
              StatusCode::kCorruption)
        << i;
    ASSERT_TRUE(replace_small_file(disk, "/identity", whole.substr(0, i)).ok());
    EXPECT_FALSE(NfsServerIdentity::open(disk, "/identity", system_random())) << i;
  }
}

}  // namespace
}  // namespace millrace
