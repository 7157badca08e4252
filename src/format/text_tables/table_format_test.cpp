// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/table_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "format/format_contract.h"
#include "format/inspected.h"
#include "format/shown_fixture.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

std::string store_table(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  std::string table = "path,label\n";
  for (const StoredSample& sample : samples) {
    folder.write("images/" + sample.key + ".jpg", sample.image);
    table += "\"images/" + sample.key + ".jpg\"," + std::to_string(sample.label) + "\r\n";
  }
  return folder.write("train.csv", table);
}

std::string store_metadata(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  std::string table;
  for (const StoredSample& sample : samples) {
    folder.write("set/" + sample.key + ".jpg", sample.image);
    table += R"({"file_name": ")" + sample.key + R"(.jpg", "label": )" + std::to_string(sample.label) + "}\n";
  }
  folder.write("set/metadata.jsonl", table);
  return folder.path("set");
}

std::string key_of_one(std::size_t i) { return std::string(i < 10 ? 7 : 6, '0') + std::to_string(i); }

INSTANTIATE_TEST_SUITE_P(
    Table, FormatContract,
    ::testing::Values(
        FormatUnderTest{"table", "table", store_table, storage::local_storage, {}, "path", key_of_one, 0},
        FormatUnderTest{
            "table_short_reads", "table", store_table, storage::short_reads_storage, {}, "path", key_of_one, 0},
        FormatUnderTest{
            "table_metadata", "table", store_metadata, storage::local_storage, {}, "file_name", key_of_one, 0}),
    name_of_format);

class TableSource : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const RecordFormat>> opened(const std::string& source,
                                                     const std::vector<std::string>& fields = {},
                                                     Missing missing = Missing::kError) const {
    OpenOptions options;
    options.fields = fields;
    options.missing = missing;
    return open_records(source, options);
  }
  std::string refusal(const std::string& source, const std::vector<std::string>& fields = {}) const {
    const auto format = opened(source, fields);
    return format ? "opens" : format.error().message();
  }
  TemporaryFolder folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(TableSource, CellsAndFilesMakeASample) {
  folder_.write("a/1.jpg", "photo");
  folder_.write("b.txt", "words");
  const std::string source = folder_.write("t.csv", "p,q,n,s\na/1.jpg,b.txt,7,\"say \"\"hi\"\"\"\n");
  const auto format = opened(source, {"p", "q:image", "n", "s", "x=n:array"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_CONTAINS(shown_sample(**format, 0), "photo words 7 say \"hi\" \x93NUMPY");
  EXPECT_EQ((*format)->where(0).shard, folder_.path("a/1.jpg"));
  EXPECT_EQ((*format)->where_field(0, 1).shard, folder_.path("b.txt"));
  EXPECT_EQ((*format)->where_field(0, 2).shard, source);
  const auto files = (*format)->files(0);
  ASSERT_TRUE(files);
  std::string names;
  for (const auto& file : files->files) names += file.extension + " ";
  EXPECT_EQ(names, "jpg txt cls s.txt x.npy ");
}

TEST_F(TableSource, AMissingFileIsNamedWithItsLine) {
  folder_.write("1.jpg", "photo");
  const std::string source = folder_.write("t.csv", "p,label\n1.jpg,1\n\"2.jpg\",2\nhttps://x/3.jpg,3\n");
  const auto format = opened(source);
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown_sample(**format, 0), "photo 1");
  EXPECT_CONTAINS(shown_sample(**format, 1), "line 3 of '" + source + "', field 'image'");
  EXPECT_CONTAINS(shown_sample(**format, 2), "is a URL");
  EXPECT_EQ(inspected(source), "missing_file:error missing_file:error");
}

TEST_F(TableSource, ASampleThatLacksACellIsWhatMissingSays) {
  for (const char* name : {"1.jpg", "2.jpg", "3.jpg"}) folder_.write(name, name);
  const std::string source = folder_.write("t.csv", "p,label\n1.jpg,1\n,2\n3.jpg,\n");
  const auto error = opened(source);
  EXPECT_EQ((*error)->size(), 3u);
  EXPECT_CONTAINS(shown_sample(**error, 1), "line 3 of '" + source + "': nothing in the column 'p'");
  std::vector<storage::Piece> pieces;
  EXPECT_TRUE((*error)->find_pieces(1, pieces) && pieces.empty());
  const auto skip = opened(source, {}, Missing::kSkip);
  EXPECT_EQ((*skip)->size(), 1u);
  EXPECT_CONTAINS((*skip)->summary(), "2 samples were omitted");
  const auto none = opened(source, {}, Missing::kNone);
  EXPECT_EQ(shown_sample(**none, 1), "- 2");
  EXPECT_EQ(shown_sample(**none, 2), "3.jpg -");
}

TEST_F(TableSource, AFolderWithMetadataIsATableAndOneWithSplitsIsAskedFor) {
  folder_.write("set/train/a.jpg", "photo");
  folder_.write("set/train/metadata.csv", "file_name,caption\na.jpg,hello\n");
  const auto format = opened(folder_.path("set/train/"));
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->name(), "table");
  EXPECT_EQ(shown_sample(**format, 0), "photo hello");
  EXPECT_EQ((*opened(folder_.path("set")))->size(), 1u) << "its only split";
  folder_.write("set/test/metadata.csv", "file_name,caption\na.jpg,hello\n");
  EXPECT_CONTAINS(refusal(folder_.path("set")), "metadata in each of its folders ('test' and 'train')");
  const auto pattern = opened(folder_.path("set/train"), {"{key}.jpg"});
  ASSERT_TRUE(pattern) << pattern.error().message();
  EXPECT_EQ((*pattern)->name(), "folder");
  folder_.write("set/train/metadata.jsonl", "{}");
  EXPECT_CONTAINS(refusal(folder_.path("set/train")), "metadata.csv and metadata.jsonl");
}

TEST_F(TableSource, NumbersAreGatheredColumnByColumn) {
  const std::string source = folder_.write("t.csv", "n,x,c,some\n7,0.5,cat,1\n-8,1.5,dog,\n9,2.5,cat,3\n");
  const auto gathered = [&](const RecordFormat& format, const std::vector<std::uint64_t>& samples) {
    std::vector<std::vector<std::int64_t>> fields(format.fields().size(), std::vector<std::int64_t>(samples.size()));
    std::vector<ArrayView> views;
    std::vector<SampleRow> rows;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const bool is_real = format.fields()[i].kind == FieldKind::kArray;
      views.push_back(
          {reinterpret_cast<std::byte*>(fields[i].data()), {is_real ? DType::kFloat64 : DType::kInt64, {}}});
    }
    for (std::size_t i = 0; i < samples.size(); ++i) rows.push_back({samples[i], samples.size() - 1 - i});
    const auto bytes = format.gather(rows, views);
    EXPECT_EQ(bytes.value_or(0), bytes ? 8 * fields.size() * samples.size() : 0);
    return bytes ? fields : std::vector<std::vector<std::int64_t>>();
  };
  using Fields = std::vector<std::vector<std::int64_t>>;
  const auto real = [](double number) { return std::bit_cast<std::int64_t>(number); };
  const auto format = *opened(source, {"n", "x", "c=c:class"});
  EXPECT_GT(format->grain(), 1u);
  EXPECT_EQ(gathered(*format, {2, 0, 1}), (Fields{{-8, 7, 9}, {real(1.5), real(0.5), real(2.5)}, {1, 0, 0}}));
  const auto some = *opened(source, {"some:value"});
  EXPECT_EQ(gathered(*some, {0, 2}), (Fields{{3, 1}}));
  EXPECT_TRUE(gathered(*some, {0, 1}).empty()) << "row 1 has no value";
  EXPECT_EQ(gathered(**opened(source, {"some:value"}, Missing::kSkip), {1, 0}), (Fields{{1, 3}}));
  EXPECT_EQ((*opened(source, {"some:value"}, Missing::kNone))->grain(), 1u) << "absent values need lists";
  EXPECT_EQ((*opened(source, {"n", "c:text"}))->grain(), 1u);
}

TEST_F(TableSource, DamageIsAnErrorOfOpening) {
  const std::string source = folder_.write("t.csv", "p,label\n1.jpg\n");
  EXPECT_CONTAINS(refusal(source), "line 2 has 1 cells");
  EXPECT_CONTAINS(refusal(source), source);
  EXPECT_EQ(inspected(source), "damaged_table:error");
}

}  // namespace
}  // namespace feedline::format
