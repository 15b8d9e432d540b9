#include "dataset/reserved_keys.h"

#include <utility>

#include <fmt/format.h>

#include "dataset/log_record_fields.h"
#include "dataset/registry_keys.h"

namespace millrace {

Result<std::optional<std::string>> ReservedKeys::fault(const RequestContext& context,
                                                       std::string_view key) {
  if (key.starts_with(kOwnPrefix)) return "belongs to the registry itself";
  std::size_t begin = 0;  // Of a component.
  std::size_t version_begin = 0;
  for (std::size_t end = key.find('/'); end != std::string_view::npos;
       version_begin = begin, begin = end + 1, end = key.find('/', begin)) {
    const std::string_view component = key.substr(begin, end - begin);
    if (version_begin == 0 || !is_record_nonce(component)) continue;
    auto dataset = DatasetName::parse(key.substr(0, version_begin - 1));
    auto version = VersionName::parse(key.substr(version_begin, begin - 1 - version_begin));
    if (!dataset || !version) continue;
    const VersionRef ref{*std::move(dataset), *std::move(version)};
    MR_ASSIGN_OR_RETURN(const bool reserved, is_reserved(context, ref, component));
    if (reserved) return fmt::format("belongs to {}, which may go", ref.text());
  }
  return std::nullopt;
}

Result<bool> ReservedKeys::is_reserved(const RequestContext& context, const VersionRef& ref,
                                       std::string_view nonce) {
  MutexLock lock(mutex_);
  if (!datasets_) {
    MR_ASSIGN_OR_RETURN(const std::vector<DatasetName> names, registry_.datasets(context));
    datasets_.emplace();
    for (const DatasetName& name : names)
      datasets_->insert(name.text());
  }
  if (!datasets_->contains(ref.dataset.text())) return false;
  auto known = nonces_.find(ref);
  if (known == nonces_.end()) {
    const auto history = registry_.history(context, ref);
    if (!history && history.error() != StatusCode::kNotFound) return failure(history.error());
    known = nonces_.try_emplace(ref).first;
    if (history) {
      for (const VersionEntry& entry : *history) {
        if (entry.event == VersionEvent::kReserved) known->second.insert(entry.nonce);
      }
    }
  }
  return known->second.contains(nonce);
}

}  // namespace millrace
