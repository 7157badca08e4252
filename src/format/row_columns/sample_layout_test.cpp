// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/sample_layout.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/row_columns/mds/mds_encoding.h"

namespace feedline::format {
namespace {

SampleSchema schema(SampleLayout layout, const std::string& separator = ",", const std::string& newline = "\n") {
  return {{line_column("n", "int"), line_column("r", "float"), line_column("t", "str")}, layout, separator, newline};
}

// Returns the values, separated by "|", or the error.
std::string split(std::string_view line, const SampleSchema& schema) {
  std::vector<std::span<const std::byte>> values(schema.columns.size());
  memory::ByteBuffer room;
  const auto done = split_sample(std::as_bytes(std::span(line)), schema, values, room);
  if (!done) return "error: " + done.error();
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : "|") + std::string(reinterpret_cast<const char*>(values[i].data()), values[i].size());
  return text;
}
std::string json(std::string_view line) { return split(line, schema(SampleLayout::kJson)); }
std::string cells(std::string_view line) { return split(line, schema(SampleLayout::kSeparated)); }

TEST(SampleLayout, CellsAreBetweenSeparators) {
  EXPECT_EQ(cells("-5,1e-05,a \"text\"\n"), "-5|1e-05|a \"text\"") << "nothing is quoted";
  EXPECT_EQ(cells(",,\n"), "||");
  EXPECT_EQ(split("1::2:::::\r\n",
                  {schema(SampleLayout::kSeparated, "::", "\r\n").columns, SampleLayout::kSeparated, "::", "\r\n"}),
            "error: the line has 4 cells, but there are 3 columns: n (int), r (float), t (str)")
      << "from the left, as str.split()";
  EXPECT_EQ(split("1::2::a:b\r\n", schema(SampleLayout::kSeparated, "::", "\r\n")), "1|2|a:b");
  EXPECT_TRUE(cells("1,2\n").contains("the line has 2 cells, but there are 3 columns"));
  EXPECT_TRUE(cells("1,2,3,4\n").contains("the line has 4 cells"));
  EXPECT_EQ(cells("1,2,3\n1,2,3\n"), "error: the sample has more than one line");
  EXPECT_EQ(cells("1,2\n,3\n"), "error: the sample has more than one line")
      << "cells cannot contain a newline: there is no quoting";
  EXPECT_EQ(split("1::2::\n\r\r\n", schema(SampleLayout::kSeparated, "::", "\r\n")), "1|2|\n\r");
  for (const std::string_view cut : {"", "1,2,3", "1,2,3\r"})
    EXPECT_EQ(cells(cut), "error: the line does not end with a newline");
}

TEST(SampleLayout, ObjectsOfJsonGiveTheirValuesByName) {
  EXPECT_EQ(json(R"({"n": -5, "r": 1e-05, "t": "text"})"), "-5|1e-05|text");
  EXPECT_EQ(json("{\"t\":\"\",\"r\":2,\"n\":9223372036854775807}\n"), "9223372036854775807|2|") << "in any order";
  EXPECT_EQ(json(R"({"n": true, "r": NaN, "t": "x", "more": [{"n": 7}, null]})"), "1|NaN|x")
      << "Python's True is an int";
  EXPECT_EQ(json(R"({"n": false, "r": -Infinity, "t": "x"})"), "0|-Infinity|x");
  EXPECT_EQ(json(R"({"n": 1, "n": 2, "r": Infinity, "t": "x"})"), "2|Infinity|x") << "the last one, as json.loads()";
}

TEST(SampleLayout, EscapedTextIsUnescaped) {
  EXPECT_EQ(json(R"({"n": 1, "r": 1, "t": "\u00e9\ud83d\ude00\\\"\n"})"), "1|1|\xc3\xa9\xf0\x9f\x98\x80\\\"\n");
  const SampleSchema texts{{line_column("a", "str"), line_column("b", "str")}, SampleLayout::kJson};
  EXPECT_EQ(split(R"({"a": "\\a", "b": "\tb"})", texts), "\\a|\tb") << "each in a separate buffer";
  EXPECT_EQ(split(R"({"a": "\\a\\", "a": "\\", "b": "\\"})", texts), "\\|\\");
  for (const std::string_view wrong : {R"("\ud83d")", R"("\x")", R"("\u12")", R"("\")"})
    EXPECT_TRUE(json(R"({"n": 1, "r": 1, "t": )" + std::string(wrong) + "}").starts_with("error: ")) << wrong;
}

TEST(SampleLayout, WhatIsNoSuchObjectIsAnError) {
  EXPECT_EQ(json(R"({"n": 1, "t": ""})"), "error: the sample has no 'r'");
  for (const std::string_view wrong : {R"("1")", "null", "[1]", "{}"})
    EXPECT_EQ(json(R"({"n": )" + std::string(wrong) + R"(, "r": 1, "t": ""})"),
              "error: the value of 'n' is not an integer")
        << wrong;
  for (const std::string_view wrong : {R"("1")", "null", "true", "[1]"})
    EXPECT_EQ(json(R"({"n": 1, "r": )" + std::string(wrong) + R"(, "t": ""})"),
              "error: the value of 'r' is not a number")
        << wrong;
  for (const std::string_view wrong : {"1", "null", "true", "NaN"})
    EXPECT_TRUE(json(R"({"n": 1, "r": 1, "t": )" + std::string(wrong) + "}").starts_with("error: the value of"))
        << wrong;
  for (const std::string_view wrong :
       {"", "\n", "[]", "null", R"({"n": 1, "r": 1, "t": "x")", R"({"n": 1, "r": 1, "t": "x"}})", R"({"n": 1 "r": 1})",
        R"({"n": tru, "r": 1, "t": "x"})", R"({"n": fal)", R"({"n": 1, "r": 1, "t": "x"}{"n": 1})",
        "{\"n\": 1, \"r\": 1, \"t\": \"a\nb\"}"})
    EXPECT_TRUE(json(wrong).starts_with("error: invalid JSON at byte ")) << wrong;
}

TEST(SampleLayout, ColumnsThatAreNotReadDoNotMatter) {
  const SampleSchema some{{line_column("a", "str"), line_column("b", "complex")}, SampleLayout::kJson};
  EXPECT_EQ(split(R"({"a": "x", "b": [1, 2]})", some), "x|[1, 2]");
}

}  // namespace
}  // namespace feedline::format
