// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/json_stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "format/memory_reader.h"

namespace feedline::format {
namespace {

using Kind = JsonStream::Kind;

// What a text holds, value by value, or why it cannot be read.
class Shown {
 public:
  explicit Shown(std::string_view text, std::size_t block = 1024) : reader_(text), json_(reader_, block) {
    if (value() && json_.finish()) return;
    text_ = "error: " + json_.error()->what;
  }
  const std::string& text() const { return text_; }
  std::optional<std::uint64_t> offset() const { return json_.error() ? json_.error()->where.offset : std::nullopt; }

 private:
  bool value() {
    switch (json_.peek()) {
      case Kind::kObject: {
        std::string_view key;
        if (!json_.begin_object()) return false;
        text_ += "{";
        while (json_.next_key(key)) {
          text_ += std::string(key) + ":";
          if (!value()) return false;
        }
        text_ += "}";
        return !json_.error();
      }
      case Kind::kArray:
        if (!json_.begin_array()) return false;
        text_ += "[";
        while (json_.next_item())
          if (!value()) return false;
        text_ += "]";
        return !json_.error();
      case Kind::kString: {
        std::string word;
        if (!json_.take_string(word)) return false;
        text_ += "'" + word + "'";
        return true;
      }
      case Kind::kNumber: {
        JsonNumber number;
        if (!json_.take_number(number)) return false;
        text_ += number.whole ? std::to_string(*number.whole) + "i " : std::to_string(number.real) + " ";
        return true;
      }
      default:
        text_ += "w ";
        return json_.skip();
    }
  }

  MemoryReader reader_;
  JsonStream json_;
  std::string text_;
};

TEST(JsonStream, ReadsEveryKindOfValue) {
  EXPECT_EQ(Shown(R"({"a": [1, -2.5, 3e2], "b": {"c": "d"}, "e": [], "f": {}, "g": [true, false, null]})").text(),
            "{a:[1i -2.500000 300.000000 ]b:{c:'d'}e:[]f:{}g:[w w w ]}");
  EXPECT_EQ(Shown("\xef\xbb\xbf [ ] ").text(), "[]") << "a mark in front";
}

TEST(JsonStream, ReadsTheSameInBlocksOfAnySize) {
  std::string text = R"({"numbers": [)";
  for (int i = 0; i < 700; ++i) text += std::to_string(i * 37) + (i % 2 == 0 ? ".125, " : ", ");
  text += R"(0], "text": ")" + std::string(3000, 'x') + R"(\u00e9\n", "last": {"deep": [[1]]}})";
  const std::string whole = Shown(text, 1 << 20).text();
  EXPECT_FALSE(whole.starts_with("error")) << whole;
  for (const std::size_t block : {std::size_t{1}, std::size_t{1025}, std::size_t{1031}, std::size_t{4096}})
    EXPECT_EQ(Shown(text, block).text(), whole) << block;
}

TEST(JsonStream, Unescapes) {
  EXPECT_EQ(Shown(R"("\"\\\/\b\f\n\r\t")").text(), "'\"\\/\b\f\n\r\t'");
  EXPECT_EQ(Shown(R"("\u0041\u00e9\u20ac\ud83d\ude00")").text(), "'A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'");
  EXPECT_EQ(Shown(R"({"\u0069d": 1})").text(), "{id:1i }") << "in keys too";
  for (const char* bad : {R"("\x")", R"("\u12g4")", R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", R"("\u12)"})
    EXPECT_TRUE(Shown(bad).text().starts_with("error")) << bad;
}

TEST(JsonStream, NumbersAreTheNearestDoubles) {
  const auto read = [](std::string_view text) {
    const MemoryReader reader(text);
    JsonStream json(reader);
    JsonNumber number;
    EXPECT_TRUE(json.take_number(number)) << text;
    return number;
  };
  EXPECT_EQ(read("239.97").real, 239.97);
  EXPECT_EQ(read("0.1").real, 0.1);
  EXPECT_EQ(read("-1234567.891").real, -1234567.891);
  EXPECT_EQ(read("123456789012345678901234567890").real, 123456789012345678901234567890.0);
  EXPECT_EQ(read("9007199254740993.5").real, 9007199254740993.5);
  EXPECT_EQ(read("0.30000000000000004").real, 0.30000000000000004);
  EXPECT_EQ(read("1e-400").real, 0);
  EXPECT_EQ(read("9223372036854775807").whole, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(read("9223372036854775808").whole, std::nullopt);
  EXPECT_EQ(read("1.0").whole, std::nullopt);
  EXPECT_EQ(read("-0").whole, 0);
  EXPECT_TRUE(std::isnan(read("NaN").real));
  EXPECT_EQ(read("-Infinity").real, -std::numeric_limits<double>::infinity());
}

struct Bad {
  std::string text, what;
  std::uint64_t offset;
};

TEST(JsonStream, SaysWhatIsWrongAndAtWhichByte) {
  const std::string deep(JsonStream::kMostDepth + 1, '[');
  const std::vector<Bad> all{{"", "the text ends where there should be value", 0},
                             {"[1, 2", "the text ends where there should be comma or end of the list", 5},
                             {"[1 2]", "no comma or end of the list", 3},
                             {"[1,]", "a comma before the end of a list", 3},
                             {"[,1]", "no value", 1},
                             {"{\"a\" 1}", "no colon", 5},
                             {"{\"a\": 1,}", "no key", 8},
                             {"{a: 1}", "no key", 1},
                             {"{\"a\": 1, \"b\": 2, \"\\u0061\": 3}", "the key 'a', which the object has already,", 17},
                             {"[01]", "no number", 1},
                             {"[1.]", "no number", 1},
                             {"[.5]", "no value", 1},
                             {"[+1]", "no value", 1},
                             {"[1e]", "no number", 1},
                             {"[-]", "no number", 1},
                             {"[1e999]", "out of the range of a double", 1},
                             {"[" + std::string(600, '1') + "]", "more than 512 characters", 1},
                             {"[tru]", "no value", 1},
                             {"[\"a]", "a string without an end", 2},
                             {"[\"a\nb\"]", "a control character", 3},
                             {"[1] x", "something behind the end", 4},
                             {"[1]]", "something behind the end", 3},
                             {deep, "more than 64 levels", JsonStream::kMostDepth}};
  for (const Bad& bad : all) {
    const Shown shown(bad.text);
    EXPECT_NE(shown.text().find(bad.what), std::string::npos) << bad.text.substr(0, 40) << ": " << shown.text();
    EXPECT_EQ(shown.offset(), bad.offset) << bad.text.substr(0, 40);
    EXPECT_NE(shown.text().find("at byte " + std::to_string(bad.offset)), std::string::npos) << shown.text();
  }
}

TEST(JsonStream, KeysThatComeTwiceAreFoundAmongMany) {
  std::string text = "{";
  for (int i = 0; i < 300; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
  EXPECT_FALSE(Shown(text + "\"last\": 1}").text().starts_with("error"));
  for (const int again : {0, 23, 24, 25, 150, 299})
    EXPECT_NE(Shown(text + "\"k" + std::to_string(again) + "\": 1}").text().find("which the object has already"),
              std::string::npos)
        << again;
  std::string many = "{\"k\": 0";
  for (std::size_t i = 0; i < JsonStream::kMostKeys; ++i) many += ", \"" + std::to_string(i) + "\": 0";
  EXPECT_NE(Shown(many + "}").text().find("more than 4096 keys"), std::string::npos);
}

TEST(JsonStream, GivesTokensAsTheyAreWritten) {
  const std::string text = R"(["a\u0041\n", 1])";
  const MemoryReader reader(text);
  JsonStream json(reader);
  std::string token;
  ASSERT_TRUE(json.begin_array() && json.next_item() && json.take_token(token));
  EXPECT_EQ(token, R"("a\u0041\n")");
}

}  // namespace
}  // namespace feedline::format
