// SPDX-License-Identifier: Apache-2.0
#include "format/json_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace feedline::format {
namespace {

std::optional<std::string> text_in(std::string_view json) { return JsonReader(json).string(); }
bool is_json(std::string_view json) {
  JsonReader reader(json);
  return reader.skip() && reader.at_end();
}

TEST(JsonReader, GivesWhatIsAskedForAndPassesOverTheRest) {
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
    if (key != "shards") return reader.skip().has_value();
    return reader.array([&] {
      return reader.object([&](const std::string& inner) {
        if (inner == "n") return sum += reader.integer().value_or(0), true;
        return reader.skip().has_value();
      });
    });
  }));
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(version, 2);
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(name, "a");
  EXPECT_TRUE(fixed && is_null);
}

TEST(JsonReader, StringsAreUnescaped) {
  EXPECT_EQ(text_in(R"("a\"\\\/\b\f\n\r\tb")"), "a\"\\/\b\f\n\r\tb");
  EXPECT_EQ(text_in(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  for (const std::string_view wrong : {R"("\ud83d")", R"("\ude00")", R"("\ud83dx")", R"("\u12g4")", R"("\x")",
                                       R"("abc)", "\"a\nb\"", R"("\u12)", "\"\\"})
    EXPECT_EQ(text_in(wrong), std::nullopt) << wrong;
}

TEST(JsonReader, IntegersAreWholeAndFit) {
  EXPECT_EQ(JsonReader("9223372036854775807,").integer(), 9223372036854775807);
  EXPECT_EQ(JsonReader("-5").integer(), -5);
  for (const std::string_view wrong : {"9223372036854775808", "1.0", "1e3", "x", "\"1\"", "", "-"})
    EXPECT_EQ(JsonReader(wrong).integer(), std::nullopt) << wrong;
}

TEST(JsonReader, RealNumbersAndTextAreGivenAsTheyAreWritten) {
  for (const std::string_view number : {"1", "-1.5e+300", "NaN", "Infinity", "-Infinity"}) {
    JsonReader reader(number);
    EXPECT_EQ(reader.real(), number);
    EXPECT_TRUE(reader.at_end());
  }
  for (const std::string_view wrong : {"", "nan", "Inf", "\"1\"", "null", "-"})
    EXPECT_TRUE(JsonReader(wrong).real().value_or("-") == "-") << wrong;
  EXPECT_TRUE(is_json("\xef\xbb\xbf[NaN, -Infinity]")) << "like Python's json";
  for (const std::string_view wrong : {"Nan", "Infinit", "nan", "N", "I", "[\xef\xbb\xbf]"})
    EXPECT_FALSE(is_json(wrong)) << wrong;
  EXPECT_EQ(JsonReader(R"( "a\"b\\" )").raw_string(), R"(a\"b\\)");
  EXPECT_EQ(JsonReader(R"("")").raw_string(), "");
  for (const std::string_view wrong : {"\"a", R"("a\")", "\"a\nb\"", "a", ""})
    EXPECT_EQ(JsonReader(wrong).raw_string(), std::nullopt) << wrong;
}

TEST(JsonReader, DamageIsNoticedAndStays) {
  for (const std::string_view wrong :
       {"{", "[1,", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "[,1]", "tru", "nul", "", "{a:1}", "[1]]", "1 2"})
    EXPECT_FALSE(is_json(wrong)) << wrong;
  for (const std::string_view good : {"{}", "[]", "[[], {}]", "1", "\"\"", " true ", "[1.5e-3,false]"})
    EXPECT_TRUE(is_json(good)) << good;
  JsonReader reader("[1, oops, 3]");
  int seen = 0;
  EXPECT_FALSE(reader.array([&] { return ++seen, reader.integer().has_value(); }));
  EXPECT_EQ(seen, 2);
  EXPECT_FALSE(reader.is_good());
  EXPECT_FALSE(reader.skip());
}

TEST(JsonReader, NestingHasABound) {
  EXPECT_TRUE(is_json(std::string(60, '[') + std::string(60, ']')));
  EXPECT_FALSE(is_json(std::string(100'000, '[')));
  EXPECT_FALSE(is_json(std::string(70, '[') + std::string(70, ']')));
}

}  // namespace
}  // namespace feedline::format
