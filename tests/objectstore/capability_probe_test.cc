#include "objectstore/capability_probe.h"

#include <gtest/gtest.h>

#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"

namespace millrace {

namespace {

struct Quirk {
  const char* name;
  MemoryObjectStoreOptions options;
  std::map<Capability, Finding> findings;  // Those that are not kHonoured.
};

}  // namespace

TEST(CapabilityProbe, SeesEachQuirk) {
  using enum Capability;
  using enum Finding;
  const std::vector<Quirk> quirks = {
      {"none", {}, {}},
      {"ignores conditions",
       {.ignore_conditions = true},
       {{kCreateIfAbsent, kIgnored},
        {kReplaceIfIdentity, kIgnored},
        {kConditionalUpload, kIgnored}}},
      {"refuses conditions",
       {.refuse_conditions = true},
       {{kCreateIfAbsent, kRefused},
        {kReplaceIfIdentity, kRefused},
        {kConditionalUpload, kRefused}}},
      {"ignores them on uploads",
       {.ignore_upload_conditions = true},
       {{kConditionalUpload, kIgnored}}},
      {"ignores identities",
       {.ignore_identity_conditions = true},
       {{kReplaceIfIdentity, kIgnored}}},
      {"drops metadata", {.drop_metadata = true}, {{kMetadata, kIgnored}}},
      {"refuses copies", {.refuse_copy = true}, {{kCopy, kRefused}}},
      {"lists late", {.hide_new_keys_from_list = true}, {{kListAfterWrite, kIgnored}}},
  };
  for (const Quirk& quirk : quirks) {
    SCOPED_TRACE(quirk.name);
    MemoryObjectStore store(system_clock(), inline_executor(), quirk.options);
    const auto report = probe_capabilities(RequestContext::background(), store, "scratch");
    ASSERT_TRUE(report) << report.error().to_string();
    ASSERT_EQ(report->findings.size(), 6U);
    for (const CapabilityFinding& finding : report->findings) {
      const auto expected = quirk.findings.find(finding.capability);
      EXPECT_EQ(finding_name(finding.finding),
                finding_name(expected == quirk.findings.end() ? kHonoured : expected->second))
          << capability_name(finding.capability) << ": " << finding.sentence;
      EXPECT_FALSE(finding.sentence.empty());
    }
    EXPECT_EQ(store.object_count(), 0U) << "it cleans up";
    EXPECT_EQ(store.open_uploads(), 0U);
  }
}

// The first, the second, the third ... call fails, until the probe gets through.
TEST(CapabilityProbe, CleansUpWhereverItFails) {
  bool succeeded = false;
  for (std::uint64_t n = 1; n < 100 && !succeeded; ++n) {
    auto memory = std::make_shared<MemoryObjectStore>();
    const FaultPlan plan = [n](const FaultableCall& call) -> std::optional<Fault> {
      // The clean-up itself is let through: what it cannot remove is logged, not tested here.
      if (call.number != n || call.operation == StoreOperation::kRemove ||
          call.operation == StoreOperation::kUploadAbort) {
        return {};
      }
      return Fault{.kind = Fault::Kind::kFailAfter};
    };
    FaultyObjectStore store(memory, plan, system_clock(), inline_executor());
    const auto report = probe_capabilities(RequestContext::background(), store, "scratch");
    EXPECT_EQ(memory->object_count(), 0U) << "after a failure of call " << n;
    EXPECT_EQ(memory->open_uploads(), 0U) << "after a failure of call " << n;
    succeeded = store.calls() < n;
    if (succeeded) {
      EXPECT_TRUE(report);
    }
  }
  EXPECT_TRUE(succeeded);
}

}  // namespace millrace
