// SPDX-License-Identifier: Apache-2.0
#include "format/rows/rows_format.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "format/format_contract.h"
#include "format/rows/row_columns.h"
#include "format/rows/text_cells.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

std::shared_ptr<const TextCells> scattered(std::vector<std::string> texts) {
  auto shared = std::make_shared<std::vector<std::string>>(std::move(texts));
  TextCells::Scattered form;
  for (const std::string& text : *shared) {
    form.starts.push_back(text.data());
    form.lengths.push_back(static_cast<std::uint32_t>(text.size()));
  }
  return std::make_shared<const TextCells>(TextCells{shared->size(), std::move(form), shared});
}

const RowsFormat::Wrap kAsItIs = [](std::shared_ptr<const storage::Storage> storage) {
  return Result<std::shared_ptr<const storage::Storage>>(std::move(storage));
};

FileColumn files(const std::string& name, std::vector<std::string> paths) {
  return {name, "image", "", {"", ""}, {scattered(std::move(paths))}};
}

NamedArray numbers(const std::string& name, std::vector<std::int32_t> values, std::string kind) {
  auto shared = std::make_shared<std::vector<std::int32_t>>(std::move(values));
  return {.name = name,
          .data = reinterpret_cast<const std::byte*>(shared->data()),
          .rows = shared->size(),
          .stride = sizeof(std::int32_t),
          .row = {DType::kInt32, {}},
          .owner = shared,
          .kind = std::move(kind)};
}

// Stores a list of the rows, which open_rows() reads into columns in memory.
std::string store_rows(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  std::string list;
  for (const StoredSample& sample : samples) {
    folder.write(sample.key + ".jpg", sample.image);
    list += folder.path(sample.key + ".jpg") + " " + std::to_string(sample.label) + "\n";
  }
  return folder.write("list", list);
}

Result<std::shared_ptr<const RecordFormat>> open_rows(const std::string& source, const OpenOptions& options) {
  std::istringstream list(TemporaryFolder::read(source));
  std::vector<std::string> paths;
  std::vector<std::int32_t> labels;
  std::string path;
  for (std::int32_t label = 0; list >> path >> label;) {
    paths.push_back(path);
    labels.push_back(label);
  }
  RowOptions rows{.source = source};
  rows.columns = {files("image", std::move(paths)), NumberColumn{numbers("label", std::move(labels), "value")}};
  return RowsFormat::open(std::move(rows), [&](const std::shared_ptr<const storage::Storage>&) {
    return Result<std::shared_ptr<const storage::Storage>>(options.storage);
  });
}

FormatUnderTest under_test(const std::string& name, std::function<std::shared_ptr<const storage::Storage>()> storage) {
  FormatUnderTest one{name, "rows", store_rows, std::move(storage)};
  one.key = [](std::size_t i) { return std::string(i < 10 ? 7 : 6, '0') + std::to_string(i); };
  one.counted_as = "image";
  one.open = open_rows;
  one.paths_identify_samples = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(Rows, FormatContract,
                         ::testing::Values(under_test("rows", storage::local_storage),
                                           under_test("rows_short_reads", storage::short_reads_storage)),
                         name_of_format);

TEST(TextCells, DamagedOffsetsAreRefused) {
  const std::string text = "abcdef";
  const auto error_of = [&](std::array<std::int32_t, 4> offsets) {
    const TextCells::Chunk chunk{3, reinterpret_cast<const std::byte*>(offsets.data()), false, text};
    const auto checked = check(TextCells{3, std::vector{chunk}, nullptr});
    return checked ? std::string() : checked.error().what;
  };
  EXPECT_EQ(error_of({0, 2, 2, 6}), "");
  EXPECT_TRUE(error_of({0, 2, 1, 6}).contains("row 1: damaged Arrow text: bytes 2 to 1 of 6 bytes"));
  EXPECT_TRUE(error_of({0, 2, 3, 7}).contains("row 2: damaged Arrow text: bytes 3 to 7 of 6 bytes"));
  EXPECT_TRUE(error_of({-1, 2, 3, 4}).contains("row 0: damaged Arrow text: bytes -1 to 2 of 6 bytes"));
}

TEST(TextCells, DamagedViewsAreRefused) {
  const std::string outside = "__long, outside";
  const auto error_of = [&](std::int32_t length, std::int32_t buffer, std::int32_t offset) {
    std::array<std::int32_t, 4> view{length, 0, buffer, offset};
    const TextCells::ViewChunk chunk{1, reinterpret_cast<const std::byte*>(view.data()), {outside}};
    const auto checked = check(TextCells{1, std::vector{chunk}, nullptr});
    return checked ? std::string() : checked.error().what;
  };
  EXPECT_EQ(error_of(13, 0, 2), "");
  EXPECT_EQ(error_of(12, 7, 99), "") << "short text is in the view";
  EXPECT_TRUE(error_of(-1, 0, 0).contains("-1 bytes"));
  EXPECT_TRUE(error_of(13, 1, 2).contains("buffer 1 of 1"));
  EXPECT_TRUE(error_of(13, -1, 2).contains("buffer -1 of 1"));
  EXPECT_TRUE(error_of(13, 0, 3).contains("bytes 3 to 16 of 15 bytes"));
  EXPECT_TRUE(error_of(13, 0, -1).contains("bytes -1 to 12 of 15 bytes"));
}

TEST(TextCells, EachFormReturnsTheSameText) {
  const std::array<std::int32_t, 4> offsets{0, 2, 2, 5};
  const std::string text = "abcde";
  TextCells::Chunk narrow{3, reinterpret_cast<const std::byte*>(offsets.data()), false, text};
  TextCells::Chunk last{4, reinterpret_cast<const std::byte*>(offsets.data()), false, text};
  const TextCells arrow{4, std::vector{narrow, last}, nullptr};
  const std::array<char32_t, 8> wide{U'a', U'b', 0, 0, U'\u00e9', 0, 0, 0};
  const TextCells fixed{2, TextCells::FixedWidth{reinterpret_cast<const std::byte*>(wide.data()), 16, 4}, nullptr};
  const std::array<std::int16_t, 2> integers{-7, 300};
  const TextCells decimal{2, TextCells::Integers{reinterpret_cast<const std::byte*>(integers.data()), 2, DType::kInt16},
                          nullptr};
  std::string views(32, '\0');  // "xyz" in the view, and the 13 characters from offset 2 of buffer 0
  views[0] = 3;
  views.replace(4, 3, "xyz");
  views[16] = 13;
  views[28] = 2;
  const std::string outside = "__long, outside";
  const TextCells viewed{
      2, std::vector{TextCells::ViewChunk{2, reinterpret_cast<const std::byte*>(views.data()), {outside}}}, nullptr};
  std::string room;
  EXPECT_EQ(text_of(viewed, 0, room), "xyz");
  EXPECT_EQ(text_of(viewed, 1, room), "long, outside");
  EXPECT_EQ(text_of(arrow, 0, room), "ab");
  EXPECT_EQ(text_of(arrow, 1, room), "");
  EXPECT_EQ(text_of(arrow, 2, room), "cde");
  EXPECT_EQ(text_of(arrow, 3, room), "ab");  // the first row of the second chunk
  EXPECT_EQ(text_of(fixed, 0, room), "ab");
  EXPECT_EQ(text_of(fixed, 1, room), "\u00e9");
  EXPECT_EQ(text_of(decimal, 0, room), "-7");
  EXPECT_EQ(text_of(decimal, 1, room), "300");
  EXPECT_EQ(text_of(*scattered({"x", "yz"}), 1, room), "yz");
}

TEST(RowColumns, PathsAreJoinedToTheRootUnlessTheyAreAbsoluteOrUrls) {
  const FileColumn column{"image", "image", "root", {"", ""}, {scattered({"a.jpg", "/b.jpg", "s3://c/d.jpg"})}};
  const FileColumn made{"image", "image", "root/", {"x/", "-", ".png"}, {scattered({"1"}), scattered({"2"})}};
  std::string path, room;
  const auto path_of = [&](const FileColumn& from, std::uint64_t row) {
    find_path(from, row, path, room);
    return path;
  };
  EXPECT_EQ(path_of(column, 0), "root/a.jpg");
  EXPECT_EQ(path_of(column, 1), "/b.jpg");
  EXPECT_EQ(path_of(column, 2), "s3://c/d.jpg");
  EXPECT_EQ(path_of(made, 0), "root/x/1-2.png");
}

TEST(RowsFormat, ReadsFilesAndValuesOfARow) {
  const TemporaryFolder folder;
  folder.write("a", "first");
  folder.write("b", "second");
  RowOptions options{.source = "rows"};
  options.columns = {files("image", {folder.path("a"), folder.path("b")}),
                     NumberColumn{numbers("label", {4, 5}, "value")}, TextColumn{"note", scattered({"x", "y"})}};
  const auto opened = RowsFormat::open(options, kAsItIs);
  ASSERT_TRUE(opened) << opened.error().message();
  memory::Record record;
  record.most_bytes = 1000;
  ASSERT_TRUE((*opened)->read(1, record));
  EXPECT_EQ(record.fields[0].bytes.size(), 6U);
  EXPECT_EQ(record.fields[1].value, 5);
  EXPECT_EQ(std::memcmp(record.fields[2].bytes.data(), "y", 1), 0);
  memory::Record::Field value;
  std::string room;
  EXPECT_FALSE((*opened)->find_value(0, 0, value, room));
  EXPECT_TRUE((*opened)->find_value(0, 1, value, room));
  EXPECT_EQ(value.value, 4);
}

TEST(RowsFormat, MissingFilesAreErrorsWithRowAndColumn) {
  RowOptions options{.source = "rows"};
  options.columns = {files("image", {"/nowhere/a.jpg"})};
  options.row_names = scattered({"the name"});
  const auto opened = RowsFormat::open(options, kAsItIs);
  ASSERT_TRUE(opened);
  memory::Record record;
  record.most_bytes = 1000;
  const auto read = (*opened)->read(0, record);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kStorage);
  EXPECT_TRUE(read.error().what.contains("row 0 (index 'the name'), column 'image'")) << read.error().what;
  EXPECT_EQ(read.error().where.shard, "/nowhere/a.jpg");
}

std::string error_of(std::vector<RowColumn> columns, std::shared_ptr<const TextCells> names = nullptr) {
  RowOptions options{.source = "rows"};
  options.columns = std::move(columns);
  options.row_names = std::move(names);
  const auto opened = RowsFormat::open(std::move(options), kAsItIs);
  return opened ? std::string() : opened.error().what;
}

TEST(RowsFormat, ColumnsOfDifferentLengthsAndKindsAreRefused) {
  EXPECT_TRUE(error_of({files("image", {"a"}), NumberColumn{numbers("n", {1, 2}, "value")}}).contains("has 2 rows"));
  EXPECT_TRUE(error_of({NumberColumn{numbers("n", {1}, "boxes")}}).contains("boxes are (N, 4)"));
  EXPECT_TRUE(error_of({files("a", {"x"}), files("a", {"x"})}).contains("two fields are called 'a'"));
  EXPECT_TRUE(error_of({files("a", {})}).contains("no rows"));
  EXPECT_FALSE(error_of({}).empty());
  EXPECT_TRUE(error_of({files("a", {"x"})}, scattered({"one", "two"})).contains("2 names of rows, but 1 rows"));
}

TEST(RowsFormat, PathsOfColumnsWithDifferentLengthsAreRefused) {
  const auto made_of = [](std::vector<std::string> literals, std::vector<std::shared_ptr<const TextCells>> cells) {
    return error_of({FileColumn{"a", "image", "", std::move(literals), std::move(cells)}});
  };
  EXPECT_EQ(made_of({"", "", ""}, {scattered({"x"}), scattered({"y"})}), "");
  EXPECT_TRUE(made_of({"", "", ""}, {scattered({"x"}), scattered({"y", "z"})}).contains("1 and 2 rows"));
  EXPECT_TRUE(made_of({"", ""}, {}).contains("0 columns of cells and 2 texts"));
  EXPECT_TRUE(made_of({""}, {scattered({"x"})}).contains("1 columns of cells and 1 texts"));
  EXPECT_TRUE(made_of({"", ""}, {nullptr}).contains("has no cells"));
}

TEST(RowsFormat, EmptyPathsAreRefused) {
  const auto error_in = [](const std::string& root, const std::string& path) {
    FileColumn column = files("image", {"a.jpg", path});
    column.root = root;
    return error_of({column}, scattered({"one", "two"}));
  };
  EXPECT_EQ(error_in("", "x"), "");
  EXPECT_EQ(error_in("data", "/abcd"), "") << "as long as an empty path in its folder";
  for (const char* root : {"", "data", "data/"})
    EXPECT_TRUE(error_in(root, "").contains("row 1 (index 'two'), column 'image': the path is empty")) << root;
}

TEST(RowsFormat, DamagedOffsetsOfListsAreRefused) {
  const auto lists_of = [](std::vector<std::int64_t> offsets) {
    FileColumn column = files("a", {"x", "y", "z"});
    column.offsets = std::make_shared<const std::vector<std::int64_t>>(std::move(offsets));
    return error_of({column});
  };
  EXPECT_EQ(lists_of({0, 1, 3}), "");
  EXPECT_TRUE(lists_of({}).contains("are empty"));
  EXPECT_TRUE(lists_of({1, 3}).contains("begin at 1"));
  EXPECT_TRUE(lists_of({0, 2, 1, 3}).contains("descend in row 1, from 2 to 1"));
  EXPECT_TRUE(lists_of({0, 4}).contains("end at 4, but there are 3 values"));
  NamedArray ragged = numbers("n", {1, 2, 3}, "array");
  ragged.offsets = {0, 5};
  EXPECT_TRUE(error_of({NumberColumn{ragged}}).contains("end at 5, but there are 3 values"));
}

TEST(RowsFormat, ClassesOutOfRangeAreRefused) {
  NamedArray codes = numbers("tags", {0, 1, 2}, "array");
  codes.offsets = {0, 1, 3};
  EXPECT_EQ(error_of({MultiHotColumn{codes, 3}}), "");
  EXPECT_TRUE(error_of({MultiHotColumn{codes, 2}}).contains("row 1 of the field 'tags' has the class 2"));
}

}  // namespace
}  // namespace feedline::format
