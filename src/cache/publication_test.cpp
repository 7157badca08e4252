// SPDX-License-Identifier: Apache-2.0
#include "cache/publication.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "storage/temporary_folder.h"

namespace feedline::cache {
namespace {

using storage::TemporaryFolder;

constexpr FrameKind kKind{0x7465'7374, 1};

// Exits the process at this call without cleanup, as kill -9 would.
int calls_left = 0;
void count_call() {
  if (calls_left-- == 0) ::kill(::getpid(), SIGKILL);
}

constexpr SystemWrites kMortal{
    .open = [](const char* path, int flags, mode_t mode) { return count_call(), ::open(path, flags, mode); },
    .write = [](int fd, const void* data, std::size_t bytes) { return count_call(), ::write(fd, data, bytes); },
    .flush = [](int fd) { return count_call(), ::fdatasync(fd); },
    .rename = [](const char* from, const char* to) { return count_call(), std::rename(from, to); },
    .remove = [](const char* path) { return count_call(), ::unlink(path); },
};

class PublicationTest : public testing::Test {
 protected:
  // Publishes `content`, as if created from an input of this version.
  Publication publication(const std::string& content, std::uint64_t version) {
    Publication made;
    made.path = path_;
    made.kind = kKind;
    made.origin = {version};
    made.notes = &notes_;
    made.write = [content](OutputFile& output) -> Result<void> {
      for (std::size_t at = 0; at < content.size(); at += 5)
        FEEDLINE_CHECK_OK(output.append(
            std::as_bytes(std::span(content).subspan(at, std::min<std::size_t>(5, content.size() - at)))));
      return {};
    };
    return made;
  }
  Published publish(const std::string& content, std::uint64_t version) {
    const auto published = find_or_make(publication(content, version));
    EXPECT_TRUE(published) << published.error().message();
    EXPECT_EQ(TemporaryFolder::read(path_), content);
    return published.value_or(Published::kFound);
  }
  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(std::filesystem::directory_iterator(folder_.path()),
                              [](const auto& entry) { return entry.path().string().ends_with(".unfinished"); }));
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path("copy");
  Notes notes_;
};

TEST_F(PublicationTest, IsMadeOnceForEachVersion) {
  EXPECT_EQ(publish("the first one", 1), Published::kMade);
  EXPECT_EQ(publish("the first one", 1), Published::kFound);
  EXPECT_EQ(publish("the second", 2), Published::kMade);
  EXPECT_EQ(publish("the second", 2), Published::kFound);
  EXPECT_EQ(publish("the first again", 1), Published::kMade);
  folder_.write("copy", "cut");
  EXPECT_EQ(publish("the first again", 1), Published::kMade) << "it has another length";
  std::filesystem::remove(path_);
  EXPECT_EQ(publish("the first again", 1), Published::kMade);
  EXPECT_EQ(unfinished(), 0u);
  EXPECT_TRUE(notes_.lines().empty());
}

// Kills the process at each system call in turn. The file that is found afterwards is complete and has the version that
// its certificate states (both versions have the same length, so only the certificate distinguishes them), and no
// process waits for a dead process.
TEST_F(PublicationTest, KilledAnywhereItIsMadeAgainOrWasDone) {
  const std::string before = "the one of version 1", after = "the one of version 2";
  for (const bool goes_back : {false, true}) {
    int killed = 0;
    for (bool ended = false; !ended; ++killed) {
      std::filesystem::remove_all(folder_.path());
      std::filesystem::create_directory(folder_.path());
      publish(before, 1);
      const pid_t child = ::fork();
      if (child == 0) {
        calls_left = killed;
        ::_exit(find_or_make(publication(after, 2), kMortal).has_value() ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ended = WIFEXITED(status);
      EXPECT_TRUE(ended ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
      const std::string left = TemporaryFolder::read(path_);
      EXPECT_TRUE(left == before || left == after) << killed << ": " << left;
      const std::string& wanted = goes_back ? before : after;
      const Published published = publish(wanted, goes_back ? 1 : 2);
      EXPECT_TRUE(!ended || goes_back || published == Published::kFound) << "it had come to its end";
      EXPECT_EQ(publish(wanted, goes_back ? 1 : 2), Published::kFound);
      EXPECT_TRUE(published == Published::kFound || unfinished() == 0) << killed;
      ASSERT_LT(killed, 1000);
    }
    EXPECT_GE(killed, 12) << "create, some writes, flushes, removal, renames";
  }
}

int space_left = 0;
constexpr SystemWrites full_disk() {
  SystemWrites writes = kMortal;
  writes.open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); };
  writes.write = [](int fd, const void* data, std::size_t bytes) -> ssize_t {
    if (space_left == 0) {
      errno = ENOSPC;
      return -1;
    }
    const auto fits = std::min<std::size_t>(bytes, static_cast<std::size_t>(space_left));
    space_left -= static_cast<int>(fits);
    return ::write(fd, data, fits);
  };
  writes.flush = ::fdatasync;
  writes.rename = std::rename;
  writes.remove = ::unlink;
  return writes;
}

TEST_F(PublicationTest, AFullDiskIsAnErrorThatLeavesWhatWasThere) {
  static const SystemWrites kFull = full_disk();
  const std::string content(40, 'x');
  publish("as it was before", 1);
  int refused = 0;
  for (const int space : {0, 1, 7, 39, 40, 41, 60}) {  // the last ones: no room for what vouches for it
    space_left = space;
    const auto published = find_or_make(publication(content, 2), kFull);
    ASSERT_FALSE(published) << space;
    EXPECT_EQ(published.error().code, ErrorCode::kStorage);
    EXPECT_EQ(published.error().system_errno, ENOSPC);
    EXPECT_NE(published.error().message().find(path_), std::string::npos);
    EXPECT_EQ(unfinished(), 0u) << "the room is given back";
    EXPECT_EQ(TemporaryFolder::read(path_), space < 40 ? "as it was before" : content);
    ++refused;
  }
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(publish(content, 2), Published::kMade) << "there is room again";
}

TEST_F(PublicationTest, OfManyProcessesOneMakesItAndTheOthersWait) {
  const std::string content(100'000, 'y');
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto published = find_or_make(publication(content, 1));
      const bool right = published && TemporaryFolder::read(path_) == content;
      ::_exit(!right ? 2 : *published == Published::kMade ? 1 : 0);
    }
    children.push_back(child);
  }
  int made = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    made += WEXITSTATUS(status);
  }
  if (!FileLock::take(folder_.path("other.lock")).held()) GTEST_SKIP() << "this file system has no locks";
  EXPECT_EQ(made, 1);
}

TEST_F(PublicationTest, WhoWaitsIsToldForWhomAndADeadMakersLockIsFree) {
  if (!FileLock::take(folder_.path("other.lock")).held()) GTEST_SKIP() << "this file system has no locks";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::take(path_ + ".lock");
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
  }
  char token = 0;
  ASSERT_EQ(::read(ready[0], &token, 1), 1);
  std::string holder;
  Publication waiting = publication("made at last", 1);
  waiting.waits = [&](const std::string& who) {
    holder = who;
    ::kill(child, SIGKILL);  // only now, after the waiting thread was notified
  };
  EXPECT_EQ(find_or_make(waiting), Published::kMade);
  EXPECT_TRUE(holder.starts_with("process " + std::to_string(child) + " on ")) << holder;
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(PublicationTest, AnotherVersionsFileIsMadeAgainAndNotedOnce) {
  publish("of another version", 1);
  for (int i = 0; i < 2; ++i) {
    Publication mine = publication("of this one", 1);
    mine.kind.format = 2;
    EXPECT_EQ(find_or_make(mine), i == 0 ? Published::kMade : Published::kFound);
  }
  EXPECT_EQ(TemporaryFolder::read(path_), "of this one");
  ASSERT_EQ(notes_.lines().size(), 1u);
  EXPECT_NE(notes_.lines()[0].find("another version"), std::string::npos);
  EXPECT_NE(notes_.lines()[0].find(folder_.path()), std::string::npos);
}

// Writing fails for every user, even root: no folder can be created below a file or in /proc.
TEST_F(PublicationTest, WhereNothingCanBeWrittenWhatIsThereIsUsed) {
  publish("already there", 1);
  std::filesystem::remove(path_ + ".lock");
  std::filesystem::create_directory(path_ + ".lock");  // no lock can be acquired
  EXPECT_EQ(publish("already there", 1), Published::kFound);
  EXPECT_EQ(publish("and without a lock too", 2), Published::kMade);
  Publication nowhere = publication("x", 1);
  folder_.write("file", "");
  nowhere.path = folder_.path("file/below");
  const auto refused = find_or_make(nowhere);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kStorage);
  EXPECT_NE(refused.error().message().find("file/below"), std::string::npos);
}

TEST_F(PublicationTest, WhatItsMakerSaysIsTheError) {
  Publication failing = publication("", 1);
  failing.write = [](OutputFile& output) -> Result<void> {
    FEEDLINE_CHECK_OK(output.append(std::as_bytes(std::span("some", 4))));
    return data_error("the source is damaged", "format");
  };
  const auto refused = find_or_make(failing);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(unfinished(), 0u);
}

}  // namespace
}  // namespace feedline::cache
