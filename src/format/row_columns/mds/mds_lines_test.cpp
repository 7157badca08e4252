// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "format/inspected.h"
#include "format/row_columns/mds/mds_writer.h"
#include "format/shown_fixture.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

const std::vector<MdsColumn> kColumns{{"n", "int"}, {"t", "str"}};
const MdsLines kJson{"json", kColumns}, kCsv{"csv", kColumns}, kTsv{"tsv", kColumns, "\t"},
    kXsv{"xsv", kColumns, "::", "\r\n"};

std::string line(const MdsLines& kind, int number, const std::string& text) {
  const std::string n = std::to_string(number);
  return (kind.format == "json" ? R"({"n": )" + n + R"(, "t": ")" + text + "\"}" : n + kind.separator + text) +
         kind.newline;
}

class MdsLinesFormat : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  // Writes a dataset with one shard of two samples.
  std::string write(const MdsLines& kind, const std::vector<std::string>& hashes = {},
                    const std::string& compression = "") const {
    const MdsLineFiles files = mds_lines(kind, {line(kind, 1, "one"), line(kind, 2, "two")});
    MdsLineFiles stored = files;
    const std::string end = compression.empty() ? "" : "." + compression;
    if (!compression.empty())
      stored = {compressed(Compression::kZstd, files.lines), compressed(Compression::kZstd, files.table)};
    folder_.write("x." + kind.format + end, stored.lines);
    folder_.write("x." + kind.format + ".meta" + end, stored.table);
    folder_.write("index.json",
                  mds_index({mds_entry_of(kind, "x." + kind.format, 2, files, hashes, compression, stored)}));
    return folder_.path();
  }
  // Writes a dataset with one shard that has one sample with one column.
  static std::string write_sized(const storage::TemporaryFolder& folder, const MdsColumn& column,
                                 const std::string& value) {
    const std::string shard = mds_shard({mds_sample({column}, {value})});
    folder.write("x.mds", shard);
    folder.write("index.json", mds_index({mds_entry_of({column}, "x.mds", 1, shard)}));
    return folder.path();
  }
  static Result<std::shared_ptr<const RecordFormat>> opened(const std::string& source,
                                                            const std::vector<std::string>& fields = {}) {
    OpenOptions options;
    options.fields = fields;
    return open_records(source, options);
  }
  static std::string shown(const std::string& source, const std::vector<std::string>& fields = {}) {
    return shown_samples(opened(source, fields));
  }
  static std::string codes(const std::string& source) {
    std::string text;
    const auto inspected = format::inspect(source, {});
    for (const auto& finding : inspected->findings) text += finding.code + " ";
    return text;
  }
  // Overwrites the number at an offset of the file.
  std::string with(const std::string& name, std::size_t offset, std::uint32_t number) const {
    const std::string whole = storage::TemporaryFolder::read(folder_.path(name));
    std::string file = whole;
    std::memcpy(file.data() + offset, &number, sizeof number);
    folder_.write(name, file);
    const std::string text = shown(folder_.path());
    folder_.write(name, whole);
    return text;
  }

  storage::TemporaryFolder folder_, cache_;
};

TEST_F(MdsLinesFormat, EveryFormatIsRead) {
  for (const MdsLines& kind : {kJson, kCsv, kTsv, kXsv}) {
    EXPECT_EQ(shown(write(kind)), "1 one|2 two") << kind.format;
    EXPECT_EQ(shown(write(kind), {"text=t", "n:text"}), "one 1|two 2") << kind.format;
    EXPECT_EQ(codes(write(kind, {"sha1"})), "") << kind.format;
    EXPECT_EQ((*opened(folder_.path()))->where(1).offset, kind.header().size() + line(kind, 1, "one").size());
  }
}

TEST_F(MdsLinesFormat, BothFilesAreMadePlainAndCompared) {
  for (const MdsLines& kind : {kJson, kCsv}) {
    const std::string source = write(kind, {"xxh64"}, "zstd");
    EXPECT_EQ(shown(source), "1 one|2 two");
    EXPECT_EQ(codes(source), "");
    for (const std::string& name : {"x." + kind.format + ".zstd", "x." + kind.format + ".meta.zstd"}) {
      const std::string whole = storage::TemporaryFolder::read(folder_.path(name));
      folder_.write(name, whole + "x");
      const std::string text = shown(source);
      EXPECT_TRUE(text.contains("damaged") && text.contains(name)) << text;
      EXPECT_EQ(codes(source), "checksum_differs ") << name;
      folder_.write(name, whole);
    }
  }
}

TEST_F(MdsLinesFormat, DamageOfATableIsNamedWithItsFile) {
  (void)write(kCsv);
  const std::string table = folder_.path("x.csv.meta");
  for (const auto& [offset, number, what] : std::initializer_list<std::tuple<std::size_t, std::uint32_t, const char*>>{
           {0, 3, "the file begins with a sample count of 3, but the index specifies 2"},
           {4, 0, "the first sample is at byte 0, but the index places it at byte 4"},
           {4, 5, "the first sample is at byte 5"},
           {8, 3, "sample 1 is at byte 3, which is before byte 4"},
           {8, 1000, "sample 1 is at byte 1000, which is past the end of the shard's 16 bytes"},
           {12, 15, "the last sample ends at byte 15 of 16"}}) {
    const std::string text = with("x.csv.meta", offset, number);
    EXPECT_TRUE(text.contains(what) && text.contains(table)) << text;
  }
  folder_.write("x.csv.meta", storage::TemporaryFolder::read(table) + " ");
  const std::string longer = shown(folder_.path());
  EXPECT_TRUE(longer.contains("the file has 19 bytes, but the index specifies 18") && longer.contains(table)) << longer;
  EXPECT_EQ(codes(folder_.path()), "damaged_shard ");
  std::filesystem::remove(table);
  EXPECT_TRUE(shown(folder_.path()).contains("x.csv.meta"));
}

TEST_F(MdsLinesFormat, DamageOfALineIsNamedWithItsSample) {
  (void)write(kCsv);
  const std::string text = with("x.csv", 4 + 5, 0x32'30'30'30);  // "1,one\n2,two\n" with "2,t" replaced by "0002"
  EXPECT_TRUE(text.contains("the sample is damaged: the line has 1 cells, but there are 2 columns: n (int), t (str)"))
      << text;
  EXPECT_TRUE(text.contains("x.csv") && text.contains("x_csv/00000001")) << text;
  EXPECT_TRUE(with("x.csv", 4, 0x6f'2c'78'78).starts_with("error: field 'n': 'xx' is not an integer")) << "xx,o";
  (void)write(kJson);
  EXPECT_TRUE(with("x.json", 0, 0x20'20'20'20).contains("invalid JSON at byte "));
  EXPECT_TRUE(with("x.json", 0, 0x22'6d'22'7b).contains("the sample has no 'n'")) << R"({"m")";
}

TEST_F(MdsLinesFormat, AnIndexThatCannotBeIsRefused) {
  const auto with = [&](const MdsLines& kind, const std::string& from, const std::string& to) {
    (void)write(kind);
    std::string index = storage::TemporaryFolder::read(folder_.path("index.json"));
    index.replace(index.find(from), from.size(), to);
    folder_.write("index.json", index);
    return shown(folder_.path());
  };
  EXPECT_TRUE(with(kCsv, "\"raw_meta\"", "\"no_meta\"").contains("the shard has no raw_meta"));
  EXPECT_TRUE(with(kCsv, "x.csv.meta", "../x.csv.meta").contains("not the name of a file below"));
  EXPECT_TRUE(with(kCsv, "\"newline\": \"\\n\"", "\"newline\": \"\"").contains("not specify the separators of lines"));
  EXPECT_TRUE(with(kXsv, "\"separator\": \"::\"", "\"separator\": \"\"").contains("separators of lines and cells"));
  EXPECT_TRUE(with(kCsv, "[\"n\", \"t\"]", "[\"n\"]").contains("1 column names, 2 encodings"));
  EXPECT_TRUE(with(kCsv, "[\"n\", \"t\"]", "[\"n\", \"n\"]").contains("two columns are called 'n'"));
  EXPECT_TRUE(with(kJson, "\"columns\"", "\"colours\"").contains("0 column names"));
  EXPECT_TRUE(with(kJson, "\"int\"", "\"bytes\"").contains("'n' is stored as 'bytes', which is not supported"));
}

TEST_F(MdsLinesFormat, AnIndexWithoutShardsHasNoSamples) {
  folder_.write("index.json", mds_index({}));
  EXPECT_TRUE(shown(folder_.path()).contains("the dataset has no samples"));
  EXPECT_TRUE(shown(folder_.path(), {"n"}).contains("the dataset has no samples"));
  EXPECT_EQ(codes(folder_.path()), "no_samples ");
}

TEST_F(MdsLinesFormat, StreamsWithOtherColumnsGiveTheFieldsThatAllHave) {
  storage::TemporaryFolder other;
  const std::string lines = write(kCsv), both = lines + "::" + write_sized(other, {"t", "str"}, "three");
  EXPECT_EQ(shown(both, {"t"}), "one|two|three") << "of lines and of sized values";
  EXPECT_EQ((*opened(both, {"t"}))->fields().size(), 1U);
  const auto refused = [&](const std::string& source, const std::vector<std::string>& fields = {}) {
    const auto format = opened(source, fields);
    return !format && format.error().code == ErrorCode::kConfig ? format.error().what : "";
  };
  const std::string shard = "the shard '" + other.path() + "/x.mds': ";
  EXPECT_EQ(refused(both), shard + "the first shard's column 'n' is missing; select common columns with fields=");
  EXPECT_EQ(
      refused(other.path() + "::" + lines),
      "the shard '" + lines + "/x.csv': the column 'n' is not in the first shard; select common columns with fields=");
  EXPECT_EQ(refused(both, {"n"}), shard + "no sample has the field 'n' (n); the columns are t (str)");
  (void)write_sized(other, {"t", "int32", 4}, raw_number(7));
  EXPECT_EQ(refused(both, {"t"}), shard + "the column 't' (int32) is value, but that of the first shard (str) is text");
}

TEST_F(MdsLinesFormat, AnIndexMayNameShardsOfSeveralStreams) {
  (void)write(kCsv);
  const std::string shard = mds_shard({mds_sample({{"t", "str"}}, {"three"})});
  folder_.write("x.mds", shard);
  const MdsLineFiles lines = mds_lines(kCsv, {line(kCsv, 1, "one"), line(kCsv, 2, "two")});
  const std::string of_lines = mds_entry_of(kCsv, "x.csv", 2, lines),
                    sized = mds_entry_of({{"t", "str"}}, "x.mds", 1, shard);
  folder_.write("index.json", mds_index({of_lines, sized, of_lines}));
  EXPECT_EQ(shown(folder_.path(), {"t"}), "one|two|three|one|two");
  EXPECT_TRUE(shown(folder_.path()).contains("x.mds': the first shard's column 'n' is missing"));
  const auto inspected = format::inspect(folder_.path(), {});
  ASSERT_EQ(inspected->extensions.size(), 2U);
  EXPECT_EQ(inspected->extensions[0].count, 4U) << "of n";
  EXPECT_EQ(inspected->extensions[1].count, 5U) << "of t";
  EXPECT_TRUE(codes(folder_.path()).contains("no_field"));
}

}  // namespace
}  // namespace feedline::format
