// SPDX-License-Identifier: Apache-2.0
#include "format/folder/pattern_index.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <random>

#include "format/inspected.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Local storage that counts how often a folder was listed.
class CountingStorage final : public storage::Storage {
 public:
  Result<std::unique_ptr<storage::Reader>> open(const std::string& path, storage::Access access) const override {
    return local_->open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return local_->read_all(path, buffer, most);
  }
  Result<std::vector<storage::Entry>> list(const std::string& directory) const override {
    ++lists;
    return local_->list(directory);
  }
  Result<storage::ObjectStat> stat(const std::string& path) const override {
    ++stats;
    return local_->stat(path);
  }
  Result<bool> is_directory(const std::string& path) const override { return local_->is_directory(path); }
  std::string identity(const std::string& path) const override { return local_->identity(path); }

  mutable std::atomic<int> lists = 0, stats = 0;

 private:
  const std::shared_ptr<const storage::Storage> local_ = storage::local_storage();
};

class PatternIndexTest : public testing::Test {
 protected:
  PatternIndexTest() {
    for (const char* file : {"images/a.jpg", "images/b/1.jpg", "images/b/2.jpg", "images/b-1/3.jpg", "images/about.txt",
                             "texts/a.txt", "texts/b/2.txt", "texts/b-1/3.txt", "texts/z.txt"})
      folder_.write("data/" + std::string(file), "content of " + std::string(file));
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
  OpenOptions options(Missing missing = Missing::kNone) const {
    return {.fields = {"images/{key}.jpg", "texts/{key}.txt"}, .index_directory = index_folder(), .missing = missing};
  }
  std::shared_ptr<const RecordFormat> open(const OpenOptions& options) const {
    const auto format = open_records(data(), options);
    EXPECT_TRUE(format) << format.error().message();
    return format ? *format : nullptr;
  }
  std::shared_ptr<const RecordFormat> open() const { return open(options()); }
  bool is_from_index() const { return !open()->summary().empty(); }
  static std::string keys_of(const Format& format) {
    std::string keys;
    for (std::uint64_t i = 0; i < format.size(); ++i) keys += format.where(i).key + " ";
    return keys;
  }
  // Returns the missing fields of each sample.
  static std::string lacking(const RecordFormat& format) {
    std::string text;
    memory::Record record;
    for (std::uint64_t i = 0; i < format.size(); ++i) {
      EXPECT_TRUE(format.read(i, record));
      for (const auto& field : record.fields) text += field.absent ? '-' : '+';
      text += ' ';
    }
    return text;
  }
  fs::path index_file() const { return fs::directory_iterator(index_folder())->path(); }

  storage::TemporaryFolder folder_;
};

TEST_F(PatternIndexTest, OpensAsListed) {
  const auto listed = open(), opened = open();
  EXPECT_EQ(listed->summary(), "");
  EXPECT_NE(opened->summary().find("listed from the stored index"), std::string::npos);
  EXPECT_EQ(keys_of(*opened), "a b-1/3 b/1 b/2 z ");
  EXPECT_EQ(keys_of(*opened), keys_of(*listed));
  EXPECT_EQ(lacking(*opened), "++ ++ +- ++ -+ ");
  EXPECT_EQ(lacking(*opened), lacking(*listed));
  EXPECT_EQ(opened->fingerprint(), listed->fingerprint());
  EXPECT_EQ(opened->where(4).shard, folder_.path("data/texts/z.txt"));
  for (std::size_t field = 0; field < 2; ++field) EXPECT_TRUE(opened->fields()[field].may_be_absent);
  fs::remove(index_file());
  EXPECT_EQ(keys_of(*opened), keys_of(*listed)) << "it lives on in its mapping";
}

TEST_F(PatternIndexTest, AnIndexedFolderIsNotListed) {
  const auto storage = std::make_shared<CountingStorage>();
  OpenOptions counted = options();
  counted.storage = storage;
  open(counted);
  EXPECT_EQ(storage->lists, 6) << "images, texts, b and b-1 of each";
  storage->stats = 0;
  open(counted);
  EXPECT_EQ(storage->lists, 6);
  EXPECT_EQ(storage->stats, 9) << "each folder, no file, and three times whether it is a database or several";
  folder_.write("data/texts/b/1.txt", "new");
  EXPECT_EQ(lacking(*open(counted)), "++ ++ ++ ++ -+ ");
  EXPECT_EQ(storage->lists, 12);
}

TEST_F(PatternIndexTest, FieldsOfOneFolderAreListedTogether) {
  const auto storage = std::make_shared<CountingStorage>();
  folder_.write("flat/a.jpg", "x");
  folder_.write("flat/a.txt", "x");
  ASSERT_TRUE(open_records(folder_.path("flat"), {.fields = {"{key}.jpg", "{key}.txt"}, .storage = storage}));
  EXPECT_EQ(storage->lists, 1);
}

TEST_F(PatternIndexTest, EachQuestionHasItsOwn) {
  EXPECT_EQ(keys_of(*open(options(Missing::kSkip))), "a b-1/3 b/2 ");
  EXPECT_EQ(keys_of(*open(options(Missing::kNone))), "a b-1/3 b/1 b/2 z ");
  OpenOptions images = options();
  images.fields = {"images/{key}.jpg"};
  EXPECT_EQ(keys_of(*open(images)), "a b-1/3 b/1 b/2 ");
  EXPECT_EQ(std::distance(fs::directory_iterator(index_folder()), fs::directory_iterator()), 3);
  for (const OpenOptions& asked : {options(Missing::kSkip), options(Missing::kNone), images})
    EXPECT_NE(open(asked)->summary().find("listed from the stored index"), std::string::npos);
  EXPECT_NE(open(options(Missing::kSkip))->summary().find("2 samples were omitted"), std::string::npos);
  EXPECT_EQ(keys_of(*open(options(Missing::kSkip))), "a b-1/3 b/2 ");
}

TEST_F(PatternIndexTest, EveryChangeOfAFolderIsSeen) {
  const auto changes = std::to_array<std::function<void()>>({
      [&] { folder_.write("data/images/c.jpg", "x"); },
      [&] { fs::remove(folder_.path("data/texts/b/2.txt")); },
      [&] { fs::rename(folder_.path("data/images/b/1.jpg"), folder_.path("data/images/b/7.jpg")); },
      [&] { folder_.write("data/images/deep/er/1.jpg", "x"); },
      [&] { fs::rename(folder_.path("data/images/deep"), folder_.path("data/images/deeper")); },
      [&] { fs::remove_all(folder_.path("data/images/deeper")); },
  });
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ASSERT_TRUE((open(), is_from_index())) << i;
    changes[i]();
    EXPECT_FALSE(is_from_index()) << i << ": not settled yet, so not kept either";
    EXPECT_FALSE(is_from_index()) << i;
    OpenOptions again = options();
    again.index_directory.clear();
    const std::string fresh = keys_of(*open(again)) + lacking(*open(again));
    settle();
    EXPECT_EQ(keys_of(*open()) + lacking(*open()), fresh);
    EXPECT_TRUE(is_from_index()) << i;
  }
}

TEST_F(PatternIndexTest, AFileWithOtherBytesIsTheSameSample) {
  open();
  folder_.write("data/images/a.jpg", "other content");
  const auto opened = open();
  EXPECT_NE(opened->summary(), "");
  memory::Record record;
  ASSERT_TRUE(opened->read(0, record));
  EXPECT_EQ(record.fields[0].bytes.size(), 13u);
}

TEST_F(PatternIndexTest, ADamagedFileIsMadeAgain) {
  open();
  const std::string whole = storage::TemporaryFolder::read(index_file());
  const std::string expected = keys_of(*open()) + lacking(*open());
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
    ASSERT_FALSE(is_from_index()) << i;
    ASSERT_EQ(keys_of(*open()) + lacking(*open()), expected);
    ASSERT_TRUE(is_from_index()) << "rebuilt";
  }
}

TEST_F(PatternIndexTest, AnIndexOfAnotherQuestionDoesNotCount) {
  open();
  const std::string whole = storage::TemporaryFolder::read(index_file());
  const auto bytes = std::as_bytes(std::span(whole));
  PatternQuestion question{data(), *parse_patterns(options().fields), Missing::kNone};
  EXPECT_TRUE(PatternIndex::parse(bytes, nullptr, question));
  PatternQuestion elsewhere = question, whole_ones = question, others = question;
  elsewhere.root += "x";
  EXPECT_FALSE(PatternIndex::parse(bytes, nullptr, elsewhere));
  whole_ones.missing = Missing::kSkip;
  EXPECT_FALSE(PatternIndex::parse(bytes, nullptr, whole_ones));
  std::swap(others.patterns[0], others.patterns[1]);
  EXPECT_FALSE(PatternIndex::parse(bytes, nullptr, others));
}

TEST_F(PatternIndexTest, AChosenFolderThatTakesNoFilesIsAnError) {
  folder_.write("kept", "a file");
  const auto format = format::open(data(), options());
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, ErrorCode::kStorage);
  EXPECT_EQ(format.error().where.dataset, data());
}

}  // namespace
}  // namespace feedline::format
