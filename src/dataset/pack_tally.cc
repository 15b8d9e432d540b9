#include "dataset/pack_tally.h"

#include <iterator>
#include <unordered_map>
#include <utility>

#include "dataset/tar_format.h"

namespace millrace {
namespace {

void count_member(TalliedPack& pack, const Extent& extent) {
  if (pack.begins.empty()) pack.begins.resize(pack.bytes / kTarBlockBytes + 1);
  const std::uint64_t block = extent.offset / kTarBlockBytes;
  // The size of the object differs between manifests: one of them is wrong.
  if (block >= pack.begins.size()) {
    pack.movable = false;
    return;
  }
  if (pack.begins[block]) return;
  pack.begins[block] = true;
  pack.live_bytes += kTarBlockBytes + tar_padded(extent.stored_bytes);
  ++pack.members;
}

}  // namespace

void PackTally::add(const std::string& key, std::uint64_t bytes) {
  if (key <= after_ || bytes == 0 || bytes > kPackBytesMax) return;
  packs_.try_emplace(key, TalliedPack{.bytes = bytes});
  if (packs_.size() <= kPacksMax) return;
  packs_.erase(std::prev(packs_.end()));
  next_ = std::prev(packs_.end())->first;
}

Status PackTally::count(const Manifest& manifest, bool movable) {
  std::unordered_map<std::uint32_t, TalliedPack*> numbered;
  for (std::uint32_t number = 0; number < manifest.objects(); ++number) {
    MR_ASSIGN_OR_RETURN(const ManifestObject object, manifest.object(number));
    const auto pack = packs_.find(object.key.value());
    if (pack == packs_.end()) continue;
    numbered.emplace(number, &pack->second);
    pack->second.movable = pack->second.movable && movable;
  }
  if (numbered.empty()) return {};
  for (EntryIndex index = 0; index < manifest.entries(); ++index) {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(index));
    if (entry.kind() != EntryKind::kFile || entry.size() == 0) continue;
    MR_ASSIGN_OR_RETURN(const std::vector<Extent> extents, manifest.extents(entry));
    const bool whole = extents.size() == 1 && entry.hash().kind == HashKind::kSha256;
    for (const Extent& extent : extents) {
      const auto pack = numbered.find(extent.object);
      if (pack == numbered.end()) continue;
      pack->second->movable = pack->second->movable && whole;
      count_member(*pack->second, extent);
    }
  }
  return {};
}

std::map<std::string, const TalliedPack*> PackTally::thin() {
  std::map<std::string, const TalliedPack*> found;
  std::uint64_t members = 0;
  for (const auto& [key, pack] : packs_) {
    if (!pack.thin()) continue;
    members += pack.members;
    if (members > kMembersMax && !found.empty()) {
      next_ = found.rbegin()->first;
      break;
    }
    found.emplace(key, &pack);
  }
  return found;
}

}  // namespace millrace
