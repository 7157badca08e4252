// SPDX-License-Identifier: Apache-2.0
#include "format/folder/folder_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>

#include "format/folder/folder_format.h"
#include "format/inspected.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class FolderIndexTest : public testing::Test {
 protected:
  FolderIndexTest() {
    for (const char* file : {"a/1.jpg", "a/2.jpg", "a/deep/3.jpg", "a/deep-er/4.jpg", "b/1.jpg", "b/notes.txt"})
      folder_.write("data/" + std::string(file), "content");
    settle();
  }
  // Sets the modification time of all folders to a minute ago.
  void settle() const {
    std::vector<fs::path> folders{data()};
    for (const auto& entry : fs::recursive_directory_iterator(data()))
      if (entry.is_directory()) folders.push_back(entry.path());
    for (const fs::path& path : folders) fs::last_write_time(path, fs::file_time_type::clock::now() - 60s);
  }
  std::string data() const { return folder_.path("data"); }
  std::string index_folder() const { return folder_.path("kept"); }
  std::shared_ptr<const RecordFormat> open() const {
    const auto format = open_records(data(), {.index_directory = index_folder()});
    EXPECT_TRUE(format) << format.error().message();
    return format ? *format : nullptr;
  }
  bool is_from_index() const { return !open()->summary().empty(); }
  static std::string keys_of(const Format& format) {
    std::string keys;
    for (std::uint64_t i = 0; i < format.size(); ++i) keys += format.where(i).key + " ";
    return keys;
  }
  fs::path index_file() const { return fs::directory_iterator(index_folder())->path(); }

  storage::TemporaryFolder folder_;
};

TEST_F(FolderIndexTest, OpensAsListed) {
  const auto listed = open();
  EXPECT_EQ(listed->summary(), "");
  const auto opened = open();
  EXPECT_NE(opened->summary(), "");
  EXPECT_EQ(keys_of(*opened), "a/1.jpg a/2.jpg a/deep/3.jpg a/deep-er/4.jpg b/1.jpg ");
  EXPECT_EQ(keys_of(*opened), keys_of(*listed));
  EXPECT_EQ(opened->classes(), listed->classes());
  EXPECT_EQ(opened->fingerprint(), listed->fingerprint());
  memory::Record record;
  for (std::uint64_t i = 0; i < opened->size(); ++i) {
    ASSERT_TRUE(opened->read(i, record));
    EXPECT_EQ(record.fields[1].value, i == 4 ? 1 : 0);
  }
  fs::remove(index_file());
  EXPECT_EQ(keys_of(*opened), keys_of(*listed)) << "it lives on in its mapping";
}

TEST_F(FolderIndexTest, EveryChangeOfAFolderIsSeen) {
  const auto changes = std::to_array<std::function<void()>>({
      [&] { folder_.write("data/a/0.jpg", "x"); },
      [&] {
        fs::remove(folder_.path("data/a/deep/3.jpg"));
        folder_.write("data/a/deep/3.png", "x");
      },
      [&] { fs::rename(folder_.path("data/b/1.jpg"), folder_.path("data/b/2.jpg")); },
      [&] { folder_.write("data/c/1.jpg", "x"); },
      [&] { fs::rename(folder_.path("data/c"), folder_.path("data/d")); },
      [&] { fs::remove_all(folder_.path("data/d")); },
  });
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ASSERT_TRUE((open(), is_from_index())) << i;
    changes[i]();
    EXPECT_FALSE(is_from_index()) << i << ": not settled yet, so not kept either";
    EXPECT_FALSE(is_from_index()) << i;
    const std::string fresh = keys_of(**format::open(data(), {}));
    EXPECT_EQ(keys_of(*open()), fresh);
    settle();
    EXPECT_EQ(keys_of(*open()), fresh);
    EXPECT_EQ(keys_of(*open()), fresh);
  }
}

TEST_F(FolderIndexTest, AFileWithOtherBytesIsTheSameSample) {
  open();
  folder_.write("data/a/1.jpg", "other content");
  EXPECT_TRUE(is_from_index());
}

TEST_F(FolderIndexTest, ADamagedFileIsMadeAgain) {
  open();
  const std::string whole = storage::TemporaryFolder::read(index_file());
  const std::string expected = keys_of(*open());
  const std::string name = "kept/" + index_file().filename().string();
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = whole;
    if (i % 4 == 0)
      damaged.resize(random() % whole.size());
    else if (i % 4 == 1)
      damaged.append(1 + random() % 9, '\0');
    else
      damaged[random() % whole.size()] ^= static_cast<char>(1 << random() % 8);
    folder_.write(name, damaged);
    ASSERT_FALSE(load_folder_index(*storage::local_storage(), data(), index_folder())) << i;
    ASSERT_EQ(keys_of(*open()), expected);
    ASSERT_TRUE(is_from_index()) << "rebuilt";
  }
}

// A file with a valid checksum but invalid numbers must be rejected.
TEST_F(FolderIndexTest, AnIndexOfAnotherFolderOrVersionDoesNotCount) {
  open();
  const std::string name = index_file().filename().string();
  const std::string other = folder_.path("other");
  fs::copy(data(), other, fs::copy_options::recursive);
  const auto format = format::open(other, {.index_directory = index_folder()});
  ASSERT_TRUE(format);
  EXPECT_EQ((*format)->summary(), "");
  const std::string whole = storage::TemporaryFolder::read(index_folder() + "/" + name);
  const auto bytes = std::as_bytes(std::span(whole));
  EXPECT_TRUE(FolderIndex::parse(bytes, nullptr, data()));
  EXPECT_FALSE(FolderIndex::parse(bytes, nullptr, other));
}

TEST_F(FolderIndexTest, SmallFoldersKeepNoneUnlessTold) {
  ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1);
  ASSERT_TRUE(format::open(data(), {}));
  EXPECT_FALSE(fs::exists(folder_.path("cache")));
  for (int i = 0; i < 10'000; ++i) folder_.write("data/b/" + std::to_string(i) + ".jpg", "");
  settle();
  ASSERT_TRUE(format::open(data(), {}));
  const auto again = format::open(data(), {});
  EXPECT_NE((*again)->summary(), "");
  EXPECT_EQ((*again)->size(), 10'004u);
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(FolderIndexTest, AChosenFolderThatTakesNoFilesIsAnError) {
  folder_.write("kept", "a file");
  const auto format = format::open(data(), {.index_directory = index_folder()});
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, ErrorCode::kStorage);
}

}  // namespace
}  // namespace feedline::format
