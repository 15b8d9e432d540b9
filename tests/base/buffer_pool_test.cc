#include "base/buffer_pool.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

BufferPoolOptions options(std::uint64_t bytes_max, std::uint64_t idle_bytes_max) {
  return {.bytes_max = bytes_max, .idle_bytes_max = idle_bytes_max};
}

TEST(BufferPool, ChargesSizeClasses) {
  BufferPool pool(options(kMiB, kMiB));
  const std::vector<std::pair<std::size_t, std::uint64_t>> cases = {
      {1, 4 * kKiB},        {4 * kKiB, 4 * kKiB}, {4 * kKiB + 1, 8 * kKiB},
      {8 * kKiB, 8 * kKiB}, {9000, 16 * kKiB},    {64 * kKiB + 1, 128 * kKiB},
      {kMiB - 1, kMiB},     {kMiB, kMiB}};
  for (const auto& [size, charged] : cases) {
    auto buffer = pool.try_allocate(size);
    ASSERT_TRUE(buffer) << size;
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(pool.bytes_in_use(), charged) << size;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096, 0U);
    std::memset(buffer->data(), 0xab, size);
  }
  EXPECT_EQ(pool.bytes_in_use(), 0U);
}

TEST(BufferPool, NothingCostsNothing) {
  BufferPool pool(options(4 * kKiB, 0));
  EXPECT_TRUE(pool.try_allocate(0));
  EXPECT_EQ(pool.bytes_in_use(), 0U);
}

TEST(BufferPool, RefusesAboveTheCeiling) {
  BufferPool pool(options(16 * kKiB, kMiB));
  auto a = pool.try_allocate(8 * kKiB);
  ASSERT_TRUE(a);
  EXPECT_EQ(pool.try_allocate(9 * kKiB).error(), StatusCode::kResourceExhausted);
  EXPECT_EQ(pool.try_allocate(17 * kKiB).error(), StatusCode::kInvalidArgument);
  EXPECT_EQ(pool.try_allocate(SIZE_MAX).error(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(pool.try_allocate(8 * kKiB));
}

TEST(BufferPool, ReusesMemoryOfTheSameClass) {
  BufferPool pool(options(kMiB, kMiB));
  const std::byte* first = pool.try_allocate(100 * kKiB)->data();
  EXPECT_EQ(pool.bytes_idle(), 128 * kKiB);
  auto again = pool.try_allocate(120 * kKiB);
  EXPECT_EQ(again->data(), first);
  EXPECT_EQ(pool.bytes_idle(), 0U);
}

TEST(BufferPool, MemoryReturnsWithTheLastSlice) {
  BufferPool pool(options(kMiB, kMiB));
  Slice part;
  {
    auto buffer = pool.try_allocate(10 * kKiB);
    std::memcpy(buffer->data() + 5, "hello", 5);
    const Slice whole = std::move(*buffer).freeze();
    part = whole.part(5, 5);
  }
  EXPECT_EQ(part.text(), "hello");
  EXPECT_EQ(pool.bytes_in_use(), 16 * kKiB);
  part = Slice();
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  EXPECT_EQ(pool.bytes_idle(), 16 * kKiB);
}

TEST(BufferPool, SlicesMayOutliveThePool) {
  Slice slice;
  {
    BufferPool pool(options(kMiB, kMiB));
    auto buffer = pool.try_allocate(5);
    std::memcpy(buffer->data(), "alive", 5);
    slice = std::move(*buffer).freeze();
  }
  EXPECT_EQ(slice.text(), "alive");
}

TEST(BufferPool, BoundsWhatIsIdle) {
  BufferPool pool(options(kMiB, 16 * kKiB));
  {
    const auto large = pool.try_allocate(64 * kKiB);
  }
  EXPECT_EQ(pool.bytes_idle(), 0U) << "larger than all that may be idle";
  {
    std::vector<Result<Buffer>> buffers;
    for (int i = 0; i < 8; ++i)
      buffers.push_back(pool.try_allocate(4 * kKiB));
  }
  EXPECT_EQ(pool.bytes_idle(), 16 * kKiB);
}

TEST(BufferPool, IdleMemoryMakesRoomForNewBuffers) {
  BufferPool pool(options(64 * kKiB, 64 * kKiB));
  {
    std::vector<Result<Buffer>> buffers;
    for (int i = 0; i < 16; ++i)
      buffers.push_back(pool.try_allocate(4 * kKiB));
  }
  EXPECT_EQ(pool.bytes_idle(), 64 * kKiB);
  const auto other_class = pool.try_allocate(32 * kKiB);
  ASSERT_TRUE(other_class);
  EXPECT_EQ(pool.bytes_in_use() + pool.bytes_idle(), 64 * kKiB);
}

TEST(BufferPool, WaitsForMemoryUntilTheDeadline) {
  BufferPool pool(options(8 * kKiB, 8 * kKiB));
  auto held = pool.try_allocate(8 * kKiB);
  const RequestContext late(system_clock().now() + 1ms, "a");
  EXPECT_EQ(pool.allocate(late, 4 * kKiB).error(), StatusCode::kDeadlineExceeded);
  std::thread waiter([&] { EXPECT_TRUE(pool.allocate(RequestContext::background(), 4 * kKiB)); });
  held = Buffer();
  waiter.join();
}

// Small buffers rest beside the thread that freed them: they are idle, and anybody's who needs
// them.
TEST(BufferPool, WhatAThreadKeepsIsGivenToOthersWhenMemoryIsShort) {
  BufferPool pool(options(4 * kMiB, 4 * kMiB));
  std::thread other([&] {
    std::vector<Result<Buffer>> buffers;
    for (int i = 0; i < 16; ++i)
      buffers.push_back(pool.try_allocate(4 * kKiB));
  });
  other.join();
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  EXPECT_EQ(pool.bytes_idle(), 64 * kKiB);
  auto all = pool.try_allocate(4 * kMiB);
  ASSERT_TRUE(all) << all.error().to_string();
  EXPECT_EQ(pool.bytes_idle(), 0U);
  std::thread waiter([&] { EXPECT_TRUE(pool.allocate(RequestContext::background(), 4 * kKiB)); });
  all = Buffer();
  waiter.join();
}

TEST(BufferPool, WhoWaitsGetsWhatOthersFree) {
  for (int round = 0; round < 200; ++round) {
    BufferPool pool(options(kMiB, kMiB));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 20; ++i) {
          // Small ones that are parked, and one that needs nearly all.
          const std::size_t size = (i + t) % 5 == 0 ? 900 * kKiB : 4 * kKiB;
          ASSERT_TRUE(pool.allocate(RequestContext::background(), size));
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    ASSERT_EQ(pool.bytes_in_use(), 0U);
    ASSERT_LE(pool.bytes_idle(), kMiB);
  }
}

TEST(BufferPool, ManyThreadsShareOneCeiling) {
  BufferPool pool(options(256 * kKiB, 64 * kKiB));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 300; ++i) {
        const std::size_t size = 1 + (i * 7919 + t * 104729) % (200 * kKiB);
        auto buffer = pool.allocate(RequestContext::background(), size);
        ASSERT_TRUE(buffer);
        buffer->data()[0] = buffer->data()[size - 1] = std::byte{1};
        EXPECT_LE(pool.bytes_in_use(), 256 * kKiB);
        EXPECT_LE(pool.bytes_idle(), 64 * kKiB);
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(pool.bytes_in_use(), 0U);
}

}  // namespace
}  // namespace millrace
