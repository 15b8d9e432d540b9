// Batches in memory: how they are laid out, checked, and their memory used again.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loader/batch_builder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Slice number_bytes(std::initializer_list<std::int32_t> numbers) {
  return Slice::copy_of(std::as_bytes(std::span(numbers.begin(), numbers.size())));
}

// Two samples whose fields differ in every way that fields can.
std::vector<ReadSample> odd_samples() {
  return {
      {.place = {.position = 7, .source = 0, .sample = 70, .seed = 700},
       .key = "a",
       .values = {{.name = "x", .type = "int32", .bytes = number_bytes({1, 2}), .shape = {2}},
                  {.name = "y", .type = "int32", .bytes = number_bytes({5}), .shape = {1}},
                  {.name = "t", .type = "str", .bytes = Slice::copy_of("one")},
                  {.name = "l",
                   .type = "list",
                   .items = {Slice::copy_of("i"), Slice::copy_of("jk")}}}},
      {.place = {.position = 9, .source = 1, .sample = 90, .seed = 900},
       .key = "b",
       .values = {{.name = "x", .type = "int32", .bytes = number_bytes({3, 4}), .shape = {2}},
                  {.name = "y", .type = "int32", .bytes = number_bytes({6, 7}), .shape = {1, 2}},
                  {.name = "l", .type = "list"},
                  {.name = "t", .type = "bytes", .bytes = Slice::copy_of("two")}}},
  };
}

const BatchColumn& column_named(const BatchView& view, std::string_view name,
                                std::string_view type) {
  for (const BatchColumn& column : view.columns()) {
    if (column.name == name && column.type == type) return column;
  }
  ADD_FAILURE() << "no column " << name;
  return view.columns().front();
}

std::string text_at(const BatchColumn& column, std::size_t sample) {
  return std::string(as_text(column.data.subspan(
      column.offsets[sample], column.offsets[sample + 1] - column.offsets[sample])));
}

TEST(BatchTest, LaysSamplesOutInColumns) {
  BatchMemoryPool pool;
  const auto batch = build_batch(pool, 3, odd_samples(), {.store_ns = 1, .decode_ns = 2});
  ASSERT_TRUE(batch) << batch.error().to_string();
  const BatchView& view = *batch->view;
  EXPECT_EQ(view.head().epoch, 3u);
  EXPECT_THAT(view.positions(), ElementsAre(7, 9));
  EXPECT_THAT(view.sources(), ElementsAre(0, 1));
  EXPECT_THAT(view.sample_ids(), ElementsAre(70, 90));
  EXPECT_THAT(view.seeds(), ElementsAre(700, 900));

  const BatchColumn& x = column_named(view, "x", "int32");
  EXPECT_TRUE(x.uniform);
  EXPECT_THAT(x.shape, ElementsAre(2));
  EXPECT_THAT(x.offsets, ElementsAre(0, 8, 16));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data.data()) % kBatchAlignment, 0u);
  std::int32_t third = 0;
  std::memcpy(&third, x.data.data() + 8, sizeof(third));
  EXPECT_EQ(third, 3);

  const BatchColumn& y = column_named(view, "y", "int32");
  EXPECT_FALSE(y.uniform);
  EXPECT_THAT(y.shapes, ElementsAre(1, kNoDimension, 1, 2));

  // One name, two types: a sample is in one of them.
  EXPECT_THAT(column_named(view, "t", "str").present, ElementsAre(1, 0));
  EXPECT_THAT(column_named(view, "t", "bytes").present, ElementsAre(0, 1));
  EXPECT_EQ(text_at(column_named(view, "t", "str"), 0), "one");
  EXPECT_EQ(text_at(column_named(view, "t", "bytes"), 1), "two");

  const BatchColumn& list = column_named(view, "l", "list");
  EXPECT_THAT(list.offsets, ElementsAre(0, 2, 2));
  EXPECT_THAT(list.item_offsets, ElementsAre(0, 1, 3));
  EXPECT_EQ(text_at(column_named(view, "__key__", "str"), 1), "b");
}

TEST(BatchTest, MayBeEmpty) {
  BatchMemoryPool pool;
  const auto batch = build_batch(pool, 0, {}, {});
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->view->samples(), 0u);
  EXPECT_EQ(batch->view->columns().size(), 1u);
}

TEST(BatchTest, AnEmptyOneHasTheColumnsOfItsModels) {
  BatchMemoryPool pool;
  const auto batch = build_empty_batch(pool, 3, odd_samples(), {});
  ASSERT_TRUE(batch) << batch.error().to_string();
  const BatchView& view = *batch->view;
  EXPECT_EQ(view.samples(), 0u);
  EXPECT_EQ(view.head().epoch, 3u);
  const BatchColumn& x = column_named(view, "x", "int32");
  EXPECT_TRUE(x.uniform);
  EXPECT_THAT(x.shape, ElementsAre(2));
  EXPECT_THAT(x.offsets, ElementsAre(0));
  EXPECT_FALSE(column_named(view, "y", "int32").uniform) << "shapes differ";
  EXPECT_THAT(column_named(view, "l", "list").item_offsets, ElementsAre(0));
  for (const BatchColumn& column : view.columns())
    EXPECT_TRUE(column.data.empty()) << column.name;
  EXPECT_EQ(view.columns().size(), 6u);
}

// Goes through all that a view shows, so that a sanitizer sees a step outside.
std::uint64_t sum_of(const BatchView& view) {
  std::uint64_t sum = 0;
  for (std::size_t n = 0; n < view.samples(); ++n)
    sum += view.positions()[n] + view.sources()[n] + view.sample_ids()[n] + view.seeds()[n];
  for (const BatchColumn& column : view.columns()) {
    const bool is_list = column.type == "list";
    for (std::size_t n = 0; n < view.samples(); ++n) {
      for (std::uint64_t at = column.offsets[n]; at < column.offsets[n + 1]; ++at) {
        sum += is_list ? column.item_offsets[at + 1] : std::to_integer<unsigned>(column.data[at]);
      }
      if (!column.present.empty()) sum += column.present[n];
    }
    for (const std::uint64_t size : column.shapes)
      sum += size;
  }
  return sum;
}

TEST(BatchTest, TakesNoDamagedMemoryForABatch) {
  BatchMemoryPool pool;
  const auto batch = build_batch(pool, 3, odd_samples(), {});
  ASSERT_TRUE(batch);
  const ByteView whole = batch->view->bytes();
  // Words, so that the copy is aligned.
  std::vector<std::uint64_t> words((whole.size() + 7) / 8);
  const auto bytes = std::as_writable_bytes(std::span(words)).first(whole.size());
  std::ranges::copy(whole, bytes.begin());
  ASSERT_TRUE(BatchView::parse(bytes));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = BatchView::parse(ByteView(bytes).first(size));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code(), StatusCode::kCorruption);
  }
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned wrong : {0x00u, 0x01u, 0x7fu, 0xffu}) {
      const std::byte before = std::exchange(bytes[at], std::byte(wrong));
      const auto damaged = BatchView::parse(bytes);
      if (damaged) {
        (void)sum_of(*damaged);
      } else {
        ++refused;
      }
      bytes[at] = before;
    }
  }
  EXPECT_GT(refused, 500u);
}

TEST(BatchMemoryTest, IsUsedAgainUnlessRetired) {
  BatchMemoryPool pool;
  auto first = pool.take(100'000).value();
  const std::uint64_t number = first->number();
  auto second = pool.take(100'000).value();
  EXPECT_NE(second->number(), number);
  first.reset();
  first = pool.take(99'000).value();
  EXPECT_EQ(first->number(), number);
  first->retire();
  first.reset();
  EXPECT_NE(pool.take(99'000).value()->number(), number);
  // A small batch does not take a large piece.
  auto large = pool.take(10 * kMiB).value();
  const std::uint64_t large_number = large->number();
  large.reset();
  EXPECT_NE(pool.take(100).value()->number(), large_number);
}

TEST(BatchMemoryTest, WhatWasPreparedIsTaken) {
  BatchMemoryPool pool;
  constexpr std::size_t kBytes = 3'000'000;
  constexpr std::size_t kSamples = 10'000;  // Each adds its key, its place, ...
  pool.prepare(kSamples, kBytes);
  const auto first = pool.take(kBytes + 100 * kSamples);
  ASSERT_TRUE(first);
  std::vector<unsigned char> there((*first)->size() / static_cast<std::size_t>(::getpagesize()));
  ASSERT_EQ(::mincore((*first)->data(), (*first)->size(), there.data()), 0);
  EXPECT_TRUE(std::ranges::all_of(there, [](unsigned char page) { return (page & 1) != 0; }));
  const std::uint64_t number = (*first)->number();
  pool.prepare(kSamples, kBytes);  // Another one: the first is in use.
  const auto second = pool.take(kBytes);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->number(), number + 1);
}

TEST(BatchMemoryTest, OutlivesItsPool) {
  std::shared_ptr<BatchMemory> memory;
  {
    BatchMemoryPool pool;
    memory = pool.take(100).value();
  }
  memory->data()[0] = std::byte(1);
  EXPECT_GE(memory->size(), 100u);
}

TEST(BatchMemoryTest, TakesNoFileThatCouldBeCut) {
  const auto memory = BatchMemory::make(4096).value();
  EXPECT_NE(::ftruncate(memory->descriptor(), 10), 0) << "its size is sealed";
  File unsealed = File::adopt(::memfd_create("test", MFD_CLOEXEC), "test");
  ASSERT_EQ(::ftruncate(unsealed.descriptor(), 4096), 0);
  EXPECT_FALSE(BatchMemory::map(std::move(unsealed), 4096));
  EXPECT_FALSE(BatchMemory::map(File::adopt(::dup(memory->descriptor()), "test"), 8192));
  EXPECT_TRUE(BatchMemory::map(File::adopt(::dup(memory->descriptor()), "test"), 4096));
}

}  // namespace
}  // namespace millrace
