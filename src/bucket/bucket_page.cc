#include "bucket/bucket_page.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/file_name.h"

namespace millrace {
namespace {

// What a page was made from: all that the store listed behind its beginning, hidden or not.
class PageDraft {
 public:
  PageDraft(ObjectStore& store, BucketPage& page, const HiddenKeySink& hidden)
      : store_(store), page_(page), hidden_(hidden) {}

  // False when nothing in it is new: then the next one has to be asked for.
  Result<bool> take(const ListPage& listed);
  Status finish(const RequestContext& context);

 private:
  // The part of a key behind the directory; kInternal when it is not there.
  Result<std::string> text_of(const std::string& key) const;
  // Drops the objects that are directories too, and the last one when nobody can tell yet.
  Status settle_doubles(const RequestContext& context);
  void hide(const std::string& text, const std::string& reason) {
    hidden_(page_.directory + text, reason);
  }

  ObjectStore& store_;
  BucketPage& page_;
  const HiddenKeySink& hidden_;
};

Result<std::string> PageDraft::text_of(const std::string& key) const {
  if (!key.starts_with(page_.directory)) {
    return failure(StatusCode::kInternal, fmt::format("{} listed '{}', which is not below '{}'",
                                                      store_.describe(), key, page_.directory));
  }
  return key.substr(page_.directory.size());
}

Result<bool> PageDraft::take(const ListPage& listed) {
  page_.has_keys = page_.has_keys || !listed.objects.empty() || !listed.prefixes.empty();
  page_.is_last = listed.continuation.empty();
  for (const ObjectInfo& object : listed.objects) {
    MR_ASSIGN_OR_RETURN(const std::string text, text_of(object.key.value()));
    if (text.empty() && object.size > 0) {
      hide(text, fmt::format("it ends in '/' and has {} bytes", object.size));
    }
    if (text <= page_.after) continue;
    page_.entries.push_back(file_entry(text, object));
  }
  for (const std::string& prefix : listed.prefixes) {
    MR_ASSIGN_OR_RETURN(std::string text, text_of(prefix));
    if (text <= page_.after) continue;
    page_.entries.push_back({.text = std::move(text)});
  }
  return !page_.entries.empty();
}

Status PageDraft::finish(const RequestContext& context) {
  std::ranges::sort(page_.entries, {}, &BucketEntry::text);
  const auto twice =
      std::ranges::unique(page_.entries, std::ranges::equal_to(), &BucketEntry::text);
  page_.entries.erase(twice.begin(), twice.end());
  page_.through = page_.entries.empty() ? page_.after : page_.entries.back().text;
  MR_RETURN_IF_ERROR(settle_doubles(context));
  std::erase_if(page_.entries, [&](const BucketEntry& entry) {
    const auto fault = file_name_fault(entry.name());
    if (fault) hide(entry.text, *fault);
    return fault.has_value();
  });
  return {};
}

// "a" comes before "a-b", and that before "a/": the page may end between them.
Status PageDraft::settle_doubles(const RequestContext& context) {
  const BucketPage listed = page_;
  page_.entries.clear();
  for (const BucketEntry& entry : listed.entries) {
    const std::string as_directory = entry.text + "/";
    bool is_double = !entry.is_directory() && listed.find(as_directory) != nullptr;
    if (!entry.is_directory() && !listed.covers(as_directory)) {
      if (&entry == &listed.entries.back() && listed.entries.size() > 1) {
        // It begins the next page, which will tell.
        page_.through = listed.entries[listed.entries.size() - 2].text;
        break;
      }
      MR_ASSIGN_OR_RETURN(is_double, has_keys_below(context, store_, page_.directory + entry.text));
    }
    if (is_double) {
      hide(entry.text, "it is an object and also a directory of other objects");
    } else {
      page_.entries.push_back(entry);
    }
  }
  return {};
}

}  // namespace

BucketEntry file_entry(std::string_view name, const ObjectInfo& object) {
  return {.text = std::string(name),
          .size = object.size,
          .identity = object.identity,
          .modified = std::chrono::floor<std::chrono::seconds>(object.modified)};
}

std::vector<BucketEntry>::const_iterator BucketPage::behind(std::string_view text) const {
  return std::ranges::upper_bound(
      entries, text, {}, [](const BucketEntry& entry) { return std::string_view(entry.text); });
}

const BucketEntry* BucketPage::find(std::string_view text) const {
  const auto found = std::ranges::lower_bound(
      entries, text, {}, [](const BucketEntry& entry) { return std::string_view(entry.text); });
  return found != entries.end() && found->text == text ? &*found : nullptr;
}

Result<BucketPage> read_bucket_page(const RequestContext& context, ObjectStore& store,
                                    const std::string& directory, const std::string& after,
                                    std::uint32_t entries_max, const HiddenKeySink& hidden) {
  BucketPage page{.directory = directory, .after = after};
  PageDraft draft(store, page, hidden);
  ListRequest request{.prefix = directory,
                      .fold_directories = true,
                      .start_after = after.empty() ? "" : directory + after,
                      .entries_max = entries_max};
  for (bool more = true; more;) {
    MR_ASSIGN_OR_RETURN(const ListPage listed, store.list(context, request));
    // Asked for what follows a directory, some stores list that directory once more.
    MR_ASSIGN_OR_RETURN(const bool has_new, draft.take(listed));
    more = !has_new && !page.is_last;
    request.continuation = listed.continuation;
  }
  MR_RETURN_IF_ERROR(draft.finish(context));
  return page;
}

Result<bool> has_keys_below(const RequestContext& context, ObjectStore& store,
                            const std::string& key) {
  ListRequest request{.prefix = key + "/", .entries_max = 1};
  for (;;) {
    const Result<ListPage> page = store.list(context, request);
    if (!page && page.error().code() == StatusCode::kInvalidArgument) return false;
    if (!page) return failure(page.error());
    if (!page->objects.empty()) return true;
    if (page->continuation.empty()) return false;
    request.continuation = page->continuation;
  }
}

}  // namespace millrace
