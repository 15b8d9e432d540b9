#include "bench/page_cache.h"

#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace millrace::bench {

void require_root() {
  if (::geteuid() != 0) throw std::runtime_error("only root can drop the page cache and mount");
}

void drop_page_cache() {
  ::sync();
  if (!(std::ofstream("/proc/sys/vm/drop_caches") << "3\n").flush()) {
    throw std::runtime_error("cannot drop the page cache");
  }
}

}  // namespace millrace::bench
