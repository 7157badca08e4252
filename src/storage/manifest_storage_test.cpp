// SPDX-License-Identifier: Apache-2.0
#include "storage/manifest_storage.h"

#include <gtest/gtest.h>

#include "storage/storage_contract.h"
#include "storage/temporary_folder.h"

namespace feedline::storage {
namespace {

// Local files whose first reads are damaged in transit.
class DamagingStorage final : public Storage {
 public:
  explicit DamagingStorage(int times) : times_(times) {}
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override {
    return local_storage()->open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return local_storage()->read_all(path, buffer, most);
  }
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override {
    ++reads;
    auto bytes = local_storage()->read_version(path, buffer, most, version);
    if (bytes && times_-- > 0) const_cast<std::byte&>((*bytes)[1]) ^= std::byte{4};
    return bytes;
  }
  Result<std::vector<Entry>> list(const std::string& folder) const override { return local_storage()->list(folder); }
  Result<ObjectStat> stat(const std::string& path) const override { return local_storage()->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return local_storage()->is_directory(path); }
  std::string identity(const std::string& path) const override { return local_storage()->identity(path); }
  mutable int reads = 0;

 private:
  mutable int times_;
};

struct ManifestStorageTest : testing::Test {
  const TemporaryFolder folder;
  const std::string content = recognisable_bytes(5000);
  const std::string path = folder.write("a.tar", content);
  const ObjectSum sum = sum_of(SumKind::kSha256, std::as_bytes(std::span(std::string_view(content))));
  memory::ByteBuffer buffer;

  std::vector<ListedObject> listed(std::uint64_t bytes = 5000) const { return {{path, bytes, sum}}; }
};

TEST_F(ManifestStorageTest, WhatIsReadAsAWholeIsCompared) {
  const auto inner = std::make_shared<DamagingStorage>(0);
  const ManifestStorage storage(inner, listed());
  const auto got = storage.read_all(path, buffer, 10'000);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(text_of(*got), content);
  EXPECT_EQ(inner->reads, 1);
  EXPECT_NE(storage.summary().find("1 objects that were read as a whole"), std::string::npos) << storage.summary();
}

TEST_F(ManifestStorageTest, DamageUnderWayIsReadAgainAndOtherDamageIsAnError) {
  const auto once = std::make_shared<DamagingStorage>(1);
  const auto got = ManifestStorage(once, listed()).read_all(path, buffer, 10'000);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(text_of(*got), content);
  EXPECT_EQ(once->reads, 2);
  const auto always = std::make_shared<DamagingStorage>(9);
  const auto refused = ManifestStorage(always, listed()).read_all(path, buffer, 10'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(always->reads, 2);
  EXPECT_EQ(refused.error().code, ErrorCode::kStorage);
  for (const std::string& part : {path, described(sum), std::string("feedline-pack.json"), std::string("verify=None")})
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << refused.error().message();
}

TEST_F(ManifestStorageTest, AnotherLengthIsAnErrorAtOnce) {
  const ManifestStorage storage(local_storage(), listed(4999));
  const auto opened = storage.open(path, Access::kMap);
  ASSERT_FALSE(opened);
  for (const char* part : {"5000 bytes", "4999", "truncated"})
    EXPECT_NE(opened.error().message().find(part), std::string::npos) << opened.error().message();
  EXPECT_FALSE(storage.open_version(path, Access::kMap, *storage.stat(path)));
  EXPECT_FALSE(storage.read_all(path, buffer, 10'000));
  EXPECT_FALSE(storage.check_known(path, *storage.stat(path))) << "nor if it is never opened";
  EXPECT_TRUE(ManifestStorage(local_storage(), listed()).check_known(path, *storage.stat(path)));
  EXPECT_TRUE(ManifestStorage(local_storage(), listed()).open(path, Access::kMap));
}

TEST_F(ManifestStorageTest, WhatIsNotListedIsReadAsItIs) {
  const std::string other = folder.write("b.tar", "other");
  const ManifestStorage storage(local_storage(), listed());
  EXPECT_TRUE(storage.open(other, Access::kRead));
  EXPECT_EQ(text_of(*storage.read_all(other, buffer, 100)), "other");
  EXPECT_FALSE(*storage.known_sum(other, {}));
  EXPECT_EQ(*storage.known_sum(path, {}), sum) << "the copying process compares it";
}

}  // namespace
}  // namespace feedline::storage
