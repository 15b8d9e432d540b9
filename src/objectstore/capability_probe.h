#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objectstore/object_store.h"

namespace millrace {

// What a store was seen to do, for `millrace doctor` and for whoever must know before publishing.
// Stores that speak the same protocol differ here, and some answer success without doing what was
// asked.
enum class Capability : std::uint8_t {
  kCreateIfAbsent,
  kReplaceIfIdentity,
  kConditionalUpload,
  kMetadata,
  kCopy,
  kListAfterWrite,
};

enum class Finding : std::uint8_t {
  kHonoured,
  // Answered as if done, and not done. The dangerous one.
  kIgnored,
  // Answered with a failure. Safe: the caller knows.
  kRefused,
};

struct CapabilityFinding {
  Capability capability = Capability::kCreateIfAbsent;
  Finding finding = Finding::kRefused;
  // For people: what was tried and what happened.
  std::string sentence = {};
};

struct CapabilityReport {
  // One for each capability, in their order.
  std::vector<CapabilityFinding> findings;

  Finding of(Capability capability) const;
  bool honours(Capability capability) const { return of(capability) == Finding::kHonoured; }
};

std::string_view capability_name(Capability capability);
std::string_view finding_name(Finding finding);

// Writes a few objects of some bytes under "scratch_prefix/" and a random name, looks what became
// of them, and removes them, also when it fails. Fails when the store cannot be reached or refuses
// plain writes and reads; whatever it lacks beyond that is a finding. Blocks.
Result<CapabilityReport> probe_capabilities(const RequestContext& context, ObjectStore& store,
                                            const std::string& scratch_prefix);

}  // namespace millrace
