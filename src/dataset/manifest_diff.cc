#include "dataset/manifest_diff.h"

#include "dataset/manifest_cursor.h"

namespace millrace {
namespace {

std::uint64_t bytes_of_file(const ManifestEntry& entry) {
  return entry.kind() == EntryKind::kFile ? entry.size() : 0;
}

void count_difference(ManifestDiffTotals::Count& count, const ManifestEntry& entry) {
  ++count.entries;
  count.bytes += bytes_of_file(entry);
}

// Two manifests side by side, each at its next entry.
class ManifestMerge {
 public:
  ManifestMerge(const Manifest& before, const Manifest& after, const ManifestDiffSink& sink)
      : before_(before), after_(after), sink_(sink), old_(before), new_(after) {}

  Result<ManifestDiffTotals> run() {
    MR_ASSIGN_OR_RETURN(auto from, old_.next());
    MR_ASSIGN_OR_RETURN(auto to, new_.next());
    while (from || to) {
      const std::strong_ordering order = !from ? std::strong_ordering::greater
                                         : !to ? std::strong_ordering::less
                                               : compare_entries(from->path, to->path);
      if (order < 0) {
        count_difference(totals_.removed, from->entry);
        MR_RETURN_IF_ERROR(
            sink_({ManifestChange::kRemoved, from->path, from->entry, std::nullopt}));
      } else if (order > 0) {
        count_difference(totals_.added, to->entry);
        MR_RETURN_IF_ERROR(sink_({ManifestChange::kAdded, to->path, std::nullopt, to->entry}));
      } else {
        MR_RETURN_IF_ERROR(compare(*from, *to));
      }
      if (order <= 0) {
        MR_ASSIGN_OR_RETURN(from, old_.next());
      }
      if (order >= 0) {
        MR_ASSIGN_OR_RETURN(to, new_.next());
      }
    }
    return totals_;
  }

 private:
  Status compare(const ManifestCursor::Item& from, const ManifestCursor::Item& to) {
    MR_ASSIGN_OR_RETURN(const bool same, is_same(from.entry, to.entry));
    if (same) return {};
    count_difference(totals_.changed, to.entry);
    return sink_({ManifestChange::kChanged, to.path, from.entry, to.entry});
  }

  Result<bool> is_same(const ManifestEntry& from, const ManifestEntry& to) const {
    if (from.kind() != to.kind() || from.mode() != to.mode() || from.size() != to.size() ||
        from.hash() != to.hash()) {
      return false;
    }
    if (from.kind() != EntryKind::kSymlink) return true;
    MR_ASSIGN_OR_RETURN(const std::string_view old_target, before_.symlink_target(from));
    MR_ASSIGN_OR_RETURN(const std::string_view new_target, after_.symlink_target(to));
    return old_target == new_target;
  }

  const Manifest& before_;
  const Manifest& after_;
  const ManifestDiffSink& sink_;
  ManifestCursor old_;
  ManifestCursor new_;
  ManifestDiffTotals totals_;
};

}  // namespace

Result<ManifestDiffTotals> diff_manifests(const Manifest& before, const Manifest& after,
                                          const ManifestDiffSink& sink) {
  return ManifestMerge(before, after, sink).run();
}

}  // namespace millrace
