// SPDX-License-Identifier: Apache-2.0
#include "cache/entry_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "storage/temporary_folder.h"

namespace feedline::cache {
namespace {

constexpr FrameKind kKind{0x7473'6574'7972'746e, 3};

std::vector<std::byte> entry_of(std::uint64_t key, std::size_t bytes = 100) {
  std::vector<std::byte> entry(bytes);
  for (std::size_t i = 0; i < bytes; ++i) entry[i] = static_cast<std::byte>(key * 31 + i);
  return entry;
}

class EntryStoreTest : public testing::Test {
 protected:
  bool has(const EntryStore& store, std::uint64_t key, std::size_t bytes = 100) {
    std::vector<std::byte> entry;
    return store.find(key, entry) && entry == entry_of(key, bytes);
  }
  // A file with entries for some keys.
  void fill(std::uint64_t from, std::uint64_t end) {
    EntryStore store(kKind, {path_});
    for (std::uint64_t key = from; key < end; ++key) store.save(key, entry_of(key));
    ASSERT_TRUE(store.write(true));
  }

  storage::TemporaryFolder folder_;
  const std::string path_ = folder_.path("kept/entries");
};

TEST_F(EntryStoreTest, FindsEntriesBeforeAndAfterTheyAreWritten) {
  EntryStore store(kKind, {path_});
  for (const std::uint64_t key : {7ULL, 1ULL, ~0ULL, 0ULL, 300ULL}) store.save(key, entry_of(key));
  EXPECT_TRUE(has(store, 300));
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(store.write(true));
  for (const std::uint64_t key : {7ULL, 1ULL, ~0ULL, 0ULL, 300ULL}) EXPECT_TRUE(has(store, key)) << key;
  std::vector<std::byte> entry{std::byte{1}};
  EXPECT_FALSE(store.find(2, entry));
  EXPECT_TRUE(entry.empty());
  const EntryStore other(kKind, {path_});
  EXPECT_TRUE(has(other, ~0ULL));
  EXPECT_EQ(other.counts().entries, 5U);
  EXPECT_EQ(other.counts().bytes, 500U);
  EXPECT_EQ(other.counts().path, path_);
}

TEST_F(EntryStoreTest, ReplacesEntries) {
  fill(0, 10);
  EntryStore store(kKind, {path_});
  store.save(3, entry_of(3, 40));
  EXPECT_TRUE(has(store, 3, 40));
  ASSERT_TRUE(store.write(true));
  EXPECT_TRUE(has(store, 3, 40));
  EXPECT_TRUE(has(store, 4));
  EXPECT_EQ(store.counts().entries, 10U);
}

TEST_F(EntryStoreTest, WritesNoFirstFileForFewEntries) {
  {
    EntryStore store(kKind, {path_});
    store.save(1, entry_of(1));
    EXPECT_TRUE(store.write());
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path("kept")));
  {
    EntryStore store(kKind, {path_}, {.least_written = 1000});
    for (std::uint64_t key = 0; key < 10; ++key) store.save(key, entry_of(key));
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
  { EntryStore(kKind, {path_}).save(99, entry_of(99)); }  // the file exists: even one entry is added
  EXPECT_TRUE(has(EntryStore(kKind, {path_}), 99));
}

TEST_F(EntryStoreTest, ProcessesThatWriteAtOnceLoseNothing) {
  constexpr std::uint64_t kProcesses = 4, kEach = 500;
  for (std::uint64_t p = 0; p < kProcesses; ++p)
    if (::fork() == 0) {
      {
        EntryStore store(kKind, {path_});
        for (std::uint64_t key = p * kEach; key < (p + 1) * kEach; ++key) {
          store.save(key, entry_of(key));
          if (key % 100 == 99) (void)store.write(true);
        }
      }
      ::_exit(0);
    }
  for (std::uint64_t p = 0; p < kProcesses; ++p) {
    int status = 1;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  const EntryStore store(kKind, {path_});
  EXPECT_EQ(store.counts().entries, kProcesses * kEach);
  for (std::uint64_t key = 0; key < kProcesses * kEach; ++key) ASSERT_TRUE(has(store, key)) << key;
}

TEST_F(EntryStoreTest, ReadsWhatOtherProcessesWrote) {
  fill(0, 10);
  EntryStore store(kKind, {path_});
  fill(10, 20);
  EXPECT_FALSE(has(store, 15));
  ASSERT_TRUE(store.write());
  EXPECT_TRUE(has(store, 15));
}

TEST_F(EntryStoreTest, AForkedChildContinues) {
  fill(0, 10);
  EntryStore store(kKind, {path_});
  store.save(20, entry_of(20));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool sees = has(store, 5) && has(store, 20);
    store.save(21, entry_of(21));
    ::_exit(sees && store.write(true) ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(store.write(true));
  EXPECT_TRUE(has(store, 21));
}

TEST_F(EntryStoreTest, ThreadsShareAStore) {
  EntryStore store(kKind, {path_}, {.most_pending = 20'000});
  std::atomic<int> missing = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 400; ++i) {
          const std::uint64_t key = t * 1000 + i;
          store.save(key, entry_of(key));
          missing += !has(store, key);
        }
      });
  }
  EXPECT_LE(static_cast<std::uint64_t>(missing), store.counts().dropped);
  ASSERT_TRUE(store.write(true));
  EXPECT_GE(store.counts().entries + store.counts().dropped, 1600U);
}

TEST_F(EntryStoreTest, AnyDamageOfTheTableLeavesNoEntries) {
  fill(0, 20);
  const std::string good = storage::TemporaryFolder::read(path_);
  const std::size_t table = 48 + 20 * 16;
  for (std::size_t at = 0; at < table; at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x41);
    folder_.write("kept/entries", bad);
    const EntryStore store(kKind, {path_});
    EXPECT_FALSE(has(store, 3)) << at;
    EXPECT_TRUE(store.counts().is_damaged || store.counts().is_foreign) << at;
  }
  for (std::size_t size = 0; size < good.size(); size += 97) {
    folder_.write("kept/entries", good.substr(0, size));
    EXPECT_FALSE(has(EntryStore(kKind, {path_}), 3)) << size;
  }
}

TEST_F(EntryStoreTest, ADamagedFileIsReplaced) {
  fill(0, 20);
  folder_.write("kept/entries", storage::TemporaryFolder::read(path_).substr(0, 200));
  EntryStore store(kKind, {path_});
  store.save(7, entry_of(7));
  ASSERT_TRUE(store.write());
  EXPECT_TRUE(has(EntryStore(kKind, {path_}), 7));
}

TEST_F(EntryStoreTest, AFileOfAnotherVersionIsReplaced) {
  fill(0, 20);
  EntryStore store({kKind.magic, kKind.format + 1}, {path_});
  EXPECT_FALSE(has(store, 3));
  EXPECT_TRUE(store.counts().is_foreign);
  store.save(3, entry_of(3));
  ASSERT_TRUE(store.write());
  EXPECT_TRUE(has(store, 3));
  EXPECT_FALSE(has(store, 4));
}

TEST_F(EntryStoreTest, AnUnwritableFolderLeavesTheNextPlace) {
  folder_.write("blocked", "a file, so that no folder can be made here");
  const std::string other = folder_.path("other/entries");
  EntryStore store(kKind, {folder_.path("blocked/entries"), other});
  store.save(1, entry_of(1));
  ASSERT_TRUE(store.write(true));
  EXPECT_EQ(store.counts().path, other);
  EXPECT_TRUE(has(store, 1));
}

TEST_F(EntryStoreTest, AFullDiskLosesNothingInMemory) {
  static const SystemWrites kFull{
      .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      .write = [](int, const void*, std::size_t) -> ssize_t {
        errno = ENOSPC;
        return -1;
      },
      .flush = ::fdatasync,
      .rename = ::rename,
      .remove = ::unlink};
  fill(0, 10);
  {
    EntryStore store(kKind, {path_}, {.most_pending = 4000}, kFull);
    for (std::uint64_t key = 100; key < 200; ++key) store.save(key, entry_of(key));
    EXPECT_TRUE(has(store, 100));
    EXPECT_FALSE(store.write(true));
    EXPECT_TRUE(has(store, 100));
    EXPECT_TRUE(has(store, 5));
    EXPECT_FALSE(store.counts().failure.empty());
    EXPECT_GT(store.counts().dropped, 0U) << "memory is bounded";
    EXPECT_LE(store.counts().bytes, 1000U + 2 * 4000U);
  }
  EXPECT_EQ(EntryStore(kKind, {path_}).counts().entries, 10U);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder_.path("kept"))) ++files;
  EXPECT_EQ(files, 2U) << "only the entries and the lock";
}

TEST_F(EntryStoreTest, WithoutAPlaceEntriesStayInMemory) {
  EntryStore store(kKind, {});
  store.save(1, entry_of(1));
  EXPECT_TRUE(store.write(true));
  EXPECT_TRUE(has(store, 1));
}

}  // namespace
}  // namespace feedline::cache
