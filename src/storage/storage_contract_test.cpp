// SPDX-License-Identifier: Apache-2.0
#include "storage/storage_contract.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

namespace feedline::storage {

TEST_P(ObjectContract, ReadsAnyRangeInBothModes) {
  const std::string content = recognisable_bytes(70'001);
  const std::string path = write("object", content);
  for (const Access access : {Access::kRead, Access::kMap}) {
    const auto reader = storage_->open(path, access);
    ASSERT_TRUE(reader) << reader.error().message();
    EXPECT_EQ((*reader)->name(), path);
    EXPECT_EQ((*reader)->stat()->bytes, content.size());
    for (const std::size_t offset : {0ul, 1ul, 511ul, 4095ul, 4096ul, 69'999ul, 70'000ul})
      for (const std::size_t bytes : {0ul, 1ul, 512ul, 5000ul})
        EXPECT_EQ(read_at(**reader, offset, bytes), content.substr(offset, bytes)) << offset << " " << bytes;
    EXPECT_EQ(read_at(**reader, content.size(), 10), "");
    EXPECT_EQ(read_at(**reader, content.size() + 12345, 10), "");
    EXPECT_EQ(read_at(**reader, ~std::uint64_t{0}, 10), "");
    EXPECT_EQ(read_at(**reader, ~std::uint64_t{0} / 2, 10), "");
  }
}

TEST_P(ObjectContract, ViewsAreTheBytesOrNothing) {
  const std::string content = recognisable_bytes(20'000);
  const std::string path = write("object", content);
  for (const Access access : {Access::kRead, Access::kMap}) {
    const auto reader = storage_->open(path, access);
    ASSERT_TRUE(reader);
    const auto view = (*reader)->view(4097, 9000);
    ASSERT_TRUE(view) << view.error().message();
    if (!*view) continue;
    EXPECT_EQ(text_of(**view), content.substr(4097, 9000));
    EXPECT_EQ(text_of((*reader)->view(20'000, 0)->value()), "");
    EXPECT_FALSE((*reader)->view(19'999, 2));
    EXPECT_FALSE((*reader)->view(~std::uint64_t{0}, 2));
  }
}

TEST_P(ObjectContract, ReadAllGivesWholeObjectsAndReusesItsBuffer) {
  memory::ByteBuffer buffer;
  for (const std::size_t bytes : {1ul, 4095ul, 4096ul, 4097ul, 200'000ul, 10ul}) {
    const std::string content = recognisable_bytes(bytes);
    const auto got = storage_->read_all(write(std::to_string(bytes), content), buffer, memory::kLeastSampleBytes);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(text_of(*got), content);
  }
}

TEST_P(ObjectContract, AWholeObjectIsAsLargeAsIsAllowedAndNoLarger) {
  memory::ByteBuffer buffer;
  for (const std::uint64_t bytes : {1u, 4095u, 4096u, 4097u, 10'000u}) {
    const std::string path = write(std::to_string(bytes), recognisable_bytes(bytes));
    const auto got = storage_->read_all(path, buffer, bytes);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(text_of(*got), recognisable_bytes(bytes));
    expect_too_large(path, bytes, bytes - 1);
  }
}

TEST_P(ObjectContract, FourThreadsShareAReader) {
  const std::string content = recognisable_bytes(300'000);
  const std::string path = write("object", content);
  for (const Access access : {Access::kRead, Access::kMap}) {
    const auto opened = storage_->open(path, access);
    ASSERT_TRUE(opened);
    std::atomic<int> wrong{0};
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        std::vector<std::byte> out(1000);
        for (std::size_t i = 0; i < 200; ++i) {
          const std::size_t offset = (i * 7919 + thread * 104'729) % (content.size() - out.size());
          const auto got = (*opened)->read_at(offset, out);
          if (!got || text_of(std::span(out).first(*got)) != content.substr(offset, out.size())) ++wrong;
        }
      });
    threads.clear();
    EXPECT_EQ(wrong, 0);
  }
}

TEST_P(ObjectContract, OpensOnlyTheVersionThatWasIndexed) {
  const std::string path = write("object", recognisable_bytes(5000));
  const auto reader = storage_->open(path, Access::kRead);
  ASSERT_TRUE(reader) << reader.error().message();
  const Version version = *(*reader)->version();
  EXPECT_EQ(version, *(*reader)->stat());
  EXPECT_EQ(version, *storage_->stat(path));
  memory::ByteBuffer buffer;
  const auto got = storage_->read_version(path, buffer, memory::kLeastSampleBytes, version);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(text_of(*got), recognisable_bytes(5000));
  EXPECT_TRUE(storage_->open_version(path, Access::kMap, version));
  const auto refused = storage_->open_version(path, Access::kRead, {4999, version.mtime_ns, version.tag});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kStorage);
  EXPECT_EQ(refused.error().where.shard, path);
}

TEST_P(StorageContract, AnEmptyObjectReadsAsNoBytes) {
  const std::string path = folder_.write("empty", "");
  EXPECT_EQ(read_all(path), "");
  for (const Access access : {Access::kRead, Access::kMap}) {
    const auto reader = storage_->open(path, access);
    ASSERT_TRUE(reader) << reader.error().message();
    EXPECT_EQ((*reader)->stat()->bytes, 0u);
    EXPECT_EQ(read_at(**reader, 0, 100), "");
    EXPECT_TRUE((*reader)->view(0, 0));
  }
}

TEST_P(StorageContract, AnObjectOfATerabyteIsTooLarge) {
  const std::string sparse = folder_.write("sparse", "");
  constexpr std::uint64_t kTerabyte = std::uint64_t{1} << 40;
  if (::truncate(sparse.c_str(), kTerabyte) != 0) GTEST_SKIP() << "no file of a terabyte here";
  expect_too_large(sparse, kTerabyte, memory::kLeastSampleBytes);
}

TEST_P(StorageContract, NamesWhatCannotBeRead) {
  expect_unreadable(folder_.path("missing"));
  expect_unreadable(folder_.path());  // a folder
  std::filesystem::create_symlink("nowhere", folder_.path("dangling"));
  expect_unreadable(folder_.path("dangling"));
  std::filesystem::create_symlink("loop", folder_.path("loop"));
  expect_unreadable(folder_.path("loop"));
  folder_.write("file", "x");
  expect_unreadable(folder_.path("file/below"));  // not a folder
  const std::string deleted = folder_.write("deleted", "x");
  std::filesystem::remove(deleted);
  expect_unreadable(deleted);
}

TEST_P(StorageContract, AnOpenReaderOutlivesDeletion) {
  const std::string content = recognisable_bytes(10'000);
  const std::string path = folder_.write("object", content);
  for (const Access access : {Access::kRead, Access::kMap}) {
    folder_.write("object", content);
    const auto reader = storage_->open(path, access);
    ASSERT_TRUE(reader);
    std::filesystem::remove(path);
    EXPECT_EQ(read_at(**reader, 100, 9000), content.substr(100, 9000));
  }
}

TEST_P(StorageContract, AnObjectThatShrankIsAnErrorOrShort) {
  const std::string path = folder_.path("object");
  for (const Access access : {Access::kRead, Access::kMap}) {
    folder_.write("object", recognisable_bytes(100'000));
    const auto reader = storage_->open(path, access);
    ASSERT_TRUE(reader);
    std::filesystem::resize_file(path, 1000);
    std::vector<std::byte> out(50'000);
    const auto got = (*reader)->read_at(20'000, out);
    if (got) {
      EXPECT_EQ(*got, 0u);
    }
    const auto view = (*reader)->view(20'000, 50'000);
    if (view) {
      EXPECT_FALSE(view->has_value());
    } else {
      EXPECT_EQ(view.error().code, ErrorCode::kStorage);
      EXPECT_NE(view.error().message().find(path), std::string::npos);
    }
  }
}

TEST_P(StorageContract, StatTellsChanges) {
  const std::string path = folder_.write("object", "1234");
  const auto before = storage_->stat(path);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->bytes, 4u);
  const auto reader = storage_->open(path, Access::kMap);
  ASSERT_TRUE(reader);
  EXPECT_EQ(*(*reader)->stat(), *before);
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::seconds(10));
  EXPECT_NE(storage_->stat(path)->mtime_ns, before->mtime_ns);
  EXPECT_EQ(*(*reader)->stat(), *storage_->stat(path));
  const auto missing = storage_->stat(folder_.path("missing"));
  ASSERT_FALSE(missing);
  expect_storage_error(missing.error(), folder_.path("missing"));
}

TEST_P(StorageContract, GivesAVersionOrSaysThatThereIsAnother) {
  const std::string path = folder_.write("object", recognisable_bytes(5000));
  const Version version = *storage_->stat(path);
  memory::ByteBuffer buffer;
  const auto got = storage_->read_version(path, buffer, memory::kLeastSampleBytes, version);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(text_of(*got), recognisable_bytes(5000));
  EXPECT_EQ(read_at(**storage_->open_version(path, Access::kRead, version), 7, 100),
            recognisable_bytes(5000).substr(7, 100));
  EXPECT_FALSE(storage_->read_version(path, buffer, 4999, version)) << "too large";
  for (const Version& other : {Version{4999, version.mtime_ns}, Version{5000, version.mtime_ns + 1}}) {
    const auto refused = storage_->read_version(path, buffer, memory::kLeastSampleBytes, other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kStorage);
    EXPECT_EQ(refused.error().where.shard, path);
    EXPECT_NE(refused.error().what.find("changed between index and read"), std::string::npos);
    EXPECT_FALSE(storage_->open_version(path, Access::kMap, other));
  }
  EXPECT_FALSE(storage_->read_version(folder_.path("missing"), buffer, memory::kLeastSampleBytes, version));
}

TEST_P(StorageContract, KnowsAnObjectHoweverItIsNamed) {
  const std::string path = folder_.write("data/object", "x");
  EXPECT_EQ(storage_->identity(folder_.path("data/../data/object")), storage_->identity(path));
  EXPECT_EQ(storage_->identity(folder_.path("data/")), storage_->identity(folder_.path("data")));
  EXPECT_NE(storage_->identity(folder_.path("data/other")), storage_->identity(path));
  EXPECT_EQ(storage_->local_path(path), path);
}

TEST_P(StorageContract, ListsSortedByBytesWithLinksFollowed) {
  for (const char* file : {"b.jpg", "B.jpg", "a-1", "a", "\xc3\xa9", "z", ".hidden", "10", "9"})
    folder_.write(file, "x");
  folder_.write("dir/inside", "x");
  folder_.write("z.dir/inside", "x");
  std::filesystem::create_symlink("dir", folder_.path("link_to_dir"));
  std::filesystem::create_symlink("z", folder_.path("link_to_file"));
  std::filesystem::create_symlink("nowhere", folder_.path("link_to_nothing"));
  const auto entries = storage_->list(folder_.path());
  ASSERT_TRUE(entries) << entries.error().message();
  std::string found;
  for (const Entry& entry : *entries) found += entry.name + (entry.is_directory ? "/ " : " ");
  EXPECT_EQ(found, ".hidden 10 9 B.jpg a a-1 b.jpg dir/ link_to_dir/ link_to_file link_to_nothing z z.dir/ \xc3\xa9 ");
}

TEST_P(StorageContract, ListsThousandsAndNone) {
  for (int i = 0; i < 3000; ++i) folder_.write("many/" + std::to_string(i), "");
  EXPECT_EQ(storage_->list(folder_.path("many"))->size(), 3000u);
  std::filesystem::create_directory(folder_.path("none"));
  EXPECT_TRUE(storage_->list(folder_.path("none"))->empty());
}

TEST_P(StorageContract, NamesWhatCannotBeListed) {
  const std::string file = folder_.write("file", "x");
  for (const std::string& path : {file, folder_.path("missing")}) {
    const auto entries = storage_->list(path);
    ASSERT_FALSE(entries);
    expect_storage_error(entries.error(), path);
  }
}

TEST_P(StorageContract, TellsFoldersFromFiles) {
  folder_.write("file", "x");
  std::filesystem::create_symlink(".", folder_.path("link"));
  EXPECT_TRUE(*storage_->is_directory(folder_.path()));
  EXPECT_TRUE(*storage_->is_directory(folder_.path("link")));
  EXPECT_FALSE(*storage_->is_directory(folder_.path("file")));
  const auto missing = storage_->is_directory(folder_.path("missing"));
  ASSERT_FALSE(missing);
  expect_storage_error(missing.error(), folder_.path("missing"));
}

}  // namespace feedline::storage
