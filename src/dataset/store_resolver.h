#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "objectstore/object_store.h"

namespace millrace {

// Opens the store behind a URL that a manifest names, as whoever reads may see it: with the
// reader's own credentials, and refusing what a manifest must not lead to. The same URL gives the
// same store. Called from any thread, for each request: it remembers what it opened.
//
// Objects there are cached under StoreId(store->describe()), which tells them from objects of the
// same key in another store.
using StoreResolver = std::function<Result<std::shared_ptr<ObjectStore>>(const std::string& url)>;

// For those who know of no other store: kUnsupported, always.
Result<std::shared_ptr<ObjectStore>> refuse_other_stores(const std::string& url);

}  // namespace millrace
