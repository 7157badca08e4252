// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/block_store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class BlockStoreTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1); }
  void TearDown() override {
    if (before_.empty())
      ::unsetenv("XDG_CACHE_HOME");
    else
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  static std::optional<Bytes> add(BlockStore& store, const std::string& text) {
    const Bytes part = bytes_of(text);
    return store.add({&part, 1});
  }
  std::ptrdiff_t files() const {
    return std::ranges::distance(std::filesystem::directory_iterator(folder_.path("cache/feedline")));
  }

  storage::TemporaryFolder folder_;
  const std::string before_ = std::getenv("XDG_CACHE_HOME") ? std::getenv("XDG_CACHE_HOME") : "";
};

TEST_F(BlockStoreTest, PartsBecomeOneBlockInAFileWithoutAName) {
  BlockStore store;
  const std::string first = "one, ", second = "two";
  const std::vector<Bytes> parts{bytes_of(first), {}, bytes_of(second)};
  const auto block = store.add(parts);
  ASSERT_TRUE(block) << store.problem();
  EXPECT_EQ(text_of(*block), "one, two");
  EXPECT_EQ(store.bytes(), 8u);
  EXPECT_EQ(files(), 0);
}

TEST_F(BlockStoreTest, BlocksOfAnySizeStayReadable) {
  BlockStore store;
  std::vector<std::string> texts;
  for (const std::size_t bytes : {1UL, 63UL, 64UL, 4097UL, 70UL << 20, 5UL, 40UL << 20, 40UL << 20, 1UL})
    texts.emplace_back(bytes, static_cast<char>('a' + texts.size()));
  std::vector<Bytes> blocks;
  for (const std::string& text : texts) blocks.push_back(add(store, text).value());
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(text_of(blocks[i]) == texts[i], true) << i;
}

TEST_F(BlockStoreTest, ALimitIsHeldAndReported) {
  BlockStore store(20'000);
  EXPECT_TRUE(add(store, std::string(9'000, 'x')));
  EXPECT_FALSE(add(store, std::string(9'000, 'y')));
  EXPECT_NE(store.problem().find("the limit of 0 MiB is reached"), std::string::npos) << store.problem();
  EXPECT_EQ(store.bytes(), 9'000u);
}

TEST_F(BlockStoreTest, TheRoomIsKnownWithoutWriting) {
  EXPECT_GT(BlockStore().room(), 0u);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("cache")));
  BlockStore limited(20'000);
  EXPECT_EQ(limited.room(), 20'000u);
  add(limited, std::string(9'000, 'x'));
  EXPECT_EQ(limited.room(), 20'000u);
  add(limited, std::string(30'000, 'x'));
  EXPECT_EQ(limited.room(), 9'000u) << "nothing is stored after a failure";
  folder_.write("file", "");
  ::setenv("XDG_CACHE_HOME", folder_.path("file").c_str(), 1);
  EXPECT_EQ(BlockStore().room(), 0u);
}

TEST_F(BlockStoreTest, AnUnusableCacheFolderIsReported) {
  folder_.write("file", "");
  ::setenv("XDG_CACHE_HOME", folder_.path("file").c_str(), 1);
  BlockStore store;
  EXPECT_FALSE(add(store, "x"));
  EXPECT_NE(store.problem().find(folder_.path("file")), std::string::npos) << store.problem();
}

TEST_F(BlockStoreTest, AChildReadsItsParentsBlocksAndWritesToAFileOfItsOwn) {
  BlockStore store;
  const Bytes before = add(store, "before").value();
  int to_parent[2], to_child[2];
  ASSERT_EQ(::pipe(to_parent), 0);
  ASSERT_EQ(::pipe(to_child), 0);
  char byte = 'x';
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    const auto own = add(store, "child!");
    const bool waited = ::write(to_parent[1], &byte, 1) == 1 && ::read(to_child[0], &byte, 1) == 1;
    ::_exit(own && waited && text_of(*own) == "child!" && text_of(before) == "before" ? 0 : 1);
  }
  EXPECT_EQ(::read(to_parent[0], &byte, 1), 1) << "after the child's block is written";
  EXPECT_EQ(text_of(add(store, "parent").value()), "parent");
  EXPECT_EQ(::write(to_child[1], &byte, 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
  EXPECT_EQ(text_of(before), "before");
}

}  // namespace
}  // namespace feedline::format
