// SPDX-License-Identifier: Apache-2.0
#include "text/json_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace feedline::text {
namespace {

using Kind = JsonReader::Kind;

// Provides a text in blocks of at most `block` bytes, like a file.
JsonReader::ReadBlock blocks_of(std::string_view text, std::size_t block) {
  return [=](std::uint64_t offset, std::span<std::byte> out) -> Result<std::size_t> {
    const std::string_view rest = text.substr(std::min<std::size_t>(offset, text.size()));
    const std::size_t size = std::min({out.size(), rest.size(), block});
    std::memcpy(out.data(), rest.data(), size);
    return size;
  };
}

constexpr JsonReader::Options kUnique{.unique_keys = true};

// Returns the values of a text, one after another, or the error.
class Shown {
 public:
  explicit Shown(std::string_view text) : json_(text, kUnique) { show(); }
  Shown(std::string_view text, std::size_t block) : json_(blocks_of(text, block), kUnique, block) { show(); }
  const std::string& text() const { return text_; }
  std::optional<std::uint64_t> offset() const { return json_.error() ? json_.error()->where.offset : std::nullopt; }

 private:
  void show() {
    if (!value() || !json_.finish()) text_ = "error: " + json_.error()->what;
  }
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

  JsonReader json_;
  std::string text_;
};

TEST(JsonReader, ReadsEveryKindOfValue) {
  EXPECT_EQ(Shown(R"({"a": [1, -2.5, 3e2], "b": {"c": "d"}, "e": [], "f": {}, "g": [true, false, null]})").text(),
            "{a:[1i -2.500000 300.000000 ]b:{c:'d'}e:[]f:{}g:[w w w ]}");
  EXPECT_EQ(Shown("\xef\xbb\xbf [ ] ").text(), "[]") << "a byte-order mark";
  EXPECT_EQ(Shown("\xef\xbb\xbf [ ] ", 16).text(), "[]");
}

TEST(JsonReader, ReadsTheSameInBlocksOfAnySize) {
  std::string text = R"({"numbers": [)";
  for (int i = 0; i < 700; ++i) text += std::to_string(i * 37) + (i % 2 == 0 ? ".125, " : ", ");
  text += R"(0], "text": ")" + std::string(3000, 'x') + R"(\u00e9\n", "last": {"deep": [[1]]}})";
  const std::string whole = Shown(text, 1 << 20).text();
  EXPECT_FALSE(whole.starts_with("error")) << whole;
  for (const std::size_t block : {std::size_t{1}, std::size_t{1025}, std::size_t{1031}, std::size_t{4096}})
    EXPECT_EQ(Shown(text, block).text(), whole) << block;
}

TEST(JsonReader, Unescapes) {
  EXPECT_EQ(Shown(R"("\"\\\/\b\f\n\r\t")").text(), "'\"\\/\b\f\n\r\t'");
  EXPECT_EQ(Shown(R"("\u0041\u00e9\u20ac\ud83d\ude00")").text(), "'A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'");
  EXPECT_EQ(Shown(R"({"\u0069d": 1})").text(), "{id:1i }") << "in keys too";
  for (const char* bad : {R"("\x")", R"("\u12g4")", R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", R"("\u12)"})
    EXPECT_TRUE(Shown(bad).text().starts_with("error")) << bad;
}

TEST(JsonReader, NumbersAreTheNearestDoubles) {
  const auto read = [](std::string_view text) {
    JsonReader json(text);
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

TEST(JsonReader, ErrorsNameTheFaultAndItsByte) {
  const std::string deep(65, '[');
  const std::vector<Bad> all{{"", "the text ends; expected a value", 0},
                             {"[1, 2", "the text ends; expected ',' or ']'", 5},
                             {"[1 2]", "expected ',' or ']'", 3},
                             {"[1,]", "a comma before the end of a list", 3},
                             {"[,1]", "expected a value", 1},
                             {"{\"a\" 1}", "expected ':'", 5},
                             {"{\"a\": 1 \"b\": 2}", "expected ',' or '}'", 8},
                             {"{\"a\": 1,}", "a comma before the end of a list or an object", 8},
                             {"{a: 1}", "expected a key in double quotes", 1},
                             {"{\"a\": 1, \"b\": 2, \"\\u0061\": 3}", "the key 'a' appears twice in an object", 17},
                             {"[01]", "expected a number", 1},
                             {"[1.]", "expected a number", 1},
                             {"[.5]", "expected a value", 1},
                             {"[+1]", "expected a value", 1},
                             {"[1e]", "expected a number", 1},
                             {"[-]", "expected a number", 1},
                             {"[1e999]", "out of the range of a double", 1},
                             {"[tru]", "expected a value", 1},
                             {"[\"a]", "an unterminated string", 2},
                             {"[\"a\nb\"]", "a control character", 3},
                             {"[\"a\\x\"]", "an invalid escape", 3},
                             {"[\"\\ud83d\"]", "an unpaired surrogate", 2},
                             {"[1] x", "text after the end", 4},
                             {"[1]]", "text after the end", 3},
                             {deep, "nested deeper than 64 levels", 64}};
  for (const Bad& bad : all) {
    const Shown shown(bad.text);
    EXPECT_NE(shown.text().find(bad.what), std::string::npos) << bad.text.substr(0, 40) << ": " << shown.text();
    EXPECT_EQ(shown.offset(), bad.offset) << bad.text.substr(0, 40);
    EXPECT_NE(shown.text().find("at byte " + std::to_string(bad.offset)), std::string::npos) << shown.text();
    EXPECT_EQ(Shown(bad.text, 1).text(), shown.text()) << "read in blocks";
  }
  EXPECT_NE(Shown("[" + std::string(600, '1') + "]", 1024).text().find("more than 512 characters"), std::string::npos);
  EXPECT_EQ(Shown("[0." + std::string(600, '1') + "]").text(), "[0.111111 ]") << "in memory";
}

TEST(JsonReader, RepeatedKeysAreFoundAmongMany) {
  std::string text = "{";
  for (int i = 0; i < 300; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
  EXPECT_FALSE(Shown(text + "\"last\": 1}").text().starts_with("error"));
  for (const int again : {0, 23, 24, 25, 150, 299})
    EXPECT_NE(Shown(text + "\"k" + std::to_string(again) + "\": 1}").text().find("appears twice in an object"),
              std::string::npos)
        << again;
  std::string many = "{\"k\": 0";
  for (std::size_t i = 0; i < JsonReader::kMaxKeys; ++i) many += ", \"" + std::to_string(i) + "\": 0";
  EXPECT_NE(Shown(many + "}").text().find("more than 4096 keys"), std::string::npos);
}

TEST(JsonReader, TokensStayAsWritten) {
  const std::string text = R"(["a\u0041\n", 1])";
  JsonReader json(text);
  std::string token;
  ASSERT_TRUE(json.begin_array() && json.next_item() && json.take_token(token));
  EXPECT_EQ(token, R"("a\u0041\n")");
}

bool is_json(std::string_view json) {
  JsonReader reader(json);
  return reader.skip() && reader.finish();
}

TEST(JsonReader, CallbacksReadMembersAndItems) {
  JsonReader reader(
      R"( {"version" : 2, "size_limit": 1.5e3, "shards": [ {"n": -7}, {"n": 8, "x": [null, {"y": "]}"}]} ],
                        "split": null, "fixed": true, "name": "a"} )");
  std::int64_t version = 0, sum = 0;
  std::string name;
  bool fixed = false, is_null = false;
  EXPECT_TRUE(reader.object([&](const std::string& key) {
    if (key == "version") return version = reader.integer().value_or(-1), true;
    if (key == "name") return name = reader.string().value_or("?"), true;
    if (key == "fixed") return fixed = reader.boolean().value_or(false), true;
    if (key == "split") return is_null = reader.null(), true;
    if (key != "shards") return reader.skip();
    return reader.array([&] {
      return reader.object([&](const std::string& inner) {
        if (inner == "n") return sum += reader.integer().value_or(0), true;
        return reader.skip();
      });
    });
  }));
  EXPECT_TRUE(reader.finish());
  EXPECT_EQ(version, 2);
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(name, "a");
  EXPECT_TRUE(fixed && is_null);
}

TEST(JsonReader, AFaultStopsTheReader) {
  JsonReader reader("[1, oops, 3]");
  int seen = 0;
  EXPECT_FALSE(reader.array([&] { return ++seen, reader.integer().has_value(); }));
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(reader.offset(), 4u);
  EXPECT_FALSE(reader.skip());
  EXPECT_EQ(reader.peek(), JsonReader::Kind::kNone);
  JsonReader rejected("[1, 2]");
  EXPECT_FALSE(rejected.array([&] { return rejected.integer() == 1; }));
  EXPECT_EQ(rejected.problem(), "unexpected value");
}

TEST(JsonReader, IntegersFitInto64Bits) {
  EXPECT_EQ(JsonReader("9223372036854775807,").integer(), 9223372036854775807);
  EXPECT_EQ(JsonReader("-5").integer(), -5);
  for (const std::string_view wrong : {"9223372036854775808", "1.0", "1e3", "x", "\"1\"", "", "-"})
    EXPECT_EQ(JsonReader(wrong).integer(), std::nullopt) << wrong;
}

TEST(JsonReader, RawValuesStayAsWritten) {
  for (const std::string_view value :
       {"1", "-1.5e+300", "NaN", "Infinity", "-Infinity", R"("a\"b\\")", "null", R"([1, {"a": [ ]}])", "{ }"}) {
    JsonReader reader(value);
    EXPECT_EQ(reader.raw(), value);
    EXPECT_TRUE(reader.finish());
  }
}

TEST(JsonReader, SkipsAnyValueAndChecksIt) {
  for (const std::string_view good : {"{}", "[]", "[[], {}]", "1", "\"\"", " true ", "[1.5e-3,false]",
                                      "\xef\xbb\xbf[NaN, -Infinity]", "1e999", R"([{"a": {"b": []}, "c": [{}]}, 2])"})
    EXPECT_TRUE(is_json(good)) << good;
  for (const std::string_view wrong :
       {"{",   "[1,", "[1 2]",          "{\"a\"}", "{\"a\":}", "{\"a\":1,}",  "[,1]",    "tru",
        "nul", "",    "{a:1}",          "[1]]",    "1 2",      "Nan",         "Infinit", "nan",
        "N",   "I",   "[\xef\xbb\xbf]", "[}",      "{]",       "\"\\ud83d\"", "\"a",     "[01]"})
    EXPECT_FALSE(is_json(wrong)) << wrong;
  EXPECT_TRUE(is_json(std::string(64, '[') + std::string(64, ']')));
  EXPECT_FALSE(is_json(std::string(65, '[') + std::string(65, ']')));
  EXPECT_FALSE(is_json(std::string(1'000'000, '[')));
  JsonReader python(R"("\ud800")", {.unpaired_surrogates = true});
  EXPECT_TRUE(python.skip());
}

TEST(JsonReader, AFaultOfTheFileIsItsError) {
  JsonReader json([](std::uint64_t, std::span<std::byte>) -> Result<std::size_t> { return storage_error("gone", 5); });
  EXPECT_FALSE(json.skip());
  EXPECT_EQ(json.error()->what, "gone");
}

}  // namespace
}  // namespace feedline::text
