#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/random.h"
#include "dataset/registry.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"

namespace millrace {

inline VersionRef ref_of(std::string_view text) { return VersionRef::parse(text).value(); }
inline DatasetName dataset_of(std::string_view text) { return DatasetName::parse(text).value(); }
inline VersionName version_of(std::string_view text) { return VersionName::parse(text).value(); }
inline AliasName alias_of(std::string_view text) { return AliasName::parse(text).value(); }

inline Sha256Digest digest_of(std::string_view text) { return sha256(as_bytes(text)); }

inline WriterIdentity writer_of(std::string user) {
  return {.user = std::move(user), .host = "node7", .pid = 4711};
}

// Facts that differ in every field from those of another name.
inline VersionFacts facts_of(const std::string& name) {
  VersionFacts facts{.origin = VersionOrigin::kPromoted,
                     .content_digest = digest_of("content " + name),
                     .totals = {.files = 3, .directories = 2, .symlinks = 1, .bytes = name.size()},
                     .sample_count = name.size(),
                     .created = WallTime(std::chrono::days(20'000)),
                     .annotation = {.notes = "notes of " + name, .labels = {{"name", name}}},
                     .source = "/data/" + name};
  facts.layout = {.layout_digest = digest_of("layout " + name),
                  .manifest_key = ".millrace/manifests/" + name,
                  .manifest_bytes = 1000 + name.size(),
                  .index_bytes = 100,
                  .stored_bytes = UINT64_MAX,
                  .parents = {ref_of("other/one@v1")}};
  return facts;
}

// A store in memory that remembers requests, and registries on it.
class RegistryWorld {
 public:
  explicit RegistryWorld(std::uint64_t seed = 1)
      : random(seed),
        memory(std::make_shared<MemoryObjectStore>(clock)),
        recording(std::make_shared<RecordingObjectStore>(memory)) {}

  RegistryAccess access(const std::string& user = "alice") {
    return {.store = *recording, .clock = clock, .random = random, .writer = writer_of(user)};
  }
  Registry registry(const std::string& user = "alice") { return Registry(access(user)); }

  void publish(std::string_view ref) {
    const Registry alice = registry();
    const auto reservation = alice.reserve(context, ref_of(ref), {});
    ASSERT_TRUE(reservation.has_value()) << reservation.error().to_string();
    const auto entry = alice.commit(context, *reservation, facts_of(std::string(ref)));
    ASSERT_TRUE(entry.has_value()) << entry.error().to_string();
  }

  void write(const std::string& key, std::string_view text) {
    ASSERT_TRUE(memory->put(context, ObjectKey(key), Slice::copy_of(text), {}));
  }
  std::string content(const std::string& key) {
    return std::string(memory->get(context, {.key = ObjectKey(key)}).value().data.text());
  }

  const RequestContext context = RequestContext::background();
  ManualClock clock;
  SeededRandom random;
  const std::shared_ptr<MemoryObjectStore> memory;
  const std::shared_ptr<RecordingObjectStore> recording;
};

}  // namespace millrace
