#include "base/page_memory.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdlib>

#include "base/bytes.h"

#if defined(__SANITIZE_ADDRESS__)
#define MR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MR_ASAN 1
#endif
#endif
#if defined(MR_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace millrace {

namespace {

constexpr std::size_t kPageBytes = 4 * kKiB;
// Below this the heap is cheaper than a system call and wastes less on page tables.
constexpr std::size_t kHeapBytesMax = 64 * kKiB;

}  // namespace

std::byte* allocate_pages(std::size_t bytes) {
  assert(bytes > 0 && bytes % kPageBytes == 0);
  if (bytes <= kHeapBytesMax) return static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes));
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

void free_pages(std::byte* pages, std::size_t bytes) {
  allow_access(pages, bytes, bytes);
  if (bytes <= kHeapBytesMax) {
    std::free(pages);
  } else {
    const int failed = munmap(pages, bytes);
    assert(failed == 0);
  }
}

void allow_access([[maybe_unused]] std::byte* pages, [[maybe_unused]] std::size_t block_bytes,
                  [[maybe_unused]] std::size_t bytes) {
#if defined(MR_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(pages, bytes);
  ASAN_POISON_MEMORY_REGION(pages + bytes, block_bytes - bytes);
#endif
}

}  // namespace millrace
