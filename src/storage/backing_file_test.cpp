// SPDX-License-Identifier: Apache-2.0
#include "storage/backing_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "storage/temporary_folder.h"

namespace feedline::storage {
namespace {

constexpr std::size_t kBytes = 5 * 4096 + 100;

std::string content() {
  std::string text(kBytes, '\0');
  for (std::size_t i = 0; i < kBytes; ++i) text[i] = static_cast<char>(i * 7 + i / 256);
  return text;
}

class BackingFileTest : public ::testing::Test {
 protected:
  ~BackingFileTest() override {
    if (!memory_.empty()) ::munmap(const_cast<std::byte*>(memory_.data()), memory_.size());
  }
  std::span<const std::byte> map(int flags, int access = PROT_READ) {
    const auto file = open_regular_file(path_);
    const int writable = (access & PROT_WRITE) != 0 && flags == MAP_SHARED ? ::open(path_.c_str(), O_RDWR) : -1;
    void* const data = ::mmap(nullptr, kBytes, access, flags, writable >= 0 ? writable : file->fd.get(), 0);
    if (writable >= 0) ::close(writable);
    EXPECT_NE(data, MAP_FAILED);
    return memory_ = {static_cast<const std::byte*>(data), kBytes};
  }
  static std::string text_of(const std::byte* data, std::size_t bytes) {
    return {reinterpret_cast<const char*>(data), bytes};
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.write("a file", content());
  std::span<const std::byte> memory_;
};

TEST_F(BackingFileTest, OnlySharedMappingsOfFilesHaveOne) {
  const std::vector<std::byte> own(kBytes);
  EXPECT_EQ(BackingFile::of(own), nullptr);
  EXPECT_EQ(BackingFile::of({}), nullptr);
  const auto found = BackingFile::of(map(MAP_SHARED));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->path(), path_);
  EXPECT_EQ(found->needed_bytes(), kBytes);
  EXPECT_FALSE(found->is_writable());
  EXPECT_EQ(BackingFile::of({memory_.data(), memory_.size() + 4 * 4096}), nullptr) << "after the mapping";
}

TEST_F(BackingFileTest, PrivateMappingsMayHaveOtherBytesThanTheirFile) {
  EXPECT_EQ(BackingFile::of(map(MAP_PRIVATE, PROT_READ | PROT_WRITE)), nullptr);
}

TEST_F(BackingFileTest, WritableMappingsAndFilesThatAreGone) {
  const auto found = BackingFile::of(map(MAP_SHARED, PROT_READ | PROT_WRITE));
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(found->is_writable());
  std::filesystem::remove(path_);
  EXPECT_EQ(BackingFile::of(memory_), nullptr);
}

TEST_F(BackingFileTest, PagesOfItsOwnMayBeWritten) {
  std::shared_ptr<std::byte> pages;
  {
    const auto found = BackingFile::of(map(MAP_SHARED).subspan(30, 3 * 4096));
    ASSERT_NE(found, nullptr);
    auto made = found->own_pages(memory_.subspan(4095, 5000));
    ASSERT_TRUE(made && *made);
    pages = *made;
  }
  EXPECT_EQ(text_of(pages.get(), 5000), content().substr(4095, 5000));
  std::memset(pages.get(), 'x', 5000);
  EXPECT_EQ(text_of(memory_.data(), kBytes), content());
  EXPECT_EQ(TemporaryFolder::read(path_), content());
  EXPECT_EQ(text_of(pages.get(), 5000), std::string(5000, 'x'));
}

TEST_F(BackingFileTest, AFileThatWasCutIsAnError) {
  const auto found = BackingFile::of(map(MAP_SHARED));
  ASSERT_NE(found, nullptr);
  const auto part = memory_.subspan(100, 4096);
  std::string room(4096, '\0');
  auto* const out = reinterpret_cast<std::byte*>(room.data());
  EXPECT_TRUE(found->check());
  ASSERT_TRUE(found->read(part, out));
  EXPECT_EQ(room, content().substr(100, 4096));
  std::filesystem::resize_file(path_, kBytes - 1);
  for (const Error& error : {found->check().error(), found->read(part, out).error(), found->own_pages(part).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kStorage);
    EXPECT_EQ(error.where.shard, path_);
    EXPECT_NE(error.message().find("became shorter"), std::string::npos) << error.message();
  }
}

TEST_F(BackingFileTest, AFileThatWasReplacedIsReadFromTheMapping) {
  const auto found = BackingFile::of(map(MAP_SHARED));
  ASSERT_NE(found, nullptr);
  std::filesystem::rename(folder_.write("another", "short"), path_);
  EXPECT_TRUE(found->check());
  std::string room(4096, '\0');
  ASSERT_TRUE(found->read(memory_.subspan(100, 4096), reinterpret_cast<std::byte*>(room.data())));
  EXPECT_EQ(room, content().substr(100, 4096));
  const auto pages = found->own_pages(memory_);
  ASSERT_TRUE(pages);
  EXPECT_EQ(*pages, nullptr);
}

}  // namespace
}  // namespace feedline::storage
