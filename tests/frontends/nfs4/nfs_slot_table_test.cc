#include "frontends/nfs4/nfs_slot_table.h"

#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace {
namespace {

using Verdict = NfsSlotTable::Verdict;

std::shared_ptr<const std::string> reply_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

NfsStatus refusal(NfsSlotTable& table, const NfsSlotCall& call) {
  const NfsResult<Verdict> verdict = table.begin(call);
  return verdict ? NfsStatus::kOk : verdict.error();
}

TEST(NfsSlotTable, RunsNumbersInOrder) {
  NfsSlotTable table(2);
  EXPECT_EQ(refusal(table, {.slot = 0, .sequence = 0}), NfsStatus::kSeqMisordered);
  EXPECT_EQ(refusal(table, {.slot = 0, .sequence = 2}), NfsStatus::kSeqMisordered);
  for (std::uint32_t sequence = 1; sequence < 4; ++sequence) {
    EXPECT_EQ(table.begin({.slot = 0, .sequence = sequence}), Verdict::kRun);
    table.finish(0, nullptr);
  }
  EXPECT_EQ(refusal(table, {.slot = 0, .sequence = 2}), NfsStatus::kSeqMisordered);
  EXPECT_EQ(refusal(table, {.slot = 0, .sequence = 5}), NfsStatus::kSeqMisordered);
  EXPECT_EQ(refusal(table, {.slot = 2, .sequence = 1}), NfsStatus::kBadSlot);
}

TEST(NfsSlotTable, ARetryIsToldFromAnotherRequestUnderItsNumber) {
  NfsSlotTable table(1);
  const NfsSlotCall call{.slot = 0, .sequence = 1, .fingerprint = 7};
  ASSERT_EQ(table.begin(call), Verdict::kRun);
  EXPECT_EQ(refusal(table, call), NfsStatus::kDelay);
  EXPECT_EQ(refusal(table, {.slot = 0, .sequence = 2, .fingerprint = 7}),
            NfsStatus::kSeqMisordered);
  table.finish(0, reply_of("answer"));
  EXPECT_EQ(table.begin(call), Verdict::kRetry);
  EXPECT_EQ(*table.reply(0), "answer");
  EXPECT_EQ(refusal(table, {.slot = 0, .sequence = 1, .fingerprint = 8}),
            NfsStatus::kSeqFalseRetry);
  table.drop_replies();
  EXPECT_EQ(table.reply_bytes(), 0U);
  EXPECT_EQ(table.begin(call), Verdict::kRetry);
  EXPECT_EQ(table.reply(0), nullptr);
}

TEST(NfsSlotTable, SlotsAboveTheFirstLimitStartAtOneToo) {
  NfsSlotTable table(1);
  table.raise_limit(8);
  table.raise_limit(4);
  EXPECT_EQ(table.limit(), 8U);
  EXPECT_EQ(refusal(table, {.slot = 7, .sequence = 3}), NfsStatus::kSeqMisordered);
  EXPECT_EQ(table.begin({.slot = 7, .sequence = 1}), Verdict::kRun);
  EXPECT_EQ(table.begin({.slot = 3, .sequence = 1}), Verdict::kRun);
}

// What RFC 8881 says of a slot, as plainly as it can be written.
struct ModelSlot {
  std::uint32_t last = 0;
  bool used = false;
  bool running = false;
  std::uint64_t fingerprint = 0;
  std::optional<std::string> reply = std::nullopt;
};

class NfsSlotModel {
 public:
  explicit NfsSlotModel(std::uint64_t seed) : random_(seed) {}

  void step() {
    switch (random_.next() % 8) {
      case 0:
        table_.drop_replies();
        for (auto& [number, slot] : slots_)
          slot.reply.reset();
        break;
      case 1:
        limit_ = std::max<std::uint32_t>(limit_, random_.next() % 12);
        table_.raise_limit(limit_);
        break;
      case 2:
      case 3:
        finish_one();
        break;
      default:
        begin_one();
    }
    std::uint64_t bytes = 0;
    for (const auto& [number, slot] : slots_)
      bytes += slot.reply ? slot.reply->size() : 0;
    EXPECT_EQ(table_.reply_bytes(), bytes);
  }

  int runs() const { return runs_; }
  int retries() const { return retries_; }

 private:
  void begin_one() {
    const auto number = static_cast<std::uint32_t>(random_.next() % 14);
    ModelSlot& slot = slots_[number];
    const NfsSlotCall call{
        .slot = number,
        .sequence = slot.last + static_cast<std::uint32_t>(random_.next() % 4) - 1,
        .fingerprint = random_.next() % 2};
    const NfsResult<Verdict> verdict = table_.begin(call);
    if (number >= limit_) {
      EXPECT_EQ(verdict, std::unexpected(NfsStatus::kBadSlot));
    } else if (slot.used && call.sequence == slot.last && slot.running) {
      EXPECT_EQ(verdict, std::unexpected(NfsStatus::kDelay));
    } else if (slot.used && call.sequence == slot.last && call.fingerprint != slot.fingerprint) {
      EXPECT_EQ(verdict, std::unexpected(NfsStatus::kSeqFalseRetry));
    } else if (slot.used && call.sequence == slot.last) {
      EXPECT_EQ(verdict, Verdict::kRetry);
      ++retries_;
      const std::shared_ptr<const std::string> reply = table_.reply(number);
      ASSERT_EQ(reply != nullptr, slot.reply.has_value());
      if (reply != nullptr) {
        EXPECT_EQ(*reply, *slot.reply);
      }
    } else if (call.sequence == slot.last + 1 && !slot.running) {
      EXPECT_EQ(verdict, Verdict::kRun);
      ++runs_;
      slot = {
          .last = call.sequence, .used = true, .running = true, .fingerprint = call.fingerprint};
    } else {
      EXPECT_EQ(verdict, std::unexpected(NfsStatus::kSeqMisordered));
    }
  }

  void finish_one() {
    for (auto& [number, slot] : slots_) {
      if (!slot.running || random_.next() % 2 == 0) continue;
      slot.running = false;
      if (random_.next() % 3 != 0) slot.reply = "reply " + std::to_string(runs_);
      table_.finish(number, slot.reply ? reply_of(*slot.reply) : nullptr);
      return;
    }
  }

  SeededRandom random_;
  std::uint32_t limit_ = 3;
  NfsSlotTable table_{3};
  std::map<std::uint32_t, ModelSlot> slots_;
  int runs_ = 0;
  int retries_ = 0;
};

TEST(NfsSlotTable, DoesWhatASimpleModelDoes) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    NfsSlotModel model(seed);
    for (int i = 0; i < 2000; ++i)
      model.step();
    EXPECT_GT(model.runs(), 100);
    EXPECT_GT(model.retries(), 20);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace
