// SPDX-License-Identifier: Apache-2.0
// Tests views of bytes and of lists in hand-written data, including data that no known writer produces.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/columnar/arrow/arrow_writer.h"
#include "format/inspected.h"
#include "format/shown_fixture.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

class ArrowViews : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const RecordFormat>> opened(const MadeColumn& column, bool is_file = true) const {
    OpenOptions options;
    options.fields = {"x"};
    options.format = "arrow";
    const ArrowWriter writer({{column}});
    return open_records(folder_.write("x.arrow", is_file ? writer.file() : writer.stream()), options);
  }
  // Returns a field of a row as text, or the error.
  std::string row(const MadeColumn& column, std::uint64_t index, bool is_file = true) const {
    const auto format = opened(column, is_file);
    if (!format) return "open: " + format.error().what;
    memory::Record record;
    record.most_bytes = memory::usual_sample_limit();
    if (const auto read = (*format)->read(index, record); !read) return read.error().what;
    const auto& bytes = record.fields.front().bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  const std::string long_a_ = "a text of more than twelve bytes", long_b_ = "another one, in the second buffer";
  storage::TemporaryFolder folder_;
};

TEST_F(ArrowViews, AreInlineOrInOneOfSeveralBuffers) {
  const auto size = [](const std::string& text) { return static_cast<std::int32_t>(text.size()); };
  const MadeColumn column = view_column(
      "x", 24, {short_view("twelve bytes"), view_of(size(long_a_), 0, 0), short_view(""), view_of(size(long_b_), 1, 3)},
      {long_a_, "___" + long_b_});
  for (const bool is_file : {true, false}) {
    EXPECT_EQ(row(column, 0, is_file), "twelve bytes");
    EXPECT_EQ(row(column, 1, is_file), long_a_);
    EXPECT_EQ(row(column, 2, is_file), "");
    EXPECT_EQ(row(column, 3, is_file), long_b_);
  }
}

TEST_F(ArrowViews, ThatPointOutsideAreErrorsOfTheirRow) {
  const auto of = [&](std::int32_t bytes, std::int32_t buffer, std::int32_t offset) {
    return row(view_column("x", 24, {view_of(bytes, buffer, offset)}, {long_a_}), 0);
  };
  EXPECT_NE(of(-1, 0, 0).find("negative size"), std::string::npos);
  EXPECT_NE(of(13, 1, 0).find("buffer 1 of 1"), std::string::npos);
  EXPECT_NE(of(13, -1, 0).find("buffer -1 of 1"), std::string::npos);
  EXPECT_NE(of(13, 0, -1).find("at byte -1"), std::string::npos);
  EXPECT_NE(of(33, 0, 0).find("past the end"), std::string::npos);
  EXPECT_NE(of(13, 0, 20).find("past the end"), std::string::npos);
  EXPECT_NE(of(0x7fffffff, 0, 0x7fffffff).find("past the end"), std::string::npos);
  EXPECT_EQ(of(13, 0, 19), long_a_.substr(19, 13));
}

TEST_F(ArrowViews, OfANullAreNotLookedAt) {
  const MadeColumn column = view_column("x", 24, {view_of(-5, 9, -9), short_view("b")}, {}, {false, true});
  EXPECT_NE(row(column, 0).find("no value in the column"), std::string::npos);
  EXPECT_EQ(row(column, 1), "b");
}

TEST_F(ArrowViews, FewerThanRowsOrWithoutACountAreDamage) {
  MadeColumn column = view_column("x", 24, {short_view("a"), short_view("b")}, {});
  column.buffers[1].resize(16);
  EXPECT_NE(row(column, 0).find("fewer offsets than values"), std::string::npos) << row(column, 0);
  MadeColumn uncounted = view_column("x", 24, {short_view("a")}, {});
  uncounted.is_view = false;
  EXPECT_NE(row(uncounted, 0).find("lacks the number of buffers of a column"), std::string::npos);
}

TEST_F(ArrowViews, OfListsAreInAnyOrder) {
  const MadeColumn numbers = int64_column("", {1, 2, 3});
  const auto bytes_of = [](const std::vector<std::int64_t>& values) { return little(values); };
  const MadeColumn narrow = list_view_column<std::int32_t>("x", 25, {1, 0, 3}, {2, 1, 0}, numbers);
  const MadeColumn wide = list_view_column<std::int64_t>("x", 26, {1, 0, 3}, {2, 1, 0}, numbers);
  for (const MadeColumn& column : {narrow, wide}) {
    EXPECT_EQ(row(column, 0), bytes_of({2, 3}));
    EXPECT_EQ(row(column, 1), bytes_of({1}));
    EXPECT_EQ(row(column, 2), "");
  }
}

TEST_F(ArrowViews, OfListsOutsideOfTheirElementsAreErrors) {
  const auto of = [&](std::int64_t offset, std::int64_t size) {
    return row(list_view_column<std::int64_t>("x", 26, {offset}, {size}, int64_column("", {1, 2, 3})), 0);
  };
  for (const auto& [offset, size] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 4}, {3, 1}, {4, 0}, {-1, 1}, {1, -1}, {INT64_MAX, INT64_MAX}, {-2, 2}})
    EXPECT_NE(of(offset, size).find("a list extends beyond its elements"), std::string::npos) << offset << " " << size;
}

TEST_F(ArrowViews, OfListsInListsHaveToBeAdjacent) {
  const MadeColumn inner = list_view_column<std::int32_t>("", 25, {2, 0}, {2, 2}, int64_column("", {1, 2, 3, 4}));
  EXPECT_NE(row(list_view_column<std::int32_t>("x", 25, {0}, {2}, inner), 0).find("not stored consecutively"),
            std::string::npos);
  const MadeColumn sorted = list_view_column<std::int32_t>("", 25, {0, 2}, {2, 2}, int64_column("", {1, 2, 3, 4}));
  EXPECT_EQ(row(list_view_column<std::int32_t>("x", 25, {0}, {2}, sorted), 0),
            little(std::vector<std::int64_t>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace feedline::format
