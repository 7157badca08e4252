// SPDX-License-Identifier: Apache-2.0
// Runs the storage contract with a cache that stores objects, and with one that cannot.
#include "cache/node/cached_storage.h"
#include "storage/storage_contract.h"
#include "storage/storage_contract_test.cpp"

namespace feedline::storage {
namespace {

std::shared_ptr<const Storage> cached(std::uint64_t limit) {
  static const TemporaryFolder folder;
  static int number = 0;
  auto cache = cache::NodeCache::open(folder.path(std::to_string(number++)), {.bytes = limit});
  EXPECT_TRUE(cache);
  return std::make_shared<cache::CachedStorage>(local_storage(), *cache);
}

const auto kStorages = testing::Values(StorageUnderTest{"cached", [] { return cached(1 << 30); }},
                                       StorageUnderTest{"without_room", [] { return cached(1); }});
INSTANTIATE_TEST_SUITE_P(Cached, ObjectContract, kStorages, name_of_storage);
INSTANTIATE_TEST_SUITE_P(Cached, StorageContract, kStorages, name_of_storage);

}  // namespace
}  // namespace feedline::storage
