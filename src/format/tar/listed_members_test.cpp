// SPDX-License-Identifier: Apache-2.0
#include "format/tar/listed_members.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "format/tar/tar_format_fixture.h"

namespace feedline::format {
namespace {

struct Listed {
  std::string archive, dali, energon;
};

// Writes samples a/0, a/1, ... with an image and a label, and the indexes of both programs.
Listed listed(std::size_t samples, TarWriter writer = TarWriter(), const std::string& version = "v1.2") {
  Listed made;
  std::string lines;
  std::uint64_t at = writer.finish(0).size();
  const auto put = [&](std::uint64_t number) {
    made.energon.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (std::size_t i = 0; i < samples; ++i) {
    put(at);
    const std::string key = "a/" + std::to_string(i), image(i * 300 + 1, static_cast<char>('a' + i % 26));
    std::string line;
    for (const auto& [extension, content] : {std::pair{std::string("JPG"), image}, {"cls", std::to_string(i % 10)}}) {
      writer.add(key + "." + extension, content);
      line += (line.empty() ? "" : " ") + extension + " " + std::to_string(at + 512) + " " +
              std::to_string(content.size()) + (version == "v1.2" ? " " + key + "." + extension : "");
      at = writer.finish(0).size();
    }
    lines += line + "\n";
  }
  put(at);
  made.archive = writer.finish();
  made.dali = version + " " + std::to_string(samples) + "\n" + lines;
  return made;
}

class ListedMembersTest : public TarFormatTest {
 protected:
  // Returns the error from opening the archive or reading any sample, or an empty string if all samples are the same as
  // after a scan.
  std::string error_of_reading(const Listed& made) const {
    OpenOptions chosen = options();
    chosen.notes = notes_;
    const auto plain = open_records(write(made.archive, "scanned.tar"), options());
    const std::string path = write(made.archive);
    write(made.dali, "x.idx");
    const auto format = open_records(path, chosen);
    if (!format || !plain) return (format ? plain : format).error().message();
    EXPECT_EQ((*format)->size(), (*plain)->size());
    memory::Record record, other;
    for (std::uint64_t i = 0; i < (*format)->size(); ++i) {
      if (const auto read = (*format)->read(i, record); !read) return read.error().message();
      EXPECT_TRUE((*plain)->read(i, other));
      if (!std::ranges::equal(record.fields[0].bytes, other.fields[0].bytes) ||
          record.fields[1].value != other.fields[1].value)
        return "another value";
      if (const auto files = (*format)->files(i); !files) return files.error().message();
    }
    summary_ = (*format)->summary();
    EXPECT_EQ((*format)->fingerprint(), (*plain)->fingerprint());
    return {};
  }
  std::string said() const {
    std::string all;
    for (const std::string& line : notes_->lines()) all += line + "\n";
    return all;
  }

  std::shared_ptr<cache::Notes> notes_ = std::make_shared<cache::Notes>();
  mutable std::string summary_;
};

INSTANTIATE_TEST_SUITE_P(Storages, ListedMembersTest, ::testing::ValuesIn(kAllReads), name_of_reads);

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST_P(ListedMembersTest, AnIndexThatFitsSavesTheScanAndGivesTheSameSamples) {
  EXPECT_EQ(error_of_reading(listed(40)), "");
  EXPECT_EQ(said(), "");
  EXPECT_EQ(summary_, "1 shards used DALI's indexes instead of a scan");
  EXPECT_FALSE(std::ifstream(folder_.path(".feedline/x.tar.feedline-index")).good()) << "our own index was not needed";
  EXPECT_EQ(findings(listed(40).archive), inspected(folder_.path("scanned.tar"), options()));
}

TEST_P(ListedMembersTest, OneThatDoesNotFitIsNamedAndTheShardIsScanned) {
  const Listed good = listed(40), other = listed(41);
  TarWriter directory, reserved;
  directory.add("a/", "", '5');
  reserved.add("__meta__/x.json", "{}");
  const std::string twice = replaced(good.dali, "a/1.JPG", "a/0.JPG");
  const struct {
    std::string archive, dali, why;
  } cases[] = {
      {good.archive, other.dali, "has a file outside the shard's"},
      {other.archive, good.dali, "the listed members end at byte 305664, but the shard ends at 320512"},
      {listed(40, directory).archive, good.dali, "the shard has no end marker at byte 305664"},
      {listed(40, directory).archive, listed(40, directory).dali, "the bytes between them are not listed"},
      {listed(40, reserved).archive, listed(40, reserved).dali, "the bytes between them are not listed"},
      {good.archive, replaced(good.dali, "v1.2", "v1.7"), "does not begin with"},
      {good.archive, replaced(good.dali, "v1.2 40", "v1.2 39"), "begins with 39 samples, but has 40"},
      {good.archive, replaced(good.dali, "cls 1536 1 ", "cls 1536 -1 "),
       "line 2 does not list \"EXTENSION OFFSET BYTES"},
      {good.archive, replaced(good.dali, "cls 1536 1 ", "cls 1536 1  "),
       "line 2 does not list \"EXTENSION OFFSET BYTES"},
      {good.archive, replaced(good.dali, " a/0.cls", ""), "line 2 does not list \"EXTENSION OFFSET BYTES"},
      {good.archive, replaced(good.dali, "cls 1536 1 ", "cls 1535 1 "), "the bytes between them are not listed"},
      {good.archive, replaced(good.dali, "JPG 512 1 a/0", "JPG 512 2 a/0"), "instead of 'a/0.jpg' of 2 bytes"},
      {good.archive, replaced(good.dali, "a/0.JPG", "b/0.JPG"), "instead of 'b/0.jpg'"},
      {good.archive, replaced(good.dali, "a/39.JPG", "a/39.png"), "instead of 'a/39.png'"},
      {good.archive, twice, "comes twice"},
      {good.archive, good.dali.substr(0, good.dali.size() - 30), "the shard has no end mark"},
      {listed(0).archive + std::string(512, '\0'), "v1.2 0\n", "the index has no samples"},
  };
  for (const auto& one : cases) {
    notes_ = std::make_shared<cache::Notes>();
    std::remove(folder_.path(".feedline/x.tar.feedline-index").c_str());
    std::remove(folder_.path(".feedline/scanned.tar.feedline-index").c_str());
    const std::string wrong = error_of_reading({one.archive, one.dali, ""});
    EXPECT_EQ(wrong.empty(), one.why != "the index has no samples") << one.why << ": " << wrong;
    EXPECT_CONTAINS(said(), one.why);
    EXPECT_CONTAINS(said(), "x.idx' does not belong to this shard and is not used: ");
    EXPECT_EQ(summary_, "");
  }
}

// Errors that the 16 checks on opening do not find are reported when the sample is read. Wrong values are never
// returned.
TEST_P(ListedMembersTest, AnEntryThatIsNotTheShardsIsAnErrorOfItsSample) {
  const Listed good = listed(40);
  const std::string wrong = error_of_reading({good.archive, replaced(good.dali, " 1 a/1.cls", " 2 a/1.cls"), ""});
  EXPECT_CONTAINS(wrong,
                  "x.idx' does not belong to this shard: the shard has 'a/1.cls' of 1 bytes instead of 'a/1.cls' of 2");
  EXPECT_CONTAINS(wrong, "without the index the shard is scanned again");
  const std::string renamed = error_of_reading({good.archive, replaced(good.dali, " a/1.cls", " a/1.txt"), ""});
  EXPECT_CONTAINS(renamed, "the sample has no member for this field");
}

TEST_P(ListedMembersTest, IndexesWithoutNamesAreComparedByInspect) {
  const Listed good = listed(12), nameless = listed(12, TarWriter(), "v1.1");
  EXPECT_EQ(error_of_reading(nameless), "");
  EXPECT_EQ(summary_, "");
  const auto found = [&](const std::string& dali, const std::string& energon) {
    write(dali, "x.idx");
    write(energon, "x.tar.idx");
    return findings(good.archive);
  };
  const std::string none = inspected(folder_.path("scanned.tar"), options());
  EXPECT_EQ(found(good.dali, good.energon), none);
  EXPECT_EQ(found(nameless.dali, good.energon), none);
  EXPECT_EQ(found("17 4\n", good.energon), none) << "one of records";
  const Listed longer = listed(13);
  EXPECT_CONTAINS(found(longer.dali, good.energon), "foreign_index:warning");
  EXPECT_CONTAINS(found(replaced(nameless.dali, "cls", "txt"), good.energon), "foreign_index:warning");
  EXPECT_CONTAINS(found(good.dali, longer.energon), "foreign_index:warning");
  EXPECT_CONTAINS(found(good.dali, good.energon.substr(1)), "foreign_index:warning");
  std::string moved = good.energon;
  moved[8] = '\0';
  moved[9] = '\x06';  // the second sample, one block later, at its first file
  EXPECT_NE(moved, good.energon);
  EXPECT_CONTAINS(found(good.dali, moved), "foreign_index:warning");
}

TEST(ListedMembersText, EveryCutAndFlipIsAnIndexOrAReason) {
  const Listed good = listed(9);
  for (std::size_t length = 0; length < good.dali.size(); ++length) {
    const auto cut = parse_dali_index(good.dali.substr(0, length), good.archive.size());
    const bool lacks_a_sample = length <= good.dali.rfind('\n', good.dali.size() - 2) + 1;
    EXPECT_FALSE(lacks_a_sample && cut.has_value()) << length;
    EXPECT_EQ(cut ? cut->first_members.size() : 9U, 9U) << length;
    for (const char flip : {'\x01', '\x10', '\x80'}) {
      std::string damaged = good.dali;
      damaged[length] = static_cast<char>(damaged[length] ^ flip);
      const auto parsed = parse_dali_index(damaged, good.archive.size());
      if (!parsed) continue;
      for (const ListedMember& one : parsed->members) EXPECT_LE(one.offset + one.bytes, good.archive.size());
    }
  }
  for (std::size_t length = 0; length < good.energon.size(); ++length) {
    const auto parsed = parse_energon_index(good.energon.substr(0, length), good.archive.size());
    EXPECT_EQ(parsed.has_value(), length % 8 == 0 && length >= 16) << length;
  }
}

}  // namespace
}  // namespace feedline::format
