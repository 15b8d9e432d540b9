#include "cli/location.h"

#include <filesystem>

#include <fmt/format.h>

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  std::string normal = (error ? fs::path(path) : absolute).lexically_normal().string();
  while (normal.size() > 1 && normal.ends_with('/'))
    normal.pop_back();
  return normal;
}

Location locate_file(StoreUrl url, bool names_directory, const StoreUrl& store) {
  url.root = absolute_path(url.root);
  if (store.scheme == StoreUrl::Scheme::kFile) {
    const std::string root = absolute_path(store.root);
    if (url.root == root) return {store, ""};
    if (url.root.starts_with(root + "/")) {
      return {store, url.root.substr(root.size() + 1) + (names_directory ? "/" : "")};
    }
  }
  std::error_code error;
  if (names_directory || url.root == "/" || fs::is_directory(url.root, error)) return {url, ""};
  const fs::path path(url.root);
  url.root = path.parent_path().string();
  return {url, path.filename().string()};
}

}  // namespace

std::string Location::directory_prefix() const {
  return key.empty() || key.ends_with('/') ? key : key + "/";
}

Location Location::child(std::string_view name) const {
  return {store, directory_prefix() + std::string(name)};
}

std::string Location::name() const {
  std::string_view path = key;
  if (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string Location::to_string() const {
  StoreUrl shown = store;
  shown.parameters.clear();
  std::string text = shown.to_string();
  if (key.empty()) return text;
  return text.ends_with('/') ? text + key : text + "/" + key;
}

Result<Location> resolve_location(const std::string& text, const StoreUrl& store) {
  if (text.starts_with(kStorePrefix)) {
    std::string_view path = std::string_view(text).substr(kStorePrefix.size());
    while (path.starts_with('/'))
      path.remove_prefix(1);
    return Location{store, std::string(path)};
  }
  if (text.starts_with("s3:") && !text.starts_with("s3://")) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' is no URL: expected s3://bucket/key, or store:{} for that "
                               "path inside --store",
                               text, text));
  }
  if (!looks_like_store_url(text)) return Location{store, text};
  MR_ASSIGN_OR_RETURN(ObjectUrl object, parse_object_url(text));
  if (object.store.scheme == StoreUrl::Scheme::kFile) {
    return locate_file(std::move(object.store), text.ends_with('/'), store);
  }
  const bool same_root = object.store.scheme == store.scheme && object.store.root == store.root;
  if (same_root && object.store.parameters.empty()) object.store.parameters = store.parameters;
  return Location{std::move(object.store), std::move(object.key)};
}

}  // namespace millrace::cli
