// SPDX-License-Identifier: Apache-2.0
// A storage read by a user's library: objects, listings, and invalid results that must be rejected.
#include "storage/foreign/foreign_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "storage/registry.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

// Stores objects in memory by URL.
class Shelf final : public ForeignStorage {
 public:
  std::map<std::string, std::string> objects;
  mutable std::atomic<int> stats = 0, reads = 0;

  std::string explain() const override { return "shelf:// is read by a test"; }
  Result<ForeignObject> stat(const std::string& url) const override {
    ++stats;
    if (const auto found = objects.find(url); found != objects.end())
      return ForeignObject{"", found->second.size(), tag_of(found->second), false};
    const auto below = objects.lower_bound(url + "/");
    if (below != objects.end() && below->first.starts_with(url + "/")) return ForeignObject{"", 0, 0, true};
    return storage_error("not on the shelf", ENOENT);
  }
  Result<std::size_t> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) const override {
    const auto found = objects.find(url);
    if (found == objects.end()) return storage_error("not on the shelf", ENOENT);
    ++reads;
    const std::string part = found->second.substr(std::min<std::size_t>(offset, found->second.size()), out.size());
    std::memcpy(out.data(), part.data(), part.size());
    return part.size();
  }
  Result<std::vector<ForeignObject>> list(const std::string& url, bool all) const override {
    const std::string front = url.ends_with('/') ? url : url + "/";
    std::vector<ForeignObject> found;
    for (const auto& [name, content] : objects) {
      if (!name.starts_with(front)) continue;
      const std::string path = name.substr(front.size());
      const std::string folder = path.substr(0, path.find('/'));
      if (all || folder == path)
        found.push_back({path, content.size(), tag_of(content), false});
      else if (found.empty() || found.back().path != folder)
        found.push_back({folder, 0, 0, true});
    }
    return found;
  }

 private:
  static std::uint64_t tag_of(const std::string& content) { return std::hash<std::string>()(content) | 1; }
};

std::shared_ptr<Shelf> contract_shelf() {
  static const auto shelf = std::make_shared<Shelf>();
  return shelf;
}

INSTANTIATE_TEST_SUITE_P(Foreign, ObjectContract,
                         testing::Values(StorageUnderTest{
                             "foreign", [] { return std::make_shared<AdaptedStorage>(contract_shelf()); },
                             [](const TemporaryFolder&, const std::string& name, const std::string& content) {
                               contract_shelf()->objects["shelf://" + name] = content;
                               return "shelf://" + name;
                             }}),
                         name_of_storage);

class ForeignStorageTest : public testing::Test {
 protected:
  ForeignStorageTest() {
    shelf_->objects = {{"shelf://a/b/1.jpg", "0123456789"}, {"shelf://a/b/c/2.jpg", "x"}, {"shelf://a/3.tar", ""}};
  }
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
  AdaptedStorage storage_{shelf_};
  memory::ByteBuffer buffer_;
};

std::string text_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(ForeignStorageTest, ReadsRangesAndWholeObjects) {
  const auto reader = storage_.open("shelf://a/b/1.jpg", Access::kRead);
  ASSERT_TRUE(reader);
  std::vector<std::byte> room(7);
  EXPECT_EQ(*(*reader)->read_at(2, room), 7u);
  EXPECT_EQ(text_in(room), "2345678");
  EXPECT_EQ(*(*reader)->read_at(8, room), 2u) << "the object ends";
  EXPECT_EQ(*(*reader)->read_at(80, room), 0u);
  EXPECT_EQ(text_in(*storage_.read_all("shelf://a/b/1.jpg", buffer_, 10)), "0123456789");
  EXPECT_EQ(storage_.read_all("shelf://a/b/1.jpg", buffer_, 9).error().code, ErrorCode::kData);
  EXPECT_EQ(storage_.read_all("shelf://a/3.tar", buffer_, 9)->size(), 0u);
  const auto missing = storage_.open("shelf://a/4.tar", Access::kRead);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().system_errno, ENOENT);
  EXPECT_EQ(missing.error().where.shard, "shelf://a/4.tar");
  EXPECT_EQ(storage_.open("shelf://a/b", Access::kRead).error().system_errno, EISDIR);
}

TEST_F(ForeignStorageTest, AnotherLengthIsNoticedWithoutAskingForIt) {
  const Version version = *storage_.stat("shelf://a/b/1.jpg");
  const int before = shelf_->stats;
  EXPECT_EQ(text_in(*storage_.read_version("shelf://a/b/1.jpg", buffer_, 100, version)), "0123456789");
  EXPECT_EQ(shelf_->reads, 1);
  for (const char* content : {"012345678", "0123456789a"}) {
    shelf_->objects["shelf://a/b/1.jpg"] = content;
    const auto changed = storage_.read_version("shelf://a/b/1.jpg", buffer_, 100, version);
    ASSERT_FALSE(changed) << content;
    EXPECT_NE(changed.error().message().find("changed between index and read"), std::string::npos);
  }
  EXPECT_EQ(shelf_->stats, before);
  const auto reader = storage_.open("shelf://a/b/1.jpg", Access::kRead);
  shelf_->objects["shelf://a/b/1.jpg"] = "another one";
  EXPECT_NE(*(*reader)->stat(), *(*reader)->version());
}

TEST_F(ForeignStorageTest, ListsFoldersAndTrees) {
  const auto entries = storage_.list("shelf://a");
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "3.tar");
  EXPECT_TRUE((*entries)[1].is_directory);
  const auto flat = storage_.list_below("shelf://a", Depth::kFolder);
  EXPECT_EQ(flat->folders, std::vector<std::string>{"b"});
  const auto all = storage_.list_below("shelf://a/b", Depth::kAll);
  ASSERT_EQ(all->objects.size(), 2u);
  EXPECT_EQ(all->objects[1].path, "c/2.jpg");
  EXPECT_NE(all->objects[1].tag, 0u);
  EXPECT_TRUE(*storage_.is_directory("shelf://a/b"));
  EXPECT_TRUE(*storage_.is_directory("shelf://nothing/"));
  EXPECT_FALSE(*storage_.is_directory("shelf://a/3.tar"));
}

TEST_F(ForeignStorageTest, IsAskedForByTheSchemeOfAUrl) {
  int asked = 0;
  set_foreign_storages([&](const std::string& scheme) -> Result<std::shared_ptr<const ForeignStorage>> {
    ++asked;
    if (scheme == "shelf") return shelf_;
    if (scheme == "az") return config_error("install a shelf");
    return nullptr;
  });
  const auto found = open("shelf://me:pw@a/b");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->object.find("pw"), std::string::npos) << found->object;
  EXPECT_EQ(open("shelf://a/c")->storage, found->storage) << "one storage for a scheme";
  EXPECT_EQ(asked, 1);
  EXPECT_NE(open("az://c/d").error().message().find("install a shelf"), std::string::npos);
  EXPECT_NE(open("shelv://c/d").error().message().find("'shelv' is not a known scheme"), std::string::npos);
  EXPECT_TRUE(open("s3://b/k")) << "its own schemes stay the engine's";
  EXPECT_EQ(asked, 3);
  set_foreign_storages({});
}

}  // namespace
}  // namespace feedline::storage
