// SPDX-License-Identifier: Apache-2.0
#include "format/index/opening_reader.h"

#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/index/memory_reader.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// An object in memory that behaves like a remote or local object, and records requests.
struct Asked {
  std::string content;
  std::int64_t mtime_ns = 1;
  bool is_far = true;
  std::vector<ByteRange> ranges;
  int opened = 0, opened_versions = 0;
  std::mutex mutex;
};

class AskedReader final : public storage::Reader {
 public:
  explicit AskedReader(Asked& asked) : asked_(asked) {}
  Result<storage::ObjectStat> stat() const override {
    return storage::ObjectStat{asked_.content.size(), asked_.mtime_ns, 0};
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(asked_.mutex);
    asked_.ranges.push_back({offset, out.size()});
    return MemoryReader(asked_.content).read_at(offset, out);
  }
  Result<std::optional<Bytes>> view(std::uint64_t, std::size_t) const override { return std::nullopt; }
  const std::string& name() const override { return name_; }

 private:
  Asked& asked_;
  const std::string name_ = "far/object";
};

class AskedStorage final : public storage::Storage {
 public:
  explicit AskedStorage(Asked& asked) : asked_(asked) {}
  Result<std::unique_ptr<storage::Reader>> open(const std::string&, storage::Access) const override {
    ++asked_.opened;
    return std::make_unique<AskedReader>(asked_);
  }
  Result<std::unique_ptr<storage::Reader>> open_version(const std::string&, storage::Access,
                                                        const storage::Version&) const override {
    ++asked_.opened_versions;
    return std::make_unique<AskedReader>(asked_);
  }
  Result<Bytes> read_all(const std::string&, memory::ByteBuffer&, std::uint64_t) const override { return Bytes(); }
  Result<std::vector<storage::Entry>> list(const std::string&) const override { return std::vector<storage::Entry>(); }
  Result<storage::ObjectStat> stat(const std::string&) const override { return AskedReader(asked_).stat(); }
  Result<bool> is_directory(const std::string&) const override { return false; }
  bool is_remote() const override { return asked_.is_far; }
  bool holds_versions() const override { return asked_.is_far; }

 private:
  Asked& asked_;
};

class OpeningReaderTest : public testing::Test {
 protected:
  OpeningReaderTest() {
    std::mt19937 random(3);
    asked_.content.resize(std::size_t{3} << 20U);
    for (char& c : asked_.content) c = static_cast<char>(random());
  }
  std::unique_ptr<OpeningReader> open(bool checks_version = false) const {
    auto opened = OpeningReader::open(storage_, "far/object", store_, checks_version);
    EXPECT_TRUE(opened) << opened.error().message();
    return std::move(*opened);
  }
  // Reads a range and compares it with the object's bytes.
  void read(const storage::Reader& reader, std::uint64_t offset, std::size_t count) const {
    std::vector<std::byte> room(count);
    const auto got = reader.read_at(offset, room);
    ASSERT_TRUE(got) << got.error().message();
    const std::string_view wanted = std::string_view(asked_.content).substr(offset, count);
    ASSERT_EQ(*got, wanted.size());
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(room.data()), *got), wanted) << offset << " " << count;
  }
  std::size_t requests() { return std::exchange(asked_.ranges, {}).size(); }

  storage::TemporaryFolder folder_;
  mutable Asked asked_;
  const std::shared_ptr<const storage::Storage> storage_ = std::make_shared<AskedStorage>(asked_);
  const ShardPartsStore store_{folder_.path("kept")};
};

TEST_F(OpeningReaderTest, WhatWasReadIsReadAgainWithoutARequest) {
  std::mt19937 random(4);
  std::vector<std::pair<std::uint64_t, std::size_t>> reads{{0, 8}, {asked_.content.size() - 8, 8}};
  for (int i = 0; i < 60; ++i) reads.push_back({random() % asked_.content.size(), 1 + random() % 5000});
  const auto first = open();
  EXPECT_TRUE(first->is_checked());
  for (const auto& [offset, count] : reads) read(*first, offset, count);
  EXPECT_GT(requests(), 0u);
  ASSERT_TRUE(first->keep(store_));
  const int opened = asked_.opened;
  const auto again = open();
  EXPECT_FALSE(again->is_checked());
  for (const auto& [offset, count] : reads) read(*again, offset, count);
  EXPECT_EQ(requests(), 0u);
  EXPECT_EQ(asked_.opened, opened) << "no request for the version";
  // other bytes are read and added
  read(*again, 1'234'567, 100);
  ASSERT_TRUE(again->keep(store_));
  requests();
  const auto third = open();
  read(*third, 1'234'567, 100);
  for (const auto& [offset, count] : reads) read(*third, offset, count);
  EXPECT_EQ(requests(), 0u);
  EXPECT_TRUE(open(true)->is_checked());
  asked_.mtime_ns = 2;
  const auto another = open(true);
  read(*another, 0, 8);
  EXPECT_EQ(requests(), 1u) << "the cached parts are of another version";
}

TEST_F(OpeningReaderTest, AFooterComesWithTheEndAndHeadersByStepsTogether) {
  const std::uint64_t end = asked_.content.size();
  const auto tail = open();
  read(*tail, end - 8, 8);
  read(*tail, end - 5000, 4992);
  read(*tail, end - OpeningReader::kTail, 10);
  EXPECT_EQ(requests(), 1u);
  const auto steps = open();
  for (std::uint64_t at = 0; at + 10'000 < end; at += 10'000) read(*steps, at, 100);
  EXPECT_LE(requests(), 30u) << "of 300 headers";
  const auto far = open();
  for (std::uint64_t at = 0; at < end; at += OpeningReader::kNear) read(*far, at, 100);
  std::uint64_t bytes = 0;
  for (const ByteRange& range : asked_.ranges) bytes += range.bytes;
  EXPECT_EQ(asked_.ranges.size(), 3u);
  EXPECT_LE(bytes, 3u * 4096) << "the bytes between are not needed";
}

TEST_F(OpeningReaderTest, OnThisMachineReadsAreSmallAndKeptWhereTheyWereMany) {
  asked_.is_far = false;
  const auto headers = [&](const storage::Reader& reader, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) read(reader, asked_.content.size() - 8 - i * 10'000, 8);
  };
  const auto many = open();
  many->bring({{0, 10}, {asked_.content.size() / 2, 10}});
  EXPECT_EQ(requests(), 0u) << "local ranges are read on demand";
  headers(*many, OpeningReader::kFewReads + 1);
  for (const ByteRange& range : asked_.ranges) EXPECT_EQ(range.bytes, 8u);
  EXPECT_EQ(requests(), OpeningReader::kFewReads + 1);
  ASSERT_TRUE(many->keep(store_));
  const auto again = open();
  EXPECT_TRUE(again->is_checked());
  headers(*again, OpeningReader::kFewReads + 1);
  EXPECT_EQ(requests(), 0u);
  asked_.mtime_ns = 2;
  const auto few = open();
  headers(*few, OpeningReader::kFewReads);
  EXPECT_EQ(requests(), OpeningReader::kFewReads) << "the cached parts are of another version";
  ASSERT_TRUE(few->keep(store_));
  headers(*open(), 1);
  EXPECT_EQ(requests(), 1u) << "nothing was kept";
}

TEST_F(OpeningReaderTest, AFileOfThisMachineIsOpenedAgainWhereItIsReadOn) {
  asked_.is_far = false;
  const auto opening = open();
  read(*opening, 100, 50);
  opening->let_go();
  read(*opening, 100, 50);
  EXPECT_EQ(asked_.opened_versions, 0);
  read(*opening, 200, 50);
  read(*opening, 300, 50);
  EXPECT_EQ(asked_.opened_versions, 1);
}

TEST_F(OpeningReaderTest, RangesAreBroughtTogether) {
  std::vector<ByteRange> ranges;
  for (std::uint64_t at = 0; at < 20; ++at) ranges.push_back({at * 150'000, 60});
  ranges.push_back({150'060, 60});                   // next to another range
  ranges.push_back({asked_.content.size() + 1, 5});  // past the end
  const auto opening = open();
  opening->bring(ranges);
  EXPECT_EQ(requests(), 20u);
  for (std::uint64_t at = 0; at < 20; ++at) read(*opening, at * 150'000, 4096);
  read(*opening, 150'060, 60);
  EXPECT_EQ(requests(), 0u);
  ASSERT_TRUE(opening->keep(store_));
  const auto again = open();
  again->bring(ranges);
  EXPECT_EQ(requests(), 0u);
}

TEST_F(OpeningReaderTest, WhatIsMostOfAShardIsNotKept) {
  const auto opening = open();
  read(*opening, 0, asked_.content.size() / 3);
  ASSERT_TRUE(opening->keep(store_));
  EXPECT_TRUE(open()->is_checked()) << "nothing was kept";
}

TEST_F(OpeningReaderTest, ANoteIsKeptWithWhatWasRead) {
  const auto first = open();
  EXPECT_EQ(first->note(), "");
  read(*first, 100, 50);
  first->set_note("+photo");
  EXPECT_EQ(first->note(), "+photo");
  ASSERT_TRUE(first->keep(store_));
  const auto again = open();
  EXPECT_EQ(again->note(), "+photo");
  read(*again, 1'000'000, 50);
  ASSERT_TRUE(again->keep(store_));  // with more bytes read, and the same note
  const auto third = open();
  EXPECT_EQ(third->note(), "+photo");
  third->set_note("+photo, -raw");
  ASSERT_TRUE(third->keep(store_));  // nothing more was read
  const auto fourth = open();
  EXPECT_EQ(fourth->note(), "+photo, -raw");
  requests();
  read(*fourth, 100, 50);
  read(*fourth, 1'000'000, 50);
  EXPECT_EQ(requests(), 0u);
  asked_.mtime_ns = 2;
  EXPECT_EQ(open(true)->note(), "") << "the cached parts are of another version";
}

TEST_F(OpeningReaderTest, NoReadOfValuesIsKept) {
  for (const bool is_far : {true, false}) {
    asked_.is_far = is_far;
    asked_.mtime_ns = is_far ? 1 : 2;
    const auto opening = open();
    opening->let_go();
    const auto values = opening->values();
    ASSERT_TRUE(values);
    read(**values, 0, asked_.content.size() / 2);
    read(*opening, 100, 50);
    ASSERT_TRUE(opening->keep(store_));
    requests();
    const auto again = open();
    read(*again, 100, 50);
    EXPECT_EQ(requests(), is_far ? 0u : 1u);  // one local read is not worth a cache file
    read(*again, 2000, 50);
    EXPECT_EQ(requests(), 1u);
  }
}

// Changes every byte of a table, and truncates it to every length.
TEST_F(OpeningReaderTest, ATableThatIsDamagedIsNone) {
  const std::string one = "abcdefgh", other = "xyz";
  const storage::ObjectStat version{100, 7, 9};
  const std::vector<ShardParts::Part> parts{{5, std::as_bytes(std::span(one))}, {50, std::as_bytes(std::span(other))}};
  const ShardParts made = ShardParts::build(parts, version, "a note");
  const auto parsed = [&](std::vector<std::byte> file) {
    memory::ByteBuffer buffer;
    const auto room = buffer.resize(file.size());
    std::ranges::copy(file, room.begin());
    return ShardParts::parse(std::move(buffer), file.size(), {});
  };
  const std::vector<std::byte> file(made.file_bytes().begin(), made.file_bytes().end());
  const auto same = parsed(file);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->version(), version);
  EXPECT_EQ(same->note(), "a note");
  ASSERT_TRUE(same->find(7, 6));
  EXPECT_EQ(std::to_integer<char>((*same->find(7, 6))[0]), 'c');
  EXPECT_FALSE(same->find(7, 7));
  EXPECT_FALSE(same->find(4, 1));
  EXPECT_FALSE(same->find(20, 1));
  EXPECT_TRUE(same->find(52, 1));
  for (std::size_t i = 0; i < file.size(); ++i) {
    auto changed = file;
    changed[i] ^= std::byte{1};
    EXPECT_FALSE(parsed(changed)) << i;
    EXPECT_FALSE(parsed({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(i)})) << i;
  }
}

}  // namespace
}  // namespace feedline::format
