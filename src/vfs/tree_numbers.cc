#include "vfs/tree_numbers.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/at_hand.h"
#include "base/bytes.h"
#include "base/checked_line.h"
#include "base/checksum.h"
#include "base/decimal.h"
#include "base/hex.h"
#include "base/little_endian.h"
#include "base/log.h"
#include "platform/digest_text.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr std::string_view kTreesHeader = "millrace-trees 1\n";
constexpr std::uint64_t kTreesBytesMax = 256 * kMiB;

std::string tree_line(const NumberedTree& tree) {
  const json fields{{"number", tree.number.value()},
                    {"version", tree.ref.text()},
                    {"nonce", tree.nonce},
                    {"layout", to_hex(tree.layout.layout_digest)},
                    {"manifest", tree.layout.manifest_key},
                    {"manifest_bytes", tree.layout.manifest_bytes},
                    {"index_bytes", tree.layout.index_bytes},
                    {"store", tree.store}};
  return checked_line(fields.dump());
}

template <class T>
std::optional<T> field(const json& fields, const char* name) {
  const auto found = fields.find(name);
  if (found == fields.end()) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return std::nullopt;
  } else {
    if (!found->is_number_unsigned()) return std::nullopt;
  }
  return found->get<T>();
}

// Nothing when the line is not as it was written.
std::optional<NumberedTree> parse_tree_line(std::string_view line) {
  const std::optional<std::string_view> text = checked_text(line);
  if (!text) return std::nullopt;
  const json fields = json::parse(*text, nullptr, false);
  if (!fields.is_object()) return std::nullopt;
  const auto number = field<std::uint64_t>(fields, "number");
  const auto version = field<std::string>(fields, "version");
  const auto nonce = field<std::string>(fields, "nonce");
  const auto layout = field<std::string>(fields, "layout");
  const auto manifest = field<std::string>(fields, "manifest");
  const auto manifest_bytes = field<std::uint64_t>(fields, "manifest_bytes");
  const auto index_bytes = field<std::uint64_t>(fields, "index_bytes");
  if (!number || !version || !nonce || !layout || !manifest || !manifest_bytes || !index_bytes) {
    return std::nullopt;
  }
  const Result<VersionRef> ref = VersionRef::parse(*version);
  const std::optional<Sha256Digest> digest = parse_sha256(*layout);
  if (*number == 0 || *number > kTreeNumberMax || !ref || !digest) return std::nullopt;
  NumberedTree tree{.number = TreeNumber(static_cast<std::uint32_t>(*number)),
                    .ref = *ref,
                    .nonce = *nonce,
                    .layout = {.manifest_key = *manifest,
                               .manifest_bytes = *manifest_bytes,
                               .index_bytes = *index_bytes}};
  tree.layout.layout_digest = *digest;
  tree.store = field<std::string>(fields, "store").value_or("");
  return tree;
}

}  // namespace

TreeNumber derived_tree_number(std::string_view nonce, std::uint32_t attempt) {
  const Sha256Digest digest = sha256(as_bytes(fmt::format("{}#{}", nonce, attempt)));
  const std::uint32_t number = load_little_endian<std::uint32_t>(digest.data()) & kTreeNumberMax;
  return TreeNumber(number == 0 ? 1 : number);
}

std::uint32_t tree_check_of(std::string_view nonce) {
  const std::uint32_t check = crc32c(as_bytes(nonce)) & 0xffffff;
  return check == 0 ? 1 : check;
}

Result<std::unique_ptr<TreeNumbers>> TreeNumbers::open(Disk& disk, std::string path,
                                                       std::string store) {
  std::unique_ptr<TreeNumbers> numbers(new TreeNumbers(disk, std::move(path), std::move(store)));
  MR_RETURN_IF_ERROR(numbers->load());
  return numbers;
}

Status TreeNumbers::load() {
  MutexLock lock(mutex_);
  MR_ASSIGN_OR_RETURN(file_, disk_.open(path_, OpenMode::kCreate));
  MR_ASSIGN_OR_RETURN(const FileFacts facts, disk_.stat(path_));
  if (facts.size > kTreesBytesMax) {
    return {StatusCode::kCorruption, fmt::format("{} is no list of trees: it is too long", path_)};
  }
  std::string text(facts.size, '\0');
  MR_ASSIGN_OR_RETURN(const std::size_t size,
                      file_->read_at(0, std::as_writable_bytes(std::span(text))));
  text.resize(size);
  // A kill may have torn the first line too.
  if (!text.starts_with(kTreesHeader)) {
    if (!kTreesHeader.starts_with(text)) {
      return {StatusCode::kCorruption,
              fmt::format("{} does not begin with '{}': it was written by another version of "
                          "Millrace, or is something else; move it away",
                          path_, kTreesHeader.substr(0, kTreesHeader.size() - 1))};
    }
    MR_RETURN_IF_ERROR(file_->truncate(0));
    MR_RETURN_IF_ERROR(file_->write_at(0, as_bytes(kTreesHeader)));
    MR_RETURN_IF_ERROR(file_->sync());
    file_bytes_ = kTreesHeader.size();
    return {};
  }
  std::size_t at = kTreesHeader.size();
  for (std::size_t end = text.find('\n', at); end != std::string::npos; end = text.find('\n', at)) {
    std::optional<NumberedTree> tree = parse_tree_line(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (!tree) {
      log_warn("a line of the list of trees is damaged", {{"file", path_}});
      continue;
    }
    const std::uint32_t number = tree->number.value();
    by_nonce_[tree->nonce] = number;
    trees_.insert_or_assign(number, *std::move(tree));
  }
  // What follows the last whole line is overwritten by the next one.
  file_bytes_ = at;
  return file_->truncate(at);
}

Status TreeNumbers::append(const NumberedTree& tree) {
  const std::string line = tree_line(tree);
  MR_RETURN_IF_ERROR(file_->write_at(file_bytes_, as_bytes(line)));
  MR_RETURN_IF_ERROR(file_->sync());
  file_bytes_ += line.size();
  return {};
}

Result<NumberedTree> TreeNumbers::number_of(const VersionRef& ref, const std::string& nonce,
                                            const VersionLayout& layout) {
  MutexLock lock(mutex_);
  NumberedTree tree{
      .number = TreeNumber(1), .ref = ref, .nonce = nonce, .layout = layout, .store = store_};
  if (const auto known = by_nonce_.find(nonce); known != by_nonce_.end()) {
    const NumberedTree& before = trees_.at(known->second);
    if (before.store == store_) return before;
    tree.number = before.number;
    // A refusal says nothing about the disk: nothing may come of it.
    MR_RETURN_IF_ERROR(AtHandOnly::may_wait_for_disk());
    replace(tree);
    return tree;
  }
  std::uint32_t attempt = 0;
  do {
    tree.number = derived_tree_number(nonce, attempt++);
  } while (trees_.contains(tree.number.value()));
  MR_RETURN_IF_ERROR(AtHandOnly::may_wait_for_disk());
  MR_RETURN_IF_ERROR(append(tree));
  by_nonce_[nonce] = tree.number.value();
  trees_.insert_or_assign(tree.number.value(), tree);
  return tree;
}

void TreeNumbers::renew(const NumberedTree& tree, const VersionLayout& layout) {
  NumberedTree renewed = tree;
  renewed.layout = layout;
  renewed.store = store_;
  MutexLock lock(mutex_);
  replace(renewed);
}

void TreeNumbers::replace(const NumberedTree& tree) {
  // Its number is safe: after a restart it begins with what was noted before, and finds this.
  if (const Status noted = append(tree); !noted.ok()) {
    log_warn("the new layout of a version cannot be noted",
             {{"version", tree.ref.text()}, {"error", noted.to_string()}});
  }
  trees_.insert_or_assign(tree.number.value(), tree);
}

std::optional<NumberedTree> TreeNumbers::find(TreeNumber number) const {
  MutexLock lock(mutex_);
  const auto found = trees_.find(number.value());
  if (found == trees_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> TreeNumbers::check_of(TreeNumber number) const {
  MutexLock lock(mutex_);
  const auto found = trees_.find(number.value());
  if (found == trees_.end()) return std::nullopt;
  return tree_check_of(found->second.nonce);
}

std::optional<NumberedTree> TreeNumbers::find_below(std::string_view path) const {
  MutexLock lock(mutex_);
  const NumberedTree* found = nullptr;
  for (const auto& [number, tree] : trees_) {
    if (tree.store != store_) continue;
    const std::string text = tree.ref.dataset.text() + "/" + tree.ref.version.text();
    if (text.starts_with(path) && text.size() > path.size() && text[path.size()] == '/')
      return tree;
    if (text != path) continue;
    if (found != nullptr) return std::nullopt;
    found = &tree;
  }
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::vector<NumberedTree> TreeNumbers::all() const {
  MutexLock lock(mutex_);
  std::vector<NumberedTree> trees;
  trees.reserve(trees_.size());
  for (const auto& [number, tree] : trees_)
    trees.push_back(tree);
  return trees;
}

}  // namespace millrace
