// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_json.h"

#include <gtest/gtest.h>

#include <string>

namespace feedline::text {
namespace {

std::string json_of(std::string_view yaml) {
  const auto json = yaml_as_json(yaml);
  return json ? *json : json.error().message();
}

TEST(YamlJson, ConvertsEveryKindOfNode) {
  EXPECT_EQ(json_of(""), "null");
  EXPECT_EQ(json_of("a: [1, x]\nb: {c: yes, d: 'yes', e: ~}\n"),
            R"({"a":["1","x"],"b":{"c":true,"d":"yes","e":null}})");
  EXPECT_EQ(json_of("- \"q\\\"\\\\\\n\"\n"), R"(["q\"\\\u000a"])");
  EXPECT_EQ(json_of("a: &x [1]\nb: *x\n"), R"({"a":["1"],"b":["1"]})");
}

TEST(YamlJson, RefusesDamageWithItsLine) {
  EXPECT_NE(json_of("a: 1\nb: [\n").find("in line 3"), std::string::npos) << json_of("a: 1\nb: [\n");
  EXPECT_NE(json_of("a: 1\na: 2\n").find("'a' is repeated in line 2"), std::string::npos);
  EXPECT_NE(json_of("? [a]\n: 1\n").find("not a scalar"), std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 8; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_NE(json_of(bomb).find("too large"), std::string::npos);
}

}  // namespace
}  // namespace feedline::text
