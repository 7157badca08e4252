// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/table.h"

#include <gtest/gtest.h>

#include "format/text_tables/column_choice.h"

namespace feedline::format {
namespace {

std::string shown(const Result<Table>& table) {
  if (!table) return table.error().what;
  std::string text;
  for (const TableColumn& column : table->columns) {
    text += (text.empty() ? "" : " ") + column.name + "=";
    for (std::uint64_t row = 0; row < table->rows(); ++row)
      text += (row == 0 ? "" : "|") + (column.absent[row] ? "-" : std::string(column.cell(row)));
  }
  return text;
}
std::string csv(std::string_view text) { return shown(parse_table(text, ',')); }
std::string jsonl(std::string_view text) { return shown(parse_table(text, '\0')); }

TEST(Table, ReadsSeparatedValuesAsRfc4180HasThem) {
  EXPECT_EQ(csv("a,b\n1,2\n3,4\n"), "a=1|3 b=2|4");
  EXPECT_EQ(csv("\xef\xbb\xbf"
                "a,b\r\n1,2\r\n\r\n3,4"),
            "a=1|3 b=2|4");
  EXPECT_EQ(csv("a,b\n\"x, \"\"y\"\"\nz\",\n"), "a=x, \"y\"\nz b=-");
  EXPECT_EQ(csv("a,b\n,\"\"\r\n"), "a=- b=-");
  EXPECT_EQ(csv("a\n x \n"), "a= x ");
  EXPECT_EQ(shown(parse_table("a\tb\n1,2\t3\n", '\t')), "a=1,2 b=3");
}

TEST(Table, WrongLinesAreNamed) {
  EXPECT_EQ(csv("a,b\n1,2\n3\n"), "line 3 has 1 cells, but the first line names 2 columns");
  EXPECT_EQ(csv("a,b\n\"1\n2\",2\n1,2,3\n"), "line 4 has 3 cells, but the first line names 2 columns");
  EXPECT_EQ(csv("a,b\n1,\"2\n"), "line 2 has a quote without an end");
  EXPECT_EQ(csv("a,b\n1,\"2\"x\n"), "line 2 has text after a quoted cell");
  EXPECT_EQ(csv("a,a\n1,2\n"), "line 1 names the column 'a' twice");
  EXPECT_EQ(csv(""), "the table is empty: the first line must contain the column names");
  EXPECT_EQ(csv("a,b\n"), "the table has no rows");
  EXPECT_EQ(jsonl("{\"a\":1}\n{\"a\":\n"),
            "line 2 is not a valid JSON object: the text ends; expected a value at character 6");
  EXPECT_EQ(jsonl("{\"a\":1,\"a\":2}\n"), "line 1 has 'a' twice");
  EXPECT_EQ(jsonl(""), "the table has no rows");
}

TEST(Table, ReadsObjectsOfJson) {
  EXPECT_EQ(jsonl("{\"a\": 1, \"b\": \"x\\n\\u00e9\\ud83d\\ude00\"}\r\n\n{ \"b\" : null, \"c\":[1, {\"d\": \"]\"}] }"),
            "a=1|- b=x\n\xc3\xa9\xf0\x9f\x98\x80|- c=-|[1, {\"d\": \"]\"}]");
  for (const char* wrong : {"[1]",
                            "{",
                            "{\"a\"}",
                            "{\"a\":}",
                            "{\"a\":1",
                            "{\"a\":1,}",
                            "{\"a\":1}x",
                            "{a:1}",
                            "{\"a\":\"\\x\"}",
                            "{\"a\":\"\\ud83d\"}",
                            "{\"a\":\"\\udc00\"}",
                            "{\"a\":\"\\u12g4\"}",
                            "{\"a\":\"\t\"}",
                            "{\"a\":[1,}",
                            "{\"a\":tru}",
                            "{\"a\":[1 2]}",
                            "{\"a\":\"",
                            "{\"a\":01}",
                            "{\"a\":1.}",
                            "{\"a\":-}",
                            "{\"a\":Nan}",
                            "{\"a\":1x}"})
    EXPECT_TRUE(jsonl(wrong).starts_with("line 1 is not a valid JSON object: ")) << wrong;
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_TRUE(jsonl(deep).contains("nested deeper than 64 levels")) << jsonl(deep);
}

TEST(Table, TheCauseOfInvalidJsonIsNamed) {
  const auto cause = [](std::string_view text) {
    return jsonl(text).substr(std::string_view("line 1 is not a valid JSON object: ").size());
  };
  EXPECT_EQ(cause("{\"a\": tru}"), "expected a value at character 7");
  EXPECT_EQ(cause("{\"a\" 1}"), "expected ':' at character 6");
  EXPECT_EQ(cause("1"), "expected an object at character 1");
  EXPECT_EQ(cause("{\"a\": 1"), "the text ends; expected ',' or '}' at character 8");
  EXPECT_EQ(cause("{\"a\": \"\t\"}"), "a control character in a string at character 8");
  EXPECT_EQ(cause("{\"a\": \"x\\q\"}"), "an invalid escape in a string at character 9");
  EXPECT_EQ(cause("{\"a\": \"x}"), "an unterminated string at character 8");
}

TEST(Table, ReadsAnArrayOfObjects) {
  EXPECT_EQ(jsonl("[{\"a\": 1},\n {\"a\": 2, \"b\": [3]}]\n"), "a=1|2 b=-|[3]");
  EXPECT_EQ(jsonl("[]"), "the table has no rows");
  EXPECT_EQ(jsonl("[{\"a\": 1},\n 2]"), "line 2 is not a valid JSON object: expected an object at character 1");
  EXPECT_EQ(jsonl("[{\"a\": 1}\n"),
            "line 2 is not valid JSON in an array of objects: the text ends; expected ',' or ']'");
  EXPECT_EQ(jsonl("[{\"a\": 1}] x"),
            "line 1 is not valid JSON in an array of objects: text after the end of the value");
}

TEST(Table, JsonTablesAreRecognisedByTheirStart) {
  EXPECT_TRUE(begins_json_table("{\"a\": 1}\n{\"a\": 2}"));
  EXPECT_TRUE(begins_json_table("\xef\xbb\xbf {\"a\": 1} \r\n\r\n {"));
  EXPECT_TRUE(begins_json_table("[\n  {\"a\": 1"));
  EXPECT_FALSE(begins_json_table("{\"images\": [\n{\"id\": 1},\n{\"id\": 2}]}"));
  EXPECT_FALSE(begins_json_table("{\"a\": 1}"));
  EXPECT_FALSE(begins_json_table("[1, 2]"));
  EXPECT_FALSE(begins_json_table(""));
}

TEST(Table, CarriageReturnsEndLines) {
  EXPECT_EQ(csv("a,b\r1,2\r\"x\ry\",4\r"), "a=1|x\ry b=2|4");
  EXPECT_EQ(csv("a,b\r1,\"2\r\"\r3\r"), "line 4 has 1 cells, but the first line names 2 columns");
}

TEST(Table, Utf16IsNamed) {
  for (const std::string_view text :
       {std::string_view("\xff\xfe"
                         "a\0",
                         4),
        std::string_view("\xfe\xff\0a", 4), std::string_view("a\0,\0", 4), std::string_view("\0a\0,", 4)})
    EXPECT_TRUE(csv(text).starts_with("the table is not UTF-8 but UTF-16")) << csv(text);
}

std::string chosen(std::string_view text, const std::vector<std::string>& specs, bool is_metadata = false,
                   char separator = ',') {
  const auto table = parse_table(text, separator);
  if (!table) return table.error().what;
  const auto fields = choose_columns(specs, *table, is_metadata);
  if (!fields) return fields.error().what;
  std::string shown;
  for (const ColumnField& field : *fields) {
    shown += (shown.empty() ? "" : " ") + field.description.name + ":" + std::string(name_of(field.description.kind));
    if (field.use == ColumnUse::kFile) shown += "*";
    for (const std::int64_t number : field.numbers) shown += "," + std::to_string(number);
    for (const std::string& name : field.classes) shown += "/" + name;
    for (const double real : field.reals) shown += "," + std::to_string(real).substr(0, 4);
  }
  return shown;
}

constexpr std::string_view kTable = "path,class,n,x,s,mask_png\na.jpg,dog,1,1.5,t,m.png\nb.JPG,cat,-2,2,u,n.png\n";

TEST(ColumnChoice, WhatCellsHoldSaysWhatAFieldIs) {
  EXPECT_EQ(chosen(kTable, {}), "image:image* label:value,1,0/cat/dog");
  EXPECT_EQ(chosen(kTable, {"path", "n", "x", "s", "mask=mask_png"}),
            "path:image* n:value,1,-2 x:array,1.50,2.00 s:text mask:mask*");
  EXPECT_EQ(chosen("n,k\n1,b\n NA,2\n3.0,a\n", {"n:value", "k:class"}), "n:value,1,0,3 k:value,2,0,1/2/a/b");
  EXPECT_EQ(chosen("k:class\nb\na\n", {"k:class"}), "k:class:text") << "a column of this name";
  EXPECT_EQ(chosen(kTable, {"c=class", "label=class", "k=class:value", "t=n:text", "f=path:bytes"}),
            "c:text label:value,1,0/cat/dog k:value,1,0/cat/dog t:text f:bytes");
  EXPECT_EQ(chosen("file_name,caption,mask_file_name,empty\nx.png,hi,y.png,\n", {}, true),
            "image:image* mask:mask* caption:text");
  EXPECT_EQ(chosen("{\"p\":\"a.jpg\",\"b\":[[1,2,3,4]],\"t\":true,\"s\":\"12\"}", {"p", "b:boxes", "j=b", "t", "s"},
                   false, '\0'),
            "p:image* b:boxes j:json t:json s:text");
}

TEST(ColumnChoice, WhatCannotBeIsAnError) {
  EXPECT_EQ(chosen(kTable, {"y"}), "fields: there is no column 'y'; the columns are path, class, n, x, s, mask_png");
  EXPECT_EQ(chosen(kTable, {"n", "n=s"}), "fields: two fields are called 'n'; put NAME= before one of them");
  EXPECT_EQ(chosen(kTable, {"n:image"}),
            "fields: the column 'n' names no files, so the field 'n' cannot be of kind image");
  EXPECT_EQ(chosen(kTable, {"x:value"}),
            "fields: the column 'x' contains numbers that are not integers, such as '1.5' in line 2, so the field 'x' "
            "cannot be "
            "of kind value");
  EXPECT_TRUE(chosen("n\n1\nx\n", {"n:value"}).starts_with("line 3 has 'x' in the column 'n', but line 2 has the "));
  EXPECT_EQ(chosen(kTable, {"=n"}), "fields: an empty name in '=n'");
  EXPECT_EQ(chosen("a,b\n1,\n2,\n", {"b"}), "fields: the column 'b' is empty");
  EXPECT_EQ(chosen("a,b\n1,\n", {}), "a:value,1");
  EXPECT_EQ(chosen("a\n\"\"\n", {}), "no column of the table has a value; the columns are: a");
}

}  // namespace
}  // namespace feedline::format
