// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "feedline/observe.h"
#include "observe/fake_root.h"
#include "observe/page_cache.h"

namespace feedline::observe {
namespace {

constexpr std::size_t kBytes = 1 << 20;

// Returns a folder on a disk, where cached pages can be dropped; a tmpfs is always in the page cache.
std::string folder_on_disk() { return std::filesystem::current_path().string(); }

class FileOnDisk {
 public:
  FileOnDisk() : path_(folder_on_disk() + "/files-test-XXXXXX") {
    file_ = ::mkstemp(path_.data());
    const std::string content(kBytes, 'x');
    if (::write(file_, content.data(), content.size()) < 0) path_.clear();
  }
  ~FileOnDisk() {
    ::close(file_);
    ::unlink(path_.c_str());
  }
  FileOnDisk(const FileOnDisk&) = delete;
  FileOnDisk& operator=(const FileOnDisk&) = delete;
  const std::string& path() const { return path_; }
  int number() const { return file_; }
  void grow(std::size_t bytes) const { ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(bytes)), 0); }
  void drop() const {
    ::fsync(file_);
    ::posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
  }

 private:
  std::string path_;
  int file_;
};

TEST(Files, TellsWhatIsInThePageCache) {
  const FileOnDisk file;
  const auto warm = look_at_files({file.path()});
  ASSERT_EQ(warm.size(), 1u);
  EXPECT_EQ(warm[0].bytes, kBytes);
  ASSERT_TRUE(warm[0].cached_bytes);
  EXPECT_EQ(*warm[0].cached_bytes, kBytes);
  if (warm[0].device.empty()) GTEST_SKIP() << "this folder is not on a local disk";
  file.drop();
  const auto cold = look_at_files({file.path()});
  ASSERT_EQ(cold.size(), 1u);
  EXPECT_EQ(cold[0].cached_bytes, 0u);
  EXPECT_EQ(cold[0].unwritten_bytes.value_or(0), 0u);
}

TEST(Files, MapsThemWhereTheKernelCannotBeAskedDirectly) {
  const FileOnDisk file;
  FileFacts warm{.path = file.path(), .bytes = kBytes};
  ask_mincore(file.number(), warm);
  EXPECT_EQ(warm.cached_bytes, kBytes);
  EXPECT_EQ(warm.unwritten_bytes, std::nullopt);
  file.grow(std::size_t{1} << 30);  // a hole after the cached part: eight windows are checked, and one has 1 MiB
  FileFacts large{.path = file.path(), .bytes = std::uint64_t{1} << 30};
  ask_mincore(file.number(), large);
  ASSERT_TRUE(large.cached_bytes);
  EXPECT_EQ(*large.cached_bytes, (std::uint64_t{1} << 30) / 128);
}

TEST(Files, LeavesOutWhatIsNoFileAndWhatIsNotThere) {
  const FakeRoot root;
  ASSERT_EQ(::mkfifo(root.path("pipe").c_str(), 0600), 0);
  root.write("empty", "");
  const auto found = look_at_files({root.path("pipe"), root.path("nothing"), root.path(), root.path("empty")});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].bytes, 0u);
  EXPECT_EQ(found[0].cached_bytes, 0u);
}

}  // namespace
}  // namespace feedline::observe
