// SPDX-License-Identifier: Apache-2.0
#include "format/rows/rows_format.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/rows/row_columns.h"
#include "format/rows/text_cells.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

std::shared_ptr<const TextCells> scattered(std::vector<std::string> texts) {
  auto kept = std::make_shared<std::vector<std::string>>(std::move(texts));
  TextCells::Scattered form;
  for (const std::string& text : *kept) {
    form.starts.push_back(text.data());
    form.lengths.push_back(static_cast<std::uint32_t>(text.size()));
  }
  return std::make_shared<const TextCells>(TextCells{kept->size(), std::move(form), kept});
}

const RowsFormat::Wrap kAsItIs = [](std::shared_ptr<const storage::Storage> storage) {
  return Result<std::shared_ptr<const storage::Storage>>(std::move(storage));
};

FileColumn files(const std::string& name, std::vector<std::string> paths) {
  return {name, "image", "", {"", ""}, {scattered(std::move(paths))}};
}

NamedArray numbers(const std::string& name, std::vector<std::int32_t> values, std::string kind) {
  auto kept = std::make_shared<std::vector<std::int32_t>>(std::move(values));
  return {.name = name,
          .data = reinterpret_cast<const std::byte*>(kept->data()),
          .rows = kept->size(),
          .stride = sizeof(std::int32_t),
          .row = {DType::kInt32, {}},
          .owner = kept,
          .kind = std::move(kind)};
}

TEST(TextCells, EachFormReturnsTheSameText) {
  const std::array<std::int32_t, 4> offsets{0, 2, 2, 5};
  const std::string text = "abcde";
  TextCells::Chunk narrow{3, reinterpret_cast<const std::byte*>(offsets.data()), false, text.data()};
  TextCells::Chunk last{4, reinterpret_cast<const std::byte*>(offsets.data()), false, text.data()};
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
      2, std::vector{TextCells::ViewChunk{2, reinterpret_cast<const std::byte*>(views.data()), {outside.data()}}},
      nullptr};
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

TEST(RowsFormat, ColumnsOfDifferentLengthsAndKindsAreRefused) {
  const auto error_of = [](std::vector<RowColumn> columns) {
    RowOptions options{.source = "rows"};
    options.columns = std::move(columns);
    const auto opened = RowsFormat::open(std::move(options), kAsItIs);
    return opened ? std::string() : opened.error().what;
  };
  EXPECT_TRUE(error_of({files("image", {"a"}), NumberColumn{numbers("n", {1, 2}, "value")}}).contains("has 2 rows"));
  EXPECT_TRUE(error_of({NumberColumn{numbers("n", {1}, "boxes")}}).contains("boxes are (N, 4)"));
  EXPECT_TRUE(error_of({files("a", {"x"}), files("a", {"x"})}).contains("two fields are called 'a'"));
  EXPECT_TRUE(error_of({files("a", {})}).contains("no rows"));
  EXPECT_FALSE(error_of({}).empty());
}

}  // namespace
}  // namespace feedline::format
