#pragma once

#include <cstddef>

namespace millrace {

// Memory in whole pages for buffer pools. Blocks start at a page boundary, as O_DIRECT needs; large
// ones are mappings of their own, so that freeing them really gives the memory back.

// Null when the system has none. `bytes` is a multiple of 4 KiB.
std::byte* allocate_pages(std::size_t bytes);
void free_pages(std::byte* pages, std::size_t bytes);

// Tells the address sanitizer, where there is one, that only the first `bytes` of the block may be
// touched: a pool's reuse would hide overruns and use after free from it.
void allow_access(std::byte* pages, std::size_t block_bytes, std::size_t bytes);

}  // namespace millrace
