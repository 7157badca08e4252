// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "decode/text/json.h"
#include "text/utf8.h"

namespace feedline::decode {
namespace {

std::string of_utf8(std::string_view text) {
  const auto checked = text::check_utf8(std::as_bytes(std::span(text)));
  return checked ? "fine" : checked.error().what;
}
std::string of_json(std::string_view text) {
  const auto checked = check_json(std::as_bytes(std::span(text)));
  return checked ? "fine" : checked.error().what;
}

TEST(Utf8, TakesWhatPythonDecodes) {
  for (const char* text : {"", "plain", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf",
                           "\xef\xbb\xbf", "\xed\x9f\xbf", "\xee\x80\x80"})
    EXPECT_EQ(of_utf8(text), "fine") << text;
  EXPECT_EQ(of_utf8(std::string_view("a\0b", 3)), "fine");
}

TEST(Utf8, SaysWhereItIsNone) {
  for (const char* end : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x80\x80", "\xe2\x82", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3("})
    for (const std::size_t before : {0u, 1u, 7u, 8u, 9u, 100u}) {
      const std::string text = std::string(before, 'a') + end;
      EXPECT_EQ(of_utf8(text), "not UTF-8 text: at byte " + std::to_string(before)) << text;
    }
}

// tests/python/fields compares these results with json.loads.
TEST(Json, TakesWhatPythonLoads) {
  for (const char* text :
       {"1", " -0 ", "-1.5e+3", "0e5", "1E400", "NaN", "-Infinity", "[]", "{}", "[1, [2, {\"a\": []}], {}]", "\"\"",
        "\"\\u00e9\\n\\\\\"", "\"\\ud800\"", "{\"a\": 1, \"a\": 2}", "\t\n\r true\n", "null", "\"\xe2\x82\xac\""})
    EXPECT_EQ(of_json(text), "fine") << text;
}

TEST(Json, SaysWhatItIsNotAndWhere) {
  for (const char* text :
       {"",        " ",           "01",     "1.",      ".5",        "+1",     "-",           "1e",   "[1,]",
        "[1 2]",   "[",           "{",      "{\"a\"}", "{\"a\": }", "{1: 2}", "{\"a\": 1,}", "]",    "\"a",
        "\"\\x\"", "\"\\u12g4\"", "\"\n\"", "tru",     "nan",       "1 1",    "'a'",         "[1]]", "\xff"})
    EXPECT_NE(of_json(text), "fine") << text;
  EXPECT_EQ(of_json("\xef\xbb\xbf[]"), "fine") << "a byte-order mark";
  EXPECT_EQ(of_json("[1, 2"), "invalid JSON at byte 5: the text ends; expected ',' or ']'");
  EXPECT_EQ(of_json("{\"a\": 1} x"), "invalid JSON at byte 9: text after the end of the value");
  EXPECT_EQ(of_json("{\"a\": cat}"), "invalid JSON at byte 6: expected a value");
}

TEST(Json, DeepAndLongOnesAreRefusedAndCostNoStack) {
  EXPECT_EQ(of_json(std::string(500, '[') + std::string(500, ']')), "fine");
  EXPECT_EQ(of_json(std::string(501, '[') + std::string(501, ']')),
            "invalid JSON at byte 500: nested deeper than 500 levels");
  EXPECT_NE(of_json(std::string(1'000'000, '[')), "fine");
  EXPECT_EQ(of_json(std::string(4300, '9')), "fine");
  EXPECT_NE(of_json(std::string(4301, '9')), "fine");
  EXPECT_EQ(of_json(std::string(5000, '9') + ".0"), "fine");
}

}  // namespace
}  // namespace feedline::decode
