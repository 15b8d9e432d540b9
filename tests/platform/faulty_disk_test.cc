#include "platform/faulty_disk.h"

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "platform/memory_disk.h"

namespace millrace {
namespace {

// Replaces "/f" as a careful program does.
Status replace(Disk& disk, std::string_view text) {
  MR_ASSIGN_OR_RETURN(const auto file, disk.open("/f.new", OpenMode::kCreate));
  MR_RETURN_IF_ERROR(file->truncate(0));
  MR_RETURN_IF_ERROR(file->write_at(0, as_bytes(text)));
  MR_RETURN_IF_ERROR(file->sync());
  MR_RETURN_IF_ERROR(disk.rename("/f.new", "/f", Replace::kAllowed));
  return disk.sync_directory("/");
}

std::string content(Disk& disk) {
  const auto file = disk.open("/f", OpenMode::kRead).value();
  std::string text(100, '?');
  text.resize(file->read_at(0, std::as_writable_bytes(std::span(text))).value());
  return text;
}

TEST(FaultyDisk, FailsEachCallInTurnUntilTheOperationSucceeds) {
  std::uint64_t n = 0;
  for (bool done = false; !done; ++n) {
    ASSERT_LT(n, 20u);
    for (const bool for_ever : {false, true}) {
      MemoryDisk memory;
      FaultyDisk disk(memory);
      ASSERT_TRUE(replace(disk, "old").ok());
      disk.set_fault(fail_nth_call(n, EIO, for_ever));
      const Status status = replace(disk, "new");
      disk.set_fault({});
      done = status.ok();
      EXPECT_EQ(disk.faults(), done ? 0u : 1u);
      if (!done) {
        EXPECT_EQ(status.code(), StatusCode::kIoError);
      }
      // Whatever failed, and if the power goes as well: old or new, never a mix.
      memory.simulate_power_loss(n);
      const std::string text = content(memory);
      EXPECT_TRUE(text == "new" || (!done && text == "old")) << text << " after call " << n;
    }
  }
  EXPECT_EQ(n, 7u);  // Six calls, and the round in which none failed.
}

TEST(FaultyDisk, GivesTheCodesOfTheErrno) {
  MemoryDisk memory;
  FaultyDisk disk(memory);
  disk.set_fault(fail_nth_call(0, ENOSPC));
  EXPECT_EQ(replace(disk, "x").code(), StatusCode::kResourceExhausted);
  disk.set_fault([](const DiskCall& call) {
    return call.operation == DiskOperation::kRename && call.path == "/f" ? EACCES : 0;
  });
  EXPECT_EQ(replace(disk, "x").code(), StatusCode::kPermissionDenied);
}

TEST(FaultyDisk, AFailedWriteLeavesAPart) {
  MemoryDisk memory;
  FaultyDisk disk(memory);
  const auto file = disk.open("/f", OpenMode::kCreate).value();
  disk.set_fault(fail_nth_call(0, ENOSPC));
  EXPECT_FALSE(file->write_at(0, as_bytes("1234")).ok());
  EXPECT_EQ(content(memory), "12");
}

TEST(FaultyDisk, AFailedPunchOrLockDoesNothing) {
  MemoryDisk memory;
  FaultyDisk disk(memory);
  const auto file = disk.open("/f", OpenMode::kCreate).value();
  ASSERT_TRUE(file->write_at(0, as_bytes("1234")).ok());
  std::vector<DiskOperation> seen;
  disk.set_fault([&](const DiskCall& call) {
    seen.push_back(call.operation);
    return EIO;
  });
  std::byte byte{};
  EXPECT_EQ(file->punch(0, 2).code(), StatusCode::kIoError);
  EXPECT_EQ(file->read_now(0, {&byte, 1}).error().code(), StatusCode::kIoError);
  EXPECT_EQ(disk.lock("/lock", "me").error().code(), StatusCode::kIoError);
  EXPECT_EQ(seen, (std::vector{DiskOperation::kPunch, DiskOperation::kRead, DiskOperation::kLock}));
  EXPECT_EQ(content(memory), "1234");
  EXPECT_EQ(memory.stat("/lock").error().code(), StatusCode::kNotFound);
}

TEST(FaultyDisk, ReadOnlyStillReads) {
  MemoryDisk memory;
  FaultyDisk disk(memory);
  ASSERT_TRUE(replace(disk, "x").ok());
  disk.set_fault(read_only_disk());
  EXPECT_EQ(content(disk), "x");
  EXPECT_EQ(disk.remove("/f").code(), StatusCode::kIoError);
  EXPECT_EQ(disk.lock("/lock", "me").error().code(), StatusCode::kIoError);
  EXPECT_EQ(disk.open("/f", OpenMode::kRead).value()->punch(0, 1).code(), StatusCode::kIoError);
}

TEST(FaultyDisk, RandomFaultsRepeatByTheirSeed) {
  const auto run = [](std::uint64_t seed) {
    MemoryDisk memory;
    FaultyDisk disk(memory);
    disk.set_fault(fail_randomly(0.3, seed, EIO));
    std::string outcomes;
    for (int i = 0; i < 200; ++i)
      outcomes += disk.stat("/") ? '.' : 'x';
    return outcomes;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
  const auto failed = std::ranges::count(run(1), 'x');
  EXPECT_GT(failed, 30);
  EXPECT_LT(failed, 100);
}

}  // namespace
}  // namespace millrace
