// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "format/checksum.h"
#include "format/index/memory_reader.h"
#include "format/shards/finding.h"
#include "format/tfrecord/example_writer.h"
#include "format/tfrecord/foreign_index.h"
#include "format/tfrecord/record_scan.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

constexpr storage::ObjectStat kShard{100, 7};
const std::vector<std::uint64_t> kEnds{16, 50, 100};

std::optional<RecordIndex> parse(std::span<const std::byte> file, const storage::ObjectStat& shard = kShard) {
  memory::ByteBuffer buffer;
  std::ranges::copy(file, buffer.resize(file.size()).begin());
  return RecordIndex::parse(std::move(buffer), file.size(), shard);
}

TEST(RecordIndex, ComesBackFromItsFile) {
  const RecordIndex built = RecordIndex::build(kEnds, kShard);
  const auto index = parse(built.file_bytes());
  ASSERT_TRUE(index);
  ASSERT_EQ(index->records(), 3u);
  EXPECT_EQ(index->location(0).offset, 0u);
  EXPECT_EQ(index->location(1).offset, 16u);
  EXPECT_EQ(index->location(1).bytes, 34u);
  EXPECT_EQ(index->location(2).bytes, 50u);
  EXPECT_EQ(RecordIndex::build({}, {0, 7}).records(), 0u);
}

TEST(RecordIndex, IsRefusedWhenStaleOrDamaged) {
  const RecordIndex built = RecordIndex::build(kEnds, kShard);
  EXPECT_FALSE(parse(built.file_bytes(), {kShard.bytes + 1, kShard.mtime_ns}));
  EXPECT_FALSE(parse(built.file_bytes(), {kShard.bytes, kShard.mtime_ns + 1}));
  std::vector<std::byte> file(built.file_bytes().begin(), built.file_bytes().end());
  for (std::size_t i = 0; i < file.size(); ++i) {
    file[i] ^= std::byte{4};
    EXPECT_FALSE(parse(file)) << "byte " << i;
    file[i] ^= std::byte{4};
    EXPECT_FALSE(parse(std::span(file).first(i))) << i;
  }
}

// Numbers can be invalid even if the checksum is valid.
TEST(RecordIndex, IsRefusedWhenItsNumbersLeadOutside) {
  const RecordIndex built = RecordIndex::build(kEnds, kShard);
  for (std::size_t word = 0; word + 16 <= built.file_bytes().size(); word += 8)
    for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 39U, kShard.bytes + 1, std::uint64_t{1}}) {
      std::vector<std::byte> file(built.file_bytes().begin(), built.file_bytes().end());
      std::memcpy(file.data() + word, &value, sizeof value);
      const std::uint64_t sum = xxh3(std::span(file).first(file.size() - 8));
      std::memcpy(file.data() + file.size() - 8, &sum, sizeof sum);
      if (std::ranges::equal(file, built.file_bytes())) continue;  // the number before the change
      EXPECT_FALSE(parse(file)) << "word " << word / 8 << " is " << value;
    }
}

TEST(RecordIndex, EndsFitAFileThatTheyFill) {
  EXPECT_TRUE(ends_fit(kEnds, 100));
  EXPECT_TRUE(ends_fit({}, 0));
  EXPECT_FALSE(ends_fit({}, 1));
  EXPECT_FALSE(ends_fit(kEnds, 101));
  EXPECT_FALSE(ends_fit(std::vector<std::uint64_t>{16, 31, 100}, 100)) << "no room for a frame";
  EXPECT_FALSE(ends_fit(std::vector<std::uint64_t>{50, 16, 100}, 100));
}

TEST(RecordIndexStore, KeepsNextToTheShard) {
  const storage::TemporaryFolder folder;
  const RecordIndexStore store{"", nullptr};
  const std::string shard = folder.path("x.tfrecord");
  EXPECT_FALSE(store.load(*storage::local_storage(), shard, kShard));
  ASSERT_TRUE(store.save(*storage::local_storage(), shard, RecordIndex::build(kEnds, kShard)));
  EXPECT_TRUE(std::filesystem::exists(folder.path(".feedline/x.tfrecord.feedline-index")));
  EXPECT_TRUE(store.load(*storage::local_storage(), shard, kShard));
  EXPECT_FALSE(store.load(*storage::local_storage(), shard, {1, 2}));
}

std::string scanned(const std::string& file) {
  Findings findings;
  const auto ends = scan_records(MemoryReader(file), file.size(), "x", findings);
  std::string text;
  for (const std::uint64_t end : ends.value()) text += std::to_string(end) + " ";
  for (const Finding& finding : findings.examples())
    text += std::string(finding.code) + "@" + std::to_string(finding.offset.value_or(0)) + " ";
  return text;
}

TEST(RecordScan, FindsEveryRecord) {
  EXPECT_EQ(scanned(""), "");
  EXPECT_EQ(scanned(record_of("") + record_of("abc") + record_of(std::string(10'000, 'x'))), "16 35 10051 ");
  // small records, many per window, so that the window grows; then large ones
  std::vector<std::string> data;
  std::string expected;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < 30'000; ++i) {
    data.emplace_back(i % 1'000 == 999 ? 20'000 : i % 37, 'd');
    expected += std::to_string(end += data.back().size() + 16) + " ";
  }
  EXPECT_EQ(scanned(records_of_all(data)), expected);
}

TEST(RecordScan, EndsAtABrokenLength) {
  const std::string first = record_of("abc"), file = first + record_of("defg");
  for (std::size_t length = 1; length < file.size(); ++length) {
    const std::string text = scanned(file.substr(0, length));
    if (length == first.size())
      EXPECT_EQ(text, "19 ");
    else
      EXPECT_TRUE(text.ends_with(length < first.size() ? "cut_record@0 " : "cut_record@19 ")) << length << text;
  }
  std::string wrong = file;
  wrong[first.size() + 2] ^= 1;
  EXPECT_EQ(scanned(wrong), "19 bad_length@19 ");
  // lengths that lead outside the file, or overflow 64 bits, with valid checksums
  for (const std::uint64_t length :
       {std::uint64_t{1} << 63U, ~std::uint64_t{0}, ~std::uint64_t{15}, std::uint64_t{5}}) {
    const std::string header = raw(length);
    EXPECT_EQ(scanned(first + header + raw(masked_crc(std::as_bytes(std::span(header)))) + "defg1234"),
              "19 cut_record@19 ")
        << length;
  }
}

// Returns the ends of records as text, such as "16 50 100", or the error.
std::string parsed(std::string_view text, std::uint64_t bytes = 100) {
  const auto ends = parse_foreign_index(text, bytes);
  if (!ends) return ends.error();
  std::string all;
  for (const std::uint64_t end : *ends) all += std::to_string(end) + " ";
  return all;
}

TEST(ForeignIndex, IsReadLineByLine) {
  EXPECT_EQ(parsed("0 16\n16 34\n50 50\n"), "16 50 100 ");
  EXPECT_EQ(parsed("0 16\r\n16 34\r\n50 50"), "16 50 100 ");
  EXPECT_EQ(parsed("", 0), "");
}

TEST(ForeignIndex, IsRefusedWithItsLine) {
  const auto expect = [](std::string_view text, const std::string& part) {
    EXPECT_NE(parsed(text).find(part), std::string::npos) << parsed(text);
  };
  expect("", "the listed records end at byte 0, but the shard ends at 100");
  expect("0 16\n16 34\n", "the listed records end at byte 50");
  expect("v1.1 3\n", "line 1 is not");
  expect("0 16\n16 34 7\n50 50\n", "line 2 is not");
  expect("0 16\n\n16 84\n", "line 2 is not");
  expect("0 -16\n", "line 1 is not");
  expect("0 99999999999999999999\n", "line 1 is not");
  expect("0 16\n17 83\n", "line 2 begins at byte 17");
  expect("4 96\n", "line 1 begins at byte 4");
  expect("0 16\n16 15\n31 69\n", "line 2 has a record of 15 bytes");
  expect("0 16\n16 85\n", "line 2 ends after the shard's 100 bytes");
  expect("0 16\n16 18446744073709551615\n", "line 2 ends after");
}

}  // namespace
}  // namespace feedline::format
