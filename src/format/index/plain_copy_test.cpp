// SPDX-License-Identifier: Apache-2.0
#include "format/index/plain_copy.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "format/deflated_fixture.h"
#include "format/tar/tar_format_fixture.h"

namespace feedline::format {
namespace {

class GzippedTar : public TarFormatTest {
 protected:
  GzippedTar() { ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1); }
  std::size_t cached(const std::string& suffix) const {
    std::size_t count = 0;
    if (!std::filesystem::exists(folder_.path("cache"))) return 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path("cache")))
      count += entry.path().string().ends_with(suffix);
    return count;
  }
};

INSTANTIATE_TEST_SUITE_P(Storages, GzippedTar, ::testing::ValuesIn(kAllReads), name_of_reads);

TEST_P(GzippedTar, IsDecompressedOnceAndReadsTheSame) {
  auto samples = some_samples(2, 3);
  samples[0].image = std::string(9'000'000, 'z');  // compresses a thousandfold, so one input yields many outputs
  const std::string source = write(deflated(tar_of(samples)), "x.tar.gz");
  const auto format = opened(source);
  ASSERT_EQ(format->size(), samples.size());
  EXPECT_EQ(format->fingerprint(), opened(write(tar_of(samples)))->fingerprint());
  memory::Record record;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ASSERT_TRUE(format->read(i, record));
    EXPECT_TRUE(std::ranges::equal(record.fields[0].bytes, std::as_bytes(std::span(samples[i].image)))) << i;
  }
  EXPECT_EQ(format->where(0).shard, source);
  EXPECT_EQ(cached(".tar"), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_.path(".feedline/x.tar.gz.feedline-index")));
  const auto made = [this] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path("cache")))
      if (entry.path().extension() == ".tar") return entry.last_write_time();
    return std::filesystem::file_time_type();
  };
  const auto first = made();
  EXPECT_EQ(opened(source)->size(), samples.size());
  EXPECT_EQ(made(), first) << "decompressed again";
  write(deflated(tar_of(some_samples(2, 4))), "x.tar.gz");
  EXPECT_EQ(opened(source)->size(), 8u) << "the copy of another file was used";
  EXPECT_EQ(cached(".tar"), 1u);
  EXPECT_EQ(cached(".unfinished"), 0u);
}

TEST_P(GzippedTar, IsKnownByContent) {
  EXPECT_EQ(opened(write(deflated(tar_of(some_samples(1, 2))), "x.tgz"))->size(), 2u);
  EXPECT_EQ(opened(write(deflated(tar_of(some_samples(1, 3))), "named_oddly"))->size(), 3u);
  EXPECT_EQ(opened(write(deflated(tar_of(some_samples(1, 4))), "x.tar"))->size(), 4u);
}

TEST_P(GzippedTar, OfSeveralMembersAndPaddedWithZerosReadsToItsEnd) {
  const std::string archive = tar_of(some_samples(1, 3));
  const std::string joined =
      deflated(archive.substr(0, 1000)) + deflated(archive.substr(1000)) + std::string(700, '\0');
  EXPECT_EQ(opened(write(joined, "x.tar.gz"))->size(), 3u);
}

TEST_P(GzippedTar, DamagedOrCutIsAnErrorAndLeavesNothing) {
  const std::string whole = deflated(tar_of(some_samples(1, 3)));
  std::vector<std::string> bad;
  for (std::size_t length = 18; length < whole.size(); length += 37) bad.push_back(whole.substr(0, length));
  for (const std::size_t cut : {1, 4, 8, 9}) bad.push_back(whole.substr(0, whole.size() - cut));  // in the trailer
  bad.push_back(whole);
  bad.back()[whole.size() - 6] = static_cast<char>(~bad.back()[whole.size() - 6]);  // the checksum
  bad.push_back(whole + "garbage");
  bad.push_back(whole + std::string(10, '\0') + "garbage");
  bad.push_back(deflated("not a tar"));
  bad.push_back(deflated(tar_of(some_samples(1, 3)).substr(0, 2048)));
  for (const std::string& archive : bad) {
    const std::string source = write(archive, "x.tar.gz");
    const auto format = open(source, options());
    ASSERT_FALSE(format) << archive.size();
    EXPECT_EQ(format.error().code, ErrorCode::kData) << format.error().message();
    EXPECT_EQ(format.error().where.shard, source);
    EXPECT_NE(inspected(source, options()).find(":error"), std::string::npos);
    EXPECT_EQ(cached(".unfinished"), 0u);
  }
}

TEST_P(GzippedTar, AFullCacheFolderIsAnErrorThatSaysWhatToDo) {
  const std::string source = write(deflated(tar_of(some_samples(1, 3))), "x.tar.gz");
  static cache::SystemWrites writes;
  writes = cache::system_writes();
  writes.write = [](int, const void*, std::size_t) -> ssize_t {
    errno = ENOSPC;
    return -1;
  };
  const auto full = decompressed(*storage::local_storage(), source, ".tar", nullptr, writes);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kStorage);
  EXPECT_EQ(full.error().system_errno, ENOSPC);
  for (const std::string& part : {source, std::string("make room in the cache folder"), std::string("XDG_CACHE_HOME")})
    EXPECT_NE(full.error().message().find(part), std::string::npos) << full.error().message();
  EXPECT_EQ(cached(".unfinished"), 0u);
  EXPECT_EQ(opened(source)->size(), 3u) << "there is room again";
  folder_.write("file", "");
  ::setenv("XDG_CACHE_HOME", folder_.path("file").c_str(), 1);
  const auto nowhere = open(source, options());
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message().find("XDG_CACHE_HOME"), std::string::npos) << nowhere.error().message();
}

TEST_P(GzippedTar, FourThreadsMakeOneCopy) {
  const std::string source = write(deflated(tar_of(some_samples(2, 10))), "x.tar.gz");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const auto format = open(source, options());
      EXPECT_TRUE(format && (*format)->size() == 20);
    });
  threads.clear();
  EXPECT_EQ(cached(".tar"), 1u);
  EXPECT_EQ(cached(".unfinished"), 0u);
}

}  // namespace
}  // namespace feedline::format
