#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/registry_access.h"
#include "dataset/registry_aliases.h"
#include "dataset/reservation.h"
#include "dataset/run_log.h"
#include "dataset/version_log.h"

namespace millrace {

inline constexpr Duration kRetentionDefault = std::chrono::days(30);
inline constexpr Duration kRetentionMax = std::chrono::days(90 * 365);

// One version in a list. A log that is damaged does not hide the others.
struct VersionListing {
  VersionRef ref;
  Result<VersionEntry> entry;
};

struct ReserveOptions {
  // What for, as whoever meets the reservation reads it: "publish of /data/imagenet".
  std::string reason = {};
  // Reserving again with the nonce of a reservation that is still open finds that one, so that
  // whoever wrote the nonce down first can be killed at any moment. Empty: a new one.
  std::string nonce = {};
};

// Changes what is said about a version; what is not set stays.
struct AnnotationChange {
  std::optional<std::string> notes = {};
  // A label without a value is taken away.
  std::map<std::string, std::optional<std::string>> labels = {};
  std::optional<std::uint64_t> sample_count = {};
};

// Datasets and their versions, as the logs in the store tell them (docs/formats/registry.md).
//
// Everything that changes a log is atomic: of those who do so at once each sees what the others
// did, or fails. Codes: kNotFound for what is not there; kConflict for what the state of a version
// does not allow, with a sentence on who brought it there; kCorruption for a damaged record. A
// failure of a change whose message says that its outcome is not known may have taken effect.
//
// Holds no state, so it is never stale, and safe from any thread. What `access` refers to outlives
// it. Every method blocks.
class Registry {
 public:
  explicit Registry(RegistryAccess access)
      : access_(access), aliases_(access), runs_(std::move(access)) {}

  const RegistryAliases& aliases() const { return aliases_; }
  const RunLog& runs() const { return runs_; }

  // The names with any version, aborted ones included, in order. One list for each 1,000.
  Result<std::vector<DatasetName>> datasets(const RequestContext& context) const;
  // In the order of names, in every state. One list for each 1,000 records, one GET for each
  // version.
  Result<std::vector<VersionListing>> versions(const RequestContext& context,
                                               const DatasetName& dataset) const;
  Result<std::vector<VersionListing>> every_version(const RequestContext& context) const;
  // In whatever state it is. A list and a GET beside it; one more where anything was done to it
  // since it was published.
  Result<VersionEntry> version(const RequestContext& context, const VersionRef& ref) const;
  Result<std::vector<VersionEntry>> history(const RequestContext& context,
                                            const VersionRef& ref) const;
  // A version that can be read; where `ref` names an alias, what that points to.
  Result<VersionEntry> resolve(const RequestContext& context, const VersionRef& ref) const;

  // Takes the name for a version that is to be made. Of several at once one succeeds; the others
  // get kConflict, which says who has it. kConflict also for names that exclude each other.
  Result<Reservation> reserve(const RequestContext& context, const VersionRef& ref,
                              const ReserveOptions& options) const;
  // Makes the version visible. kConflict when the reservation was aborted meanwhile. Repeating a
  // commit that took effect is a success.
  Result<VersionEntry> commit(const RequestContext& context, const Reservation& reservation,
                              VersionFacts facts) const;
  // Ends a reservation, one's own or another's. kConflict when it was committed meanwhile; success
  // when it was aborted already.
  Status abort(const RequestContext& context, const Reservation& reservation,
               const std::string& reason) const;
  // Of all datasets: versions that are being made, and those that are being repacked. Reads only
  // logs that can end so.
  Result<std::vector<VersionEntry>> open_reservations(const RequestContext& context) const;

  Result<VersionEntry> annotate(const RequestContext& context, const VersionRef& ref,
                                const AnnotationChange& change) const;
  // Begins to lay a published version out anew, under a nonce that the answer has as open_work().
  // While that is open the layout stays as the answer has it. kConflict while another one is.
  Result<VersionEntry> begin_repack(const RequestContext& context, const VersionRef& ref,
                                    const std::string& reason) const;
  // Ends the repack with the layout that it made; the content stays what it was. kConflict when it
  // ended before, since objects of `to` may then be gone.
  Result<VersionEntry> relayout(const RequestContext& context, const VersionRef& ref,
                                const std::string& nonce, const VersionLayout& to) const;
  // Ends the repack without. Success also when it has ended already.
  Status abort_repack(const RequestContext& context, const VersionRef& ref,
                      const std::string& nonce, const std::string& reason) const;
  Result<VersionEntry> remove(const RequestContext& context, const VersionRef& ref,
                              const std::string& reason,
                              Duration retention = kRetentionDefault) const;
  Result<VersionEntry> restore(const RequestContext& context, const VersionRef& ref) const;
  // kConflict while it is restorable, unless `force` says otherwise, and while a live run uses it,
  // whatever `force` says.
  Result<VersionEntry> purge(const RequestContext& context, const VersionRef& ref,
                             bool force = false) const;

 private:
  Result<std::vector<VersionListing>> list_versions(const RequestContext& context,
                                                    const std::string& prefix,
                                                    bool open_only) const;
  // Both rules between names, once the reservation is written.
  Status check_names(const RequestContext& context, const VersionRef& ref) const;
  Status check_not_in_use(const RequestContext& context, const VersionEntry& entry) const;

  const RegistryAccess access_;
  const RegistryAliases aliases_;
  const RunLog runs_;
};

}  // namespace millrace
