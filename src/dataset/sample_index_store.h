#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/sample_index.h"
#include "dataset/sample_index_builder.h"
#include "objectstore/object_store.h"
#include "platform/digest.h"

namespace millrace {

inline constexpr std::string_view kIndexesPrefix = ".millrace/indexes/";

// Where the sample index of a content lies: ".millrace/indexes/<content digest>/webdataset". The
// last component says which reader's idea of a sample it follows.
ObjectKey sample_index_key(const Sha256Digest& content_digest);
// The content that a key below kIndexesPrefix belongs to, whatever its reader; nothing for keys
// that are none of ours. An index whose content no version has is garbage.
std::optional<Sha256Digest> indexed_content(std::string_view key);

// The sample indexes of a store. One is written once for a content and never changes; it can be
// made again from the version at any time, so whoever finds none does without or makes it.
//
// Stateless, safe from any thread. The store outlives this and every index that it opened.
class SampleIndexStore {
 public:
  explicit SampleIndexStore(ObjectStore& store) : store_(store) {}

  // kNotFound when there is none; kCorruption when what is there is no index of this content. A
  // HEAD and one or two GETs.
  Result<std::unique_ptr<SampleIndex>> open(const RequestContext& context,
                                            const Sha256Digest& content_digest);

  // Stores an index unless it is there already. kConflict when another one is: one of the two is
  // wrong.
  Status put(const RequestContext& context, const BuiltSampleIndex& index);

 private:
  Status upload(const RequestContext& context, const ObjectKey& key, const BuiltSampleIndex& index);

  ObjectStore& store_;
};

}  // namespace millrace
