// SPDX-License-Identifier: Apache-2.0
#include "cache/copy_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "cache/output_file.h"
#include "cache/publication.h"
#include "storage/temporary_folder.h"

namespace feedline::cache {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class CopyFolderTest : public testing::Test {
 protected:
  CopyFolderTest() { std::filesystem::create_directories(folder()); }
  std::string folder() const { return folder_.path("plain"); }
  std::string path(const std::string& name) const { return folder() + "/" + name; }
  // Makes a copy of 1 MiB; later copies were used later.
  void make_copy(const std::string& name) const {
    Publication copy{.path = path(name), .kind = {1, 1}, .origin = {}, .write = [](OutputFile& output) {
                       return output.append(std::vector<std::byte>(kMiB, std::byte{7}));
                     }};
    ASSERT_TRUE(find_or_make(copy));
    static int used = 0;
    const auto time = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000 - used++);
    std::filesystem::last_write_time(path(name) + ".origin", time);
  }
  bool has(const std::string& name) const {
    return std::filesystem::exists(path(name)) && std::filesystem::exists(path(name) + ".origin");
  }

  storage::TemporaryFolder folder_;
};

TEST_F(CopyFolderTest, CopiesThatWereUsedLongestAgoAreRemoved) {
  for (const char* const name : {"a", "b", "c"}) make_copy(name);
  EXPECT_TRUE(make_room(folder(), kMiB, 5 * kMiB));
  EXPECT_TRUE(has("a") && has("b") && has("c"));
  note_last_use(path("a"));
  EXPECT_TRUE(make_room(folder(), kMiB, 3 * kMiB + kMiB / 2));
  EXPECT_TRUE(has("a") && has("c"));
  EXPECT_FALSE(has("b") || std::filesystem::exists(path("b")));
}

TEST_F(CopyFolderTest, CopiesInUseAreNotRemoved) {
  for (const char* const name : {"a", "b", "c"}) make_copy(name);
  add_use(path("a"));
  add_use(path("b"));
  add_use(path("a"));
  const auto done = make_room(folder(), 2 * kMiB, 3 * kMiB);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().system_errno, ENOSPC);
  EXPECT_TRUE(has("c")) << "nothing is removed if that is not enough";
  EXPECT_TRUE(make_room(folder(), kMiB / 2, 3 * kMiB));
  EXPECT_TRUE(has("a") && has("b"));
  EXPECT_FALSE(has("c"));
}

TEST_F(CopyFolderTest, UsesEndWithTheirProcess) {
  make_copy("a");
  int ready[2], end[2];
  ASSERT_EQ(::pipe(ready) + ::pipe(end), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    add_use(path("a"));
    char byte = 0;
    static_cast<void>(!::write(ready[1], &byte, 1));
    static_cast<void>(!::read(end[0], &byte, 1));
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(make_room(folder(), kMiB, kMiB));
  EXPECT_TRUE(has("a"));
  ASSERT_EQ(::write(end[1], &byte, 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(make_room(folder(), kMiB / 2, kMiB));
  EXPECT_FALSE(has("a"));
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    EXPECT_NE(entry.path().extension(), ".uses") << "of an ended process";
  for (const int fd : {ready[0], ready[1], end[0], end[1]}) ::close(fd);
}

TEST_F(CopyFolderTest, RoomIsReservedWhileACopyGrows) {
  std::uint64_t reserved = 0, written = 0;
  auto output = OutputFile::create(path("x")).value();
  output.reserve_by([&](std::uint64_t bytes) -> Result<void> {
    if (written + bytes > 10 * kMiB) return storage_error("no room", ENOSPC);
    return reserved = written + bytes, Result<void>();
  });
  const std::vector<std::byte> part(kMiB / 4);
  while (output.append(part)) {
    written += part.size();
    ASSERT_GE(reserved, written);
  }
  EXPECT_EQ(written, 8 * kMiB) << "room is reserved in steps that double";
}

}  // namespace
}  // namespace feedline::cache
