// SPDX-License-Identifier: Apache-2.0
#include "storage/local_storage.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

const auto kStorages =
    ::testing::Values(StorageUnderTest{"local", local_storage}, StorageUnderTest{"short_reads", short_reads_storage},
                      StorageUnderTest{"mapped", mapped_storage});
INSTANTIATE_TEST_SUITE_P(Local, ObjectContract, kStorages, name_of_storage);
INSTANTIATE_TEST_SUITE_P(Local, StorageContract, kStorages, name_of_storage);

TEST(LocalStorage, MapsOnRequest) {
  const TemporaryFolder folder;
  const std::string path = folder.write("object", "content");
  EXPECT_TRUE((*local_storage()->open(path, Access::kMap))->view(0, 7)->has_value());
  EXPECT_FALSE((*local_storage()->open(path, Access::kRead))->view(0, 7)->has_value());
}

TEST(LocalStorage, AMappedFileThatShrankIsAnErrorNotASignal) {
  const TemporaryFolder folder;
  const std::string path = folder.write("object", recognisable_bytes(1 << 20));
  const auto reader = local_storage()->open(path, Access::kMap);
  std::filesystem::resize_file(path, 4096);
  const auto view = (*reader)->view(500'000, 1000);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, ErrorCode::kStorage);
  EXPECT_NE(view.error().what.find("shorter"), std::string::npos) << view.error().message();
  std::vector<std::byte> out(10);
  EXPECT_FALSE((*reader)->read_at(500'000, out));
}

TEST(LocalStorage, AMappingSurvivesReplacementOfItsFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("object", "the one that was opened");
  const auto reader = local_storage()->open(path, Access::kMap);
  std::filesystem::rename(folder.write("shorter", "x"), path);
  EXPECT_EQ(text_of((*reader)->view(0, 23)->value()), "the one that was opened");
}

TEST(LocalStorage, RefusesAPipeWithoutWaitingForIt) {
  const TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  memory::ByteBuffer buffer;
  const auto got = local_storage()->read_all(path, buffer, memory::kLeastSampleBytes);
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message().find("pipe"), std::string::npos);
  EXPECT_FALSE(local_storage()->open("/dev/null", Access::kRead));
}

TEST(LocalStorage, ReadsPseudoFilesWhoseSizeIsNotTold) {
  if (!std::ifstream("/proc/self/status")) GTEST_SKIP() << "no /proc here";
  memory::ByteBuffer buffer;
  const auto refused = local_storage()->read_all("/proc/self/status", buffer, 100);
  ASSERT_FALSE(refused) << "it says that it has no bytes";
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_LE(buffer.capacity(), 101u);
  const auto got = local_storage()->read_all("/proc/self/status", buffer, memory::kLeastSampleBytes);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_NE(text_of(*got).find("Name:"), std::string::npos);
}

// The file grows between stat() and the read, because this storage's pread() appends to it first.
TEST(LocalStorage, ReadAllFollowsAGrowingFile) {
  const TemporaryFolder folder;
  static std::string path;
  static int appended;
  path = folder.write("object", recognisable_bytes(5000));
  appended = 0;
  SystemReads reads = system_reads();
  reads.pread = [](int fd, void* data, std::size_t bytes, off_t offset) -> ssize_t {
    if (appended++ == 0) std::ofstream(path, std::ios::app) << std::string(100'000, 'g');
    return ::pread(fd, data, bytes, offset);
  };
  memory::ByteBuffer buffer;
  const auto got = LocalStorage(reads).read_all(path, buffer, memory::kLeastSampleBytes);
  ASSERT_TRUE(got);
  EXPECT_EQ(text_of(*got), recognisable_bytes(5000) + std::string(100'000, 'g'));
}

TEST(LocalStorage, AFailingReadIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.write("object", "content");
  SystemReads reads = system_reads();
  reads.pread = [](int, void*, std::size_t, off_t) -> ssize_t {
    errno = EIO;
    return -1;
  };
  memory::ByteBuffer buffer;
  const auto got = LocalStorage(reads).read_all(path, buffer, memory::kLeastSampleBytes);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().system_errno, EIO);
  EXPECT_NE(got.error().message().find(path), std::string::npos);
}

TEST(LocalStorage, LeavesNoDescriptorBehind) {
  if (!std::filesystem::exists("/proc/self/fd")) GTEST_SKIP() << "no /proc here";
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const TemporaryFolder folder;
  const std::string path = folder.write("object", "content");
  const auto before = count();
  const auto mapped = local_storage()->open(path, Access::kMap);
  EXPECT_EQ(count(), before);  // a mapping holds none: thousands of shards stay within the limit on open files
  memory::ByteBuffer buffer;
  ASSERT_TRUE(local_storage()->read_all(path, buffer, memory::kLeastSampleBytes));
  ASSERT_TRUE(local_storage()->list(folder.path()));
  EXPECT_FALSE(local_storage()->read_all(folder.path(), buffer, memory::kLeastSampleBytes));
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace feedline::storage
