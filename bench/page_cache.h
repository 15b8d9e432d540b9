#pragma once

namespace millrace::bench {

// Throws std::runtime_error unless we may mount and drop the page cache.
void require_root();

// Writes out what is dirty, and forgets all pages, names and attributes that can be read again.
void drop_page_cache();

}  // namespace millrace::bench
