// SPDX-License-Identifier: Apache-2.0
#include "cache/persisted_tables.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "storage/temporary_folder.h"

namespace feedline::cache {
namespace {

constexpr TableKind kKind{{0x6d61'6465, 1}, ".made-index", true};

class PersistedTablesTest : public testing::Test {
 protected:
  PersistedTablesTest() { ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1); }
  ~PersistedTablesTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  static std::vector<std::byte> table(std::uint64_t number, std::uint64_t format = 1) {
    memory::ByteBuffer buffer;
    const auto file = FrameBuilder({kKind.frame.magic, format}, {number}).write(buffer);
    return {file.begin(), file.end()};
  }
  PersistedTables tables(const std::string& directory = "") { return {kKind, directory, notes_}; }
  // Reads the object's stored table in both ways, and returns its number; 0 if there is none.
  std::uint64_t stored(const PersistedTables& tables, const std::string& object) {
    std::uint64_t read = 0, mapped = 0;
    const auto number_of = [](std::span<const std::byte> file) { return FrameReader(file, kKind.frame, 1).number(0); };
    tables.read(*local_, object, 4096,
                [&](PersistedTables::Bytes bytes) { return read = number_of(bytes.file), true; });
    tables.map(*local_, object, [&](PersistedTables::Bytes bytes) { return mapped = number_of(bytes.file), true; });
    EXPECT_EQ(read, mapped);
    return read;
  }

  storage::TemporaryFolder folder_;
  std::shared_ptr<const storage::Storage> local_ = storage::local_storage();
  std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

TEST_F(PersistedTablesTest, AreNextToTheObjectOrInTheCacheFolderOrInTheChosenOne) {
  const std::string object = folder_.write("data/x.tar", "content");
  ASSERT_TRUE(tables().save(*local_, object, table(1)));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("data/.feedline/x.tar.made-index")));
  EXPECT_EQ(stored(tables(), object), 1u);
  ASSERT_TRUE(tables().save(*local_, "/proc/nowhere/x.tar", table(2)));
  EXPECT_EQ(stored(tables(), "/proc/nowhere/x.tar"), 2u);
  EXPECT_EQ(stored(tables(), "/proc/nowhere/else/x.tar"), 0u) << "another one of this name";
  ASSERT_TRUE(tables(folder_.path("chosen")).save(*local_, object, table(3)));
  EXPECT_EQ(stored(tables(folder_.path("chosen")), object), 3u);
  EXPECT_EQ(stored(tables(), object), 1u);
  EXPECT_TRUE(notes_->lines().empty());
}

TEST_F(PersistedTablesTest, AnotherVersionsAreNotedOnceAndReplaced) {
  for (const std::string name : {"data/a.tar", "data/b.tar"}) {
    const std::string object = folder_.write(name, "content");
    ASSERT_TRUE(tables().save(*local_, object, table(1, 7)));
    EXPECT_EQ(stored(tables(), object), 0u);
    ASSERT_TRUE(tables().save(*local_, object, table(2)));
    EXPECT_EQ(stored(tables(), object), 2u);
  }
  ASSERT_EQ(notes_->lines().size(), 1u) << "once for a folder";
  EXPECT_NE(notes_->lines()[0].find("another version of Feedline and are rebuilt"), std::string::npos);
}

TEST_F(PersistedTablesTest, WhatCannotBeKeptIsNotedUnlessAFolderWasChosen) {
  ::setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  EXPECT_TRUE(tables().save(*local_, "/proc/nowhere/x.tar", table(1)));
  ASSERT_EQ(notes_->lines().size(), 1u);
  EXPECT_NE(notes_->lines()[0].find("will be rebuilt next time"), std::string::npos);
  folder_.write("file", "");
  const auto refused = tables(folder_.path("file/below")).save(*local_, "x.tar", table(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kStorage);
}

TEST_F(PersistedTablesTest, WhatIsNotTakenLeavesTheNextPlaceItsTurn) {
  const std::string object = folder_.write("data/x.tar", "content");
  ASSERT_TRUE(tables().save(*local_, object, table(1)));
  const std::string index = folder_.path("data/.feedline/x.tar.made-index");
  std::filesystem::rename(index, folder_.path("kept"));
  std::filesystem::create_directory(index);  // no file can be created there
  ASSERT_TRUE(tables().save(*local_, object, table(2)));
  std::filesystem::remove(index);
  std::filesystem::rename(folder_.path("kept"), index);
  std::vector<std::uint64_t> offered;
  tables().read(*local_, object, 4096, [&](PersistedTables::Bytes bytes) {
    offered.push_back(FrameReader(bytes.file, kKind.frame, 1).number(0));
    return false;
  });
  EXPECT_EQ(offered, (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace feedline::cache
