// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_format.h"

#include "format/format_contract.h"
#include "format/inspected.h"
#include "storage/short_reads_storage.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

std::string store_folder(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  for (const StoredSample& sample : samples) folder.write("data/" + sample.key + ".jpg", sample.image);
  return folder.path("data");
}

INSTANTIATE_TEST_SUITE_P(Folder, FormatContract,
                         ::testing::Values(FormatUnderTest{"folder", "folder", store_folder, storage::local_storage},
                                           FormatUnderTest{"folder_short_reads", "folder", store_folder,
                                                           storage::short_reads_storage}),
                         name_of_format);

std::string keys_of(const Format& format) {
  std::string keys;
  for (std::uint64_t i = 0; i < format.size(); ++i) keys += (i ? " " : "") + format.where(i).key;
  return keys;
}

Error open_error(const std::string& source, const OpenOptions& options = {}) {
  const auto format = open(source, options);
  EXPECT_FALSE(format) << source;
  return format ? Error{} : format.error();
}

// The expected order is the order of torchvision's make_dataset, which sorts os.walk(class) and the files in each
// folder.
TEST(FolderFormat, ListsInImageFoldersOrder) {
  const TemporaryFolder folder;
  for (const char* file :
       {"b/2.jpg", "b/10.jpg", "b/1.JPG", "b/x/z.png", "b/x/y/1.jpeg", "b/x-1/0.webp", "b/notes.txt", "B/a.jpg",
        "a b/1.bmp", "a b/2.TIFF", "a b/.jpg", "a b/jpg", "a/1.jpg.bak", "a/1.ppm", "stray.txt"})
    folder.write(file, "x");
  const auto format = open_records(folder.path(), {});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(
      keys_of(**format),
      "B/a.jpg a/1.ppm a b/.jpg a b/1.bmp a b/2.TIFF b/1.JPG b/10.jpg b/2.jpg b/x/z.png b/x-1/0.webp b/x/y/1.jpeg");
  EXPECT_EQ((*format)->classes(), (std::vector<std::string>{"B", "a", "a b", "b"}));
  memory::Record record;
  ASSERT_TRUE((*format)->read(4, record));
  EXPECT_EQ(record.fields[1].value, 2);
}

TEST(FolderFormat, FollowsLinks) {
  const TemporaryFolder folder;
  folder.write("elsewhere/1.jpg", "one");
  folder.write("data/a/0.jpg", "zero");
  std::filesystem::create_symlink(folder.path("elsewhere"), folder.path("data/b"));
  std::filesystem::create_symlink(folder.path("elsewhere"), folder.path("data/a/nested"));
  std::filesystem::create_symlink(folder.path("elsewhere/1.jpg"), folder.path("data/a/link.jpg"));
  std::filesystem::create_symlink("nothing", folder.path("data/a/dangling.jpg"));
  const auto format = open_records(folder.path("data/"), {});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(keys_of(**format), "a/0.jpg a/dangling.jpg a/link.jpg a/nested/1.jpg b/1.jpg");
  EXPECT_EQ((*format)->where(0).shard, folder.path("data/a/0.jpg"));
  memory::Record record;
  const auto done = (*format)->read(1, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kStorage);
  EXPECT_EQ(done.error().where.key, "a/dangling.jpg");
  EXPECT_EQ(inspected(folder.path("data")), "unreadable_file:error");
}

TEST(FolderFormat, AHugeSparseFileIsThatSamplesError) {
  constexpr std::uint64_t kTerabyte = std::uint64_t{1} << 40;
  const TemporaryFolder folder;
  folder.write("a/0.jpg", "zero");
  if (::truncate(folder.write("a/1.jpg", "").c_str(), kTerabyte) != 0) GTEST_SKIP() << "no file of a terabyte here";
  folder.write("a/2.jpg", "two");
  const auto format = open_records(folder.path(), {});
  ASSERT_TRUE(format);
  memory::Record record;
  const auto done = (*format)->read(1, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kData);
  EXPECT_EQ(done.error().where.key, "a/1.jpg");
  EXPECT_NE(done.error().what.find(std::to_string(kTerabyte)), std::string::npos) << done.error().what;
  EXPECT_EQ(record.storage.capacity(), 0u);
  EXPECT_TRUE((*format)->read(2, record));
  EXPECT_FALSE((*format)->files(1));
}

TEST(FolderFormat, ALinkToAParentIsAnErrorNotAnEndlessWalk) {
  const TemporaryFolder folder;
  folder.write("data/a/0.jpg", "x");
  std::filesystem::create_symlink("..", folder.path("data/a/up"));
  std::filesystem::create_symlink("..", folder.path("data/a/up_again"));
  EXPECT_EQ(open_error(folder.path("data")).code, ErrorCode::kConfig);
}

TEST(FolderFormat, AFileDeletedSinceIsAnErrorOfThatSample) {
  const TemporaryFolder folder;
  folder.write("a/0.jpg", "zero");
  const auto format = open_records(folder.path(), {});
  std::filesystem::remove(folder.path("a/0.jpg"));
  memory::Record record;
  const auto done = (*format)->read(0, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kStorage);
  EXPECT_EQ(done.error().system_errno, ENOENT);
  EXPECT_EQ(done.error().where.shard, folder.path("a/0.jpg"));
  EXPECT_EQ(done.error().where.stage, "storage");
}

TEST(FolderFormat, RefusesWhatHoldsNothing) {
  const TemporaryFolder folder;
  const Error empty = open_error(folder.path());
  EXPECT_EQ(empty.code, ErrorCode::kConfig);
  EXPECT_EQ(empty.where.dataset, folder.path());
  EXPECT_EQ(inspected(folder.path()), "no_classes:error");
  folder.write("0.tar", "");
  EXPECT_NE(open_error(folder.path()).what.find("not a tar file"), std::string::npos);  // a folder of tar files
  folder.write("0.jpg", "x");
  EXPECT_NE(open_error(folder.path()).what.find("no class folders"), std::string::npos);
  EXPECT_EQ(inspected(folder.path()), "no_classes:error");
  EXPECT_EQ(open_error(folder.path("missing")).code, ErrorCode::kStorage);
  EXPECT_NE(open_error(folder.path("missing")).message().find(folder.path("missing")), std::string::npos);
  EXPECT_EQ(open_error("").code, ErrorCode::kConfig);
}

TEST(FolderFormat, RefusesAClassWithoutImages) {
  const TemporaryFolder folder;
  folder.write("cat/0.jpg", "x");
  folder.write("dog/notes.txt", "x");
  const Error error = open_error(folder.path());
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_NE(error.what.find("'dog'"), std::string::npos);
  EXPECT_EQ(inspected(folder.path()), "class_without_images:error unknown_extension:warning");
}

TEST(FolderFormat, TellsFoldersThatBecomeOneClass) {
  const TemporaryFolder folder;
  for (const char* file : {"train/cat/0.jpg", "train/dog/0.jpg", "val/cat/0.jpg", "val/dog/0.jpg", "plain/images/0.jpg",
                           "mixed/0.jpg", "mixed/a/0.jpg", "mixed/b/0.jpg"})
    folder.write(file, "x");
  EXPECT_EQ(inspected(folder.path()), "merged_folders:warning merged_folders:warning");
  const auto inspection = inspect(folder.path(), {});
  EXPECT_NE(inspection->findings[0].text.find("open '" + folder.path("train") + "'"), std::string::npos);
  EXPECT_EQ(inspected(folder.path("train")), "");
}

TEST(FolderFormat, TellsWhatLiesNextToTheClasses) {
  const TemporaryFolder folder;
  for (const char* file : {"cat/0.jpg", "0.tar", "labels.csv", "README"}) folder.write(file, "x");
  EXPECT_EQ(inspected(folder.path()), "stray_file:warning other_files:note other_files:note");
}

TEST(FolderFormat, ChecksItsOptions) {
  const TemporaryFolder folder;
  folder.write("cat/0.jpg", "x");
  EXPECT_EQ(open_error(folder.path(), {.format = "zip"}).code, ErrorCode::kConfig);
  EXPECT_EQ(open_error(folder.path(), {.format = "tar"}).code, ErrorCode::kConfig);
  EXPECT_EQ(open_error(folder.path(), {.fields = {"jpg"}}).code, ErrorCode::kConfig);
  EXPECT_EQ(open_error(folder.path("cat/0.jpg"), {.format = "folder"}).code, ErrorCode::kConfig);
  EXPECT_EQ(open_error(folder.path("cat/0.jpg")).code, ErrorCode::kConfig);  // neither a folder nor a tar file
}

TEST(FolderFormat, InspectionTellsWhatIsOdd) {
  const TemporaryFolder folder;
  folder.write("cat/0.jpg", "");
  folder.write("cat/1.bmp", "xx");
  folder.write("cat/2.jpg", "xxx");
  folder.write("cat/notes", "x");
  folder.write("stray.png", "x");
  const auto inspection = inspect(folder.path(), {});
  ASSERT_TRUE(inspection);
  EXPECT_EQ(inspected(folder.path()),
            "empty_file:error stray_file:warning unknown_extension:warning decoded_by_pillow:warning");
  EXPECT_EQ(inspection->samples, 3u);
  EXPECT_EQ(inspection->bytes, 5u);
  EXPECT_EQ(inspection->smallest_bytes, 0u);
  EXPECT_EQ(inspection->largest_bytes, 3u);
  ASSERT_EQ(inspection->classes.size(), 1u);
  EXPECT_EQ(inspection->classes[0].name, "cat");
  EXPECT_EQ(inspection->classes[0].count, 3u);
}

TEST(FolderFormat, FindingsOfOneKindAreCountedNotListedForEver) {
  const TemporaryFolder folder;
  for (int i = 0; i < 50; ++i) folder.write("cat/" + std::to_string(i) + ".jpg", "");
  const auto inspection = inspect(folder.path(), {});
  ASSERT_EQ(inspection->findings.size(), 21u);
  EXPECT_EQ(inspection->findings[20].text, "30 more like these");
}

}  // namespace
}  // namespace feedline::format
