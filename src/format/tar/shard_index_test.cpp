// SPDX-License-Identifier: Apache-2.0
#include "format/tar/shard_index.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "cache/places.h"
#include "format/checksum.h"
#include "format/tar/index_store.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

constexpr storage::ObjectStat kShard{10'000, 123'456'789};

ShardIndex small_index() {
  ShardIndexBuilder builder;
  builder.add_sample("dropped");
  builder.add_member("jpg", 100, 1);
  builder.add_member("cls", 200, 1, 3);
  builder.drop_last_sample();
  builder.add_sample("a/1");
  builder.add_member("jpg", 512, 4000);
  builder.add_member("cls", 5120, 1, -7);
  builder.add_sample("");
  builder.add_member("cls", 6144, 0);
  return builder.build(kShard);
}

std::optional<ShardIndex> parse(std::span<const std::byte> file, const storage::ObjectStat& shard = kShard) {
  memory::ByteBuffer buffer;
  std::ranges::copy(file, buffer.resize(file.size()).begin());
  return ShardIndex::parse(std::move(buffer), file.size(), shard);
}

TEST(ShardIndex, ComesBackFromItsFile) {
  const ShardIndex built = small_index();
  const auto index = parse(built.file_bytes());
  ASSERT_TRUE(index);
  ASSERT_EQ(index->samples(), 2u);
  EXPECT_EQ(index->members(), 3u);
  EXPECT_EQ(index->key(0), "a/1");
  EXPECT_EQ(index->key(1), "");
  EXPECT_EQ(index->first_member(1), 2u);
  EXPECT_EQ(index->first_member(2), 3u);
  EXPECT_EQ(index->member(0).offset, 512u);
  EXPECT_EQ(index->member(0).bytes, 4000u);
  EXPECT_EQ(index->extension(index->member(1).extension), "cls");
  EXPECT_EQ(index->integer(0), std::nullopt) << "an image";
  EXPECT_EQ(index->integer(1), -7) << "not the integer of the dropped sample";
  EXPECT_EQ(index->integer(2), std::nullopt) << "an empty member";
}

TEST(ShardIndex, SaysItsShardsVersionAndTheNamesOfItsClasses) {
  ShardIndexBuilder builder;
  builder.add_sample("a");
  builder.add_member("jpg", 512, 10);
  builder.name_classes({"cat", "", "dog"});
  constexpr storage::ObjectStat kTagged{10'000, 0, 77};
  const ShardIndex built = builder.build(kTagged);
  memory::ByteBuffer buffer;
  std::ranges::copy(built.file_bytes(), buffer.resize(built.file_bytes().size()).begin());
  const auto index = ShardIndex::parse(std::move(buffer), built.file_bytes().size(), {});
  ASSERT_TRUE(index) << "whichever version it is of";
  EXPECT_EQ(index->version(), kTagged);
  EXPECT_EQ(index->class_names(), (std::vector<std::string>{"cat", "", "dog"}));
  EXPECT_EQ(index->key(0), "a");
  EXPECT_FALSE(parse(built.file_bytes(), {kTagged.bytes, 77, 0})) << "a time is no tag";
  EXPECT_TRUE(small_index().class_names().empty());
}

TEST(ShardIndex, OfNoSamplesWorks) {
  const auto index = parse(ShardIndexBuilder().build(kShard).file_bytes());
  ASSERT_TRUE(index);
  EXPECT_EQ(index->samples(), 0u);
}

TEST(ShardIndex, IsRefusedWhenStaleOrDamaged) {
  const ShardIndex built = small_index();
  EXPECT_FALSE(parse(built.file_bytes(), {kShard.bytes + 1, kShard.mtime_ns}));
  EXPECT_FALSE(parse(built.file_bytes(), {kShard.bytes, kShard.mtime_ns + 1}));
  std::vector<std::byte> file(built.file_bytes().begin(), built.file_bytes().end());
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const std::byte flip : {std::byte{1}, std::byte{128}}) {
      file[i] ^= flip;
      EXPECT_FALSE(parse(file)) << "byte " << i;
      file[i] ^= flip;
    }
    EXPECT_FALSE(parse(std::span(file).first(i))) << i;
  }
  file.push_back(std::byte{0});
  EXPECT_FALSE(parse(file));
}

// The file has a valid checksum but offsets outside the shard. The checksum detects accidental damage, but not
// incorrect writers.
TEST(ShardIndex, IsRefusedWhenItsNumbersLeadOutside) {
  const ShardIndex built = small_index();
  std::size_t refused = 0, words = 0;
  for (std::size_t word = 0; word + 16 <= built.file_bytes().size(); word += 8)
    for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 39, kShard.bytes + 1}) {
      std::vector<std::byte> file(built.file_bytes().begin(), built.file_bytes().end());
      std::memcpy(file.data() + word, &value, sizeof value);
      const std::uint64_t sum = xxh3(std::span(file).first(file.size() - 8));
      std::memcpy(file.data() + file.size() - 8, &sum, sizeof sum);
      const auto index = parse(file);  // the sanitizers detect invalid accesses
      ++words;
      refused += !index;
      for (std::uint64_t i = 0; index && i < index->samples(); ++i) EXPECT_LE(index->key(i).size(), 100u);
    }
  EXPECT_GT(refused, words * 3 / 4);  // all except changes in names and padding
}

TEST(IndexStore, KeepsNextToTheShard) {
  const TemporaryFolder folder;
  const IndexStore store{""};
  EXPECT_FALSE(store.load(*storage::local_storage(), folder.path("x.tar"), kShard));
  ASSERT_TRUE(store.save(*storage::local_storage(), folder.path("x.tar"), small_index()));
  EXPECT_TRUE(std::filesystem::exists(folder.path(".feedline/x.tar.feedline-index")));
  EXPECT_TRUE(store.load(*storage::local_storage(), folder.path("x.tar"), kShard));
  EXPECT_FALSE(store.load(*storage::local_storage(), folder.path("x.tar"), {1, 2}));
}

TEST(IndexStore, KeepsInTheChosenFolderApartByPath) {
  const TemporaryFolder folder;
  const IndexStore store{folder.path("some/where")};
  ASSERT_TRUE(store.save(*storage::local_storage(), folder.path("train/0.tar"), small_index()));
  EXPECT_TRUE(store.load(*storage::local_storage(), folder.path("train/0.tar"), kShard));
  EXPECT_TRUE(store.load(*storage::local_storage(), folder.path("train/../train/0.tar"), kShard));
  EXPECT_FALSE(store.load(*storage::local_storage(), folder.path("val/0.tar"), kShard));
  EXPECT_FALSE(std::filesystem::exists(folder.path("train")));
  folder.write("file", "");
  EXPECT_FALSE(
      IndexStore{folder.path("file/below")}.save(*storage::local_storage(), folder.path("0.tar"), small_index()));
}

TEST(IndexStore, GivesWhichIsKeptUntilItIsForgotten) {
  const TemporaryFolder folder;
  const IndexStore store{folder.path("kept")};
  const auto& local = *storage::local_storage();
  EXPECT_FALSE(store.load_unchecked(local, folder.path("0.tar")));
  ASSERT_TRUE(store.save(local, folder.path("0.tar"), small_index()));
  const auto index = store.load_unchecked(local, folder.path("0.tar"));
  ASSERT_TRUE(index);
  EXPECT_EQ(index->version(), kShard);
  store.forget(local, folder.path("0.tar"));
  EXPECT_FALSE(store.load_unchecked(local, folder.path("0.tar")));
}

// An index is ignored if this user cannot delete it.
TEST(IndexStore, AnIndexThatCannotBeForgottenIsNotTakenUnchecked) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  const TemporaryFolder folder;
  const auto& local = *storage::local_storage();
  const IndexStore store{folder.path("kept")};
  ASSERT_TRUE(store.save(local, folder.path("0.tar"), small_index()));
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  for (const auto& file : std::filesystem::directory_iterator(folder.path("kept")))
    ASSERT_EQ(::chmod(file.path().c_str(), 0644), 0);
  const auto nobody_takes = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool is_nobody = ::seteuid(kNobody) == 0;
      ::_exit(!is_nobody ? 9 : store.load_unchecked(local, folder.path("0.tar")) ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 9) << status;
    return WEXITSTATUS(status) == 1;
  };
  struct Case {
    mode_t mode;
    uid_t owner;
    bool takes;
  };
  // no one may write; everyone may write and remove their own files; everyone may remove all files; only the owner may
  for (const Case& one : {Case{0755, 0, false}, {01777, 0, false}, {0777, 0, true}, {01777, kNobody, true}}) {
    ASSERT_EQ(::chown(folder.path("kept").c_str(), one.owner, 0), 0);
    ASSERT_EQ(::chmod(folder.path("kept").c_str(), one.mode), 0);
    EXPECT_EQ(nobody_takes(), one.takes) << std::oct << one.mode << " of " << std::dec << one.owner;
  }
  EXPECT_TRUE(store.load_unchecked(local, folder.path("0.tar"))) << "root may remove all";
}

// The folder of the shard does not exist, because root could write to any existing folder.
TEST(IndexStore, FallsBackToTheCacheFolder) {
  const TemporaryFolder folder;
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  const IndexStore store{""};
  ASSERT_TRUE(store.save(*storage::local_storage(), "/proc/nowhere/x.tar", small_index()));
  EXPECT_TRUE(store.load(*storage::local_storage(), "/proc/nowhere/x.tar", kShard));
  EXPECT_TRUE(std::filesystem::exists(folder.path("feedline/index")));
  ::setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  EXPECT_TRUE(store.save(*storage::local_storage(), "/proc/nowhere/x.tar",
                         small_index()));  // not stored: slower the next time, but not an error
  EXPECT_FALSE(store.load(*storage::local_storage(), "/proc/nowhere/x.tar", kShard));
}

}  // namespace
}  // namespace feedline::format
