#include "objectstore/memory_object_store.h"
#include "tests/objectstore/contract_suite.h"

namespace millrace {

INSTANTIATE_TEST_SUITE_P(Memory, ObjectStoreContract,
                         ::testing::Values(ContractTarget{
                             .name = "memory",
                             .make_store = [] { return std::make_shared<MemoryObjectStore>(); },
                             .traits = {.part_bytes = 64 * kKiB}}),
                         contract_target_name);

}  // namespace millrace
