#include "objectstore/capability_probe.h"

#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/random.h"

namespace millrace {

namespace {

// Cleaning up must not be cut short by the deadline that just ended the probe.
constexpr auto kCleanUpTime = std::chrono::seconds(30);

bool is_refusal(StatusCode code) {
  return code == StatusCode::kUnsupported || code == StatusCode::kInvalidArgument ||
         code == StatusCode::kPermissionDenied;
}

bool is_condition_failure(StatusCode code) {
  return code == StatusCode::kPreconditionFailed || code == StatusCode::kConflict;
}

PutOptions with_condition(WriteCondition condition) { return {std::move(condition), {}}; }

// One probe: its scratch keys, and the findings so far. Removes the keys when destroyed.
class Probe {
 public:
  Probe(const RequestContext& context, ObjectStore& store, const std::string& scratch_prefix)
      : context_(context),
        store_(store),
        root_(scratch_prefix + "/probe-" + system_random().token() + "/") {}
  ~Probe() { clean_up(); }

  Result<CapabilityReport> run() {
    MR_RETURN_IF_ERROR(create_if_absent());
    MR_RETURN_IF_ERROR(replace_if_identity());
    MR_RETURN_IF_ERROR(conditional_upload());
    MR_RETURN_IF_ERROR(metadata());
    MR_RETURN_IF_ERROR(copy());
    MR_RETURN_IF_ERROR(list_after_write());
    return std::move(report_);
  }

 private:
  ObjectKey key(std::string_view name) {
    keys_.emplace_back(root_ + std::string(name));
    return keys_.back();
  }

  Result<ObjectInfo> put(const ObjectKey& key, std::string_view text, const PutOptions& options) {
    return store_.put(context_, key, Slice::copy_of(text), options);
  }

  Result<std::string> read(const ObjectKey& key) {
    GetRequest request;
    request.key = key;
    MR_ASSIGN_OR_RETURN(const GetResult got, store_.get(context_, std::move(request)));
    return std::string(got.data.text());
  }

  Status found(Capability capability, Finding finding, std::string sentence) {
    report_.findings.push_back({capability, finding, std::move(sentence)});
    return {};
  }

  // What the second, forbidden write of a pair tells.
  Status judge(Capability capability, std::string_view what, const Result<ObjectInfo>& forbidden) {
    if (forbidden) {
      return found(capability, Finding::kIgnored,
                   fmt::format("{} was accepted although its condition did not hold: the store "
                               "ignores the condition and overwrites",
                               what));
    }
    const Status& error = forbidden.error();
    if (is_condition_failure(error.code())) {
      return found(capability, Finding::kHonoured,
                   fmt::format("{} was refused when its condition did not hold", what));
    }
    return refused_or_failed(capability, what, error);
  }

  Status refused_or_failed(Capability capability, std::string_view what, const Status& error) {
    if (!is_refusal(error.code())) return error.with_context(fmt::format("probing {}", what));
    return found(capability, Finding::kRefused,
                 fmt::format("the store does not know {}: {}", what, error.message()));
  }

  Status create_if_absent() {
    constexpr auto kThis = Capability::kCreateIfAbsent;
    constexpr std::string_view kWhat = "a create of an object that exists";
    const ObjectKey k = key("create");
    const auto first = put(k, "first", with_condition(WriteCondition::if_absent()));
    if (!first) return refused_or_failed(kThis, "create if absent", first.error());
    return judge(kThis, kWhat, put(k, "second", with_condition(WriteCondition::if_absent())));
  }

  Status replace_if_identity() {
    constexpr auto kThis = Capability::kReplaceIfIdentity;
    const ObjectKey k = key("replace");
    MR_ASSIGN_OR_RETURN(const ObjectInfo one, put(k, "one", {}));
    const auto right = put(k, "second", with_condition(WriteCondition::if_identity(one.identity)));
    if (!right && is_condition_failure(right.error().code())) {
      return found(kThis, Finding::kRefused,
                   "a replace with the right identity was refused: the store compares identities "
                   "in a way of its own");
    }
    if (!right) return refused_or_failed(kThis, "replace if identity", right.error());
    return judge(kThis, "a replace of an object that has changed",
                 put(k, "third one", with_condition(WriteCondition::if_identity(one.identity))));
  }

  Status conditional_upload() {
    constexpr auto kThis = Capability::kConditionalUpload;
    const ObjectKey k = key("upload");
    MR_ASSIGN_OR_RETURN(const ObjectInfo existing, put(k, "existing", {}));
    const auto options = with_condition(WriteCondition::if_absent());
    auto upload = store_.start_upload(context_, k, options);
    if (!upload) {
      if (!is_condition_failure(upload.error().code())) {
        return refused_or_failed(kThis, "a conditional upload", upload.error());
      }
      return found(kThis, Finding::kHonoured, "an upload over an existing object was not begun");
    }
    MR_RETURN_IF_ERROR((*upload)->write(context_, Slice::copy_of("uploaded")));
    const auto finished = (*upload)->finish(context_);
    if (!finished) {
      // The finding is about the refusal; what the abort meets is the clean-up's business.
      if (const Status aborted = (*upload)->abort(context_); !aborted.ok()) {
        log_warn("a probe's upload could not be aborted", {{"error", aborted.to_string()}});
      }
    }
    // What is asked here is the store with our back end around it. Some servers ignore conditions
    // when parts are joined, and the back end then looks before it asks: that cannot be told from
    // outside.
    return judge(kThis,
                 "the end of an upload to an object that exists (for objects of several parts some "
                 "servers leave a moment between the look and the write)",
                 finished);
  }

  Status metadata() {
    constexpr auto kThis = Capability::kMetadata;
    const ObjectKey k = key("metadata");
    const ObjectMetadata sent = {{"probe", "value 1"}};
    const auto info = put(k, "x", {WriteCondition::none(), sent});
    if (!info) return refused_or_failed(kThis, "user metadata", info.error());
    MR_ASSIGN_OR_RETURN(const ObjectInfo seen, store_.head(context_, k));
    if (seen.metadata == sent) {
      return found(kThis, Finding::kHonoured, "user metadata came back as it was written");
    }
    return found(kThis, Finding::kIgnored,
                 "user metadata was accepted but did not come back as it was written");
  }

  Status copy() {
    constexpr auto kThis = Capability::kCopy;
    const ObjectKey from = key("copy-from");
    const ObjectKey to = key("copy-to");
    MR_ASSIGN_OR_RETURN(const ObjectInfo source, put(from, "copied", {}));
    const auto copied = store_.copy(context_, source, to);
    if (!copied) return refused_or_failed(kThis, "copies inside the store", copied.error());
    const auto text = read(to);
    if (text && *text == "copied") {
      return found(kThis, Finding::kHonoured, "a copy inside the store has the source's bytes");
    }
    return found(kThis, Finding::kIgnored, "a copy was accepted, but its bytes are not there");
  }

  Status list_after_write() {
    constexpr auto kThis = Capability::kListAfterWrite;
    const ObjectKey k = key("listed");
    MR_ASSIGN_OR_RETURN(const ObjectInfo info, put(k, "x", {}));
    ListRequest request;
    request.prefix = k.value();
    MR_ASSIGN_OR_RETURN(const ListPage page, store_.list(context_, request));
    if (page.objects.size() == 1 && page.objects[0].key == k) {
      return found(kThis, Finding::kHonoured, "an object is listed as soon as it is written");
    }
    return found(kThis, Finding::kIgnored,
                 "an object that was just written is missing from the list");
  }

  void clean_up() {
    const RequestContext context(system_clock().now() + kCleanUpTime, context_.principal());
    if (const Status status = store_.remove(context, keys_); !status.ok()) {
      log_warn("a capability probe left objects behind",
               {{"store", store_.describe()}, {"prefix", root_}, {"error", status.to_string()}});
    }
  }

  const RequestContext context_;
  ObjectStore& store_;
  const std::string root_;
  std::vector<ObjectKey> keys_;
  CapabilityReport report_;
};

}  // namespace

Finding CapabilityReport::of(Capability capability) const {
  for (const CapabilityFinding& finding : findings) {
    if (finding.capability == capability) return finding.finding;
  }
  return Finding::kRefused;
}

std::string_view capability_name(Capability capability) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "create_if_absent", "replace_if_identity", "conditional_upload", "metadata", "copy",
      "list_after_write"};
  return kNames[static_cast<std::size_t>(capability)];
}

std::string_view finding_name(Finding finding) {
  static constexpr std::array<std::string_view, 3> kNames = {"honoured", "ignored", "refused"};
  return kNames[static_cast<std::size_t>(finding)];
}

Result<CapabilityReport> probe_capabilities(const RequestContext& context, ObjectStore& store,
                                            const std::string& scratch_prefix) {
  return Probe(context, store, scratch_prefix).run();
}

}  // namespace millrace
