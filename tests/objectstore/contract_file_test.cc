#include <unistd.h>

#include <filesystem>

#include "base/thread_pool.h"
#include "objectstore/file_object_store.h"
#include "tests/objectstore/contract_suite.h"

namespace millrace {
namespace {

// A store in a directory that goes with it.
std::shared_ptr<ObjectStore> make_file_store() {
  struct Place {
    ~Place() {
      store.reset();
      std::filesystem::remove_all(path);
    }
    std::string path;
    ThreadPool disk{{.name = "disk", .threads = 4, .queued_tasks_max = 1024}};
    std::unique_ptr<FileObjectStore> store;
  };
  auto place = std::make_shared<Place>();
  place->path = ::testing::TempDir() + "millrace-contract-XXXXXX";
  if (::mkdtemp(place->path.data()) == nullptr) return nullptr;
  place->store = FileObjectStore::open(place->path, place->disk).value();
  return {place, place->store.get()};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(File, ObjectStoreContract,
                         ::testing::Values(ContractTarget{
                             .name = "file",
                             .make_store = make_file_store,
                             .traits = {.keys_may_be_prefixes_of_keys = false,
                                        .part_bytes = 64 * kKiB}}),
                         contract_target_name);

}  // namespace millrace
