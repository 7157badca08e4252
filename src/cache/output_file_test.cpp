// SPDX-License-Identifier: Apache-2.0
#include "cache/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cache/file_lock.h"
#include "cache/places.h"
#include "storage/temporary_folder.h"

namespace feedline::cache {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(OutputFile, AppearsWholeAtCommit) {
  const storage::TemporaryFolder folder;
  const std::string path = folder.write("out", "before");
  auto file = OutputFile::create(path);
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_TRUE(file->append(bytes_of("one ")));
  ASSERT_TRUE(file->append(bytes_of("two")));
  EXPECT_EQ(storage::TemporaryFolder::read(path), "before");
  ASSERT_TRUE(file->commit(Flush::kYes));
  EXPECT_EQ(storage::TemporaryFolder::read(path), "one two");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(OutputFile, LeavesNothingWithoutCommit) {
  const storage::TemporaryFolder folder;
  {
    auto file = OutputFile::create(folder.path("out"));
    ASSERT_TRUE(file->append(bytes_of("lost")));
  }
  EXPECT_EQ(files_in(folder.path()), 0u);
}

// Tests the order of the calls itself, because only a power failure would reveal a wrong order.
TEST(OutputFile, IsOnTheDeviceBeforeItHasItsNameAndTheNameBehindIt) {
  static std::string calls;
  static const SystemWrites kTold{
      .open = [](const char* path, int flags, mode_t mode) { return calls += "open ", ::open(path, flags, mode); },
      .write = [](int fd, const void* data, std::size_t bytes) { return calls += "write ", ::write(fd, data, bytes); },
      .flush =
          [](int fd) {
            struct ::stat status = {};
            ::fstat(fd, &status);
            calls += S_ISDIR(status.st_mode) ? "flush_folder " : "flush ";
            return ::fdatasync(fd);
          },
      .rename = [](const char* from, const char* to) { return calls += "rename ", std::rename(from, to); },
      .remove = [](const char* path) { return calls += "remove ", ::unlink(path); }};
  const storage::TemporaryFolder folder;
  calls.clear();
  ASSERT_TRUE(write_file(folder.path("kept"), bytes_of("text"), Flush::kYes, kTold));
  EXPECT_EQ(calls, "open write flush rename flush_folder ");
  calls.clear();
  ASSERT_TRUE(write_file(folder.path("made_again"), bytes_of("text"), Flush::kNo, kTold));
  EXPECT_EQ(calls, "open write rename ");
}

TEST(OutputFile, WritersOfOneNameDoNotMix) {
  const storage::TemporaryFolder folder;
  const std::string path = folder.path("out");
  std::vector<std::jthread> threads;
  for (char c : {'a', 'b', 'c', 'd'})
    threads.emplace_back([&path, c] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_file(path, bytes_of(std::string(5000, c)), Flush::kNo));
    });
  threads.clear();
  const std::string content = storage::TemporaryFolder::read(path);
  ASSERT_EQ(content.size(), 5000u);
  EXPECT_EQ(content, std::string(5000, content[0]));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(OutputFile, NamesTheFileItCannotCreate) {
  const storage::TemporaryFolder folder;
  const auto written = write_file(folder.path("missing/out"), {}, Flush::kYes);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kStorage);
  EXPECT_NE(written.error().message().find("missing/out"), std::string::npos);
  folder.write("file", "");
  EXPECT_FALSE(make_folder(folder.path("file/below")));
}

TEST(CacheFolder, FollowsTheEnvironment) {
  ::setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(cache_folder().value(), "/somewhere/feedline");
  ::setenv("XDG_CACHE_HOME", "relative", 1);  // the specification says to ignore it
  ::setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(cache_folder().value(), "/home/somebody/.cache/feedline");
  ::unsetenv("HOME");
  EXPECT_FALSE(cache_folder());
}

TEST(FileLock, LetsOneHolderInAtATime) {
  const storage::TemporaryFolder folder;
  if (!FileLock::take(folder.path("lock")).held()) GTEST_SKIP() << "this file system has no locks";
  std::atomic<int> counter{0};  // read and written in two steps, so an increment is lost if two processes hold the lock
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const FileLock lock = FileLock::take(folder.path("lock"));
        const int seen = counter.load();
        std::this_thread::yield();
        counter.store(seen + 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.load(), 200);
}

TEST(FileLock, EndsWithItsHolderThoughAChildHasTheFileOpen) {
  const storage::TemporaryFolder folder;
  std::optional<FileLock> held(FileLock::take(folder.path("lock")));
  if (!held->held()) GTEST_SKIP() << "this file system has no locks";
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  held.reset();
  bool waited = false;
  FileLock::take(folder.path("lock"), [&](const std::string&) {
    waited = true;
    ::kill(child, SIGKILL);  // or this would block forever
  });
  EXPECT_FALSE(waited);
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace feedline::cache
