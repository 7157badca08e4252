// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/example.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "format/tfrecord/example_writer.h"

namespace feedline::format {
namespace {

std::string shown(const Feature& feature) {
  std::string text(name_of(feature.kind()));
  const auto count = feature.count();
  if (!count) return text + " damaged";
  if (feature.kind() == ValueKind::kBytes)
    feature.each_bytes(
        [&](std::span<const std::byte> value) { return text += " " + std::string(text_of(value)), true; });
  if (feature.kind() == ValueKind::kInts) {
    std::vector<std::int64_t> values(*count);
    feature.write_numbers(reinterpret_cast<std::byte*>(values.data()));
    for (const auto value : values) text += " " + std::to_string(value);
  }
  if (feature.kind() == ValueKind::kFloats) {
    std::vector<float> values(*count);
    feature.write_numbers(reinterpret_cast<std::byte*>(values.data()));
    for (const auto value : values) text += " " + std::to_string(static_cast<int>(100 * value));
  }
  return text;
}

// Returns a description of a record as it is read, with one line per name.
std::map<std::string, std::string> seen(const std::string& record) {
  std::map<std::string, std::string> all;
  const auto feature = [&](std::string_view name, const Feature& one) {
    return all[std::string(name)] = shown(one), true;
  };
  const auto list = [&](std::string_view name, const FeatureList& one) {
    std::string text = "steps";
    const bool is_whole = one.each([&](const Feature& step) { return text += " [" + shown(step) + "]", true; });
    all[std::string(name)] = is_whole ? text : "damaged";
    return true;
  };
  if (!walk_example(std::as_bytes(std::span(record)), feature, list)) all["damaged"] = "";
  return all;
}

using Seen = std::map<std::string, std::string>;

TEST(Example, ValuesOfEveryKindPackedAndNot) {
  for (const bool packed : {true, false})
    EXPECT_EQ(seen(example({{"b", bytes_feature({"x", "", "yz"})},
                            {"f", floats_feature({0.5F, -2}, packed)},
                            {"i", ints_feature({1, -1, 300, INT64_MIN}, packed)},
                            {"none", ""},
                            {"empty", floats_feature({}, packed)}})),
              (Seen{{"b", "bytes x  yz"},
                    {"f", "float 50 -200"},
                    {"i", "int64 1 -1 300 -9223372036854775808"},
                    {"none", "no values"},
                    {"empty", "float"}}));
  EXPECT_EQ(seen(""), Seen());
}

TEST(Example, PackedAndSingleNumbersMix) {
  const std::string list = field(1, varint(1) + varint(2)) + tag(1, 0) + varint(3) + field(1, varint(4));
  EXPECT_EQ(seen(example({{"i", field(3, list)}})), (Seen{{"i", "int64 1 2 3 4"}}));
}

TEST(Example, TheLastOfANameCounts) {
  EXPECT_EQ(seen(example({{"a", ints_feature({1})}, {"b", ints_feature({2})}, {"a", ints_feature({3})}})),
            (Seen{{"a", "int64 3"}, {"b", "int64 2"}}));
  // in a second Features message, which is merged with the first
  EXPECT_EQ(
      seen(example({{"a", ints_feature({1})}}) + example({{"a", bytes_feature({"x"})}, {"c", ints_feature({4})}})),
      (Seen{{"a", "bytes x"}, {"c", "int64 4"}}));
  // the key after the value
  EXPECT_EQ(seen(field(1, field(1, field(2, ints_feature({5})) + field(1, "late")))), (Seen{{"late", "int64 5"}}));
}

TEST(Example, PiecesOfOneFeatureArePutTogether) {
  EXPECT_EQ(seen(example({{"a", ints_feature({1}) + ints_feature({2})}})), (Seen{{"a", "int64 1 2"}}));
  EXPECT_EQ(seen(example({{"a", ints_feature({1}) + bytes_feature({"x"})}})), (Seen{{"a", "bytes x"}})) << "a oneof";
  EXPECT_EQ(seen(field(1, field(1, field(1, "a") + field(2, ints_feature({1})) + field(2, ints_feature({2}))))),
            (Seen{{"a", "int64 1 2"}}));
}

TEST(Example, WhatIsNotKnownIsSkipped) {
  const std::string odd = field(15, "later") + tag(7, 0) + varint(9) + tag(8, 5) + "wxyz";
  const std::string list = odd + field(1, varint(7)) + odd;
  EXPECT_EQ(seen(odd + field(1, odd + field(1, field(1, "a") + odd + field(2, odd + field(3, list)))) + odd),
            (Seen{{"a", "int64 7"}}));
}

TEST(Example, SequencesHaveStepsNextToTheirContext) {
  EXPECT_EQ(seen(sequence_example({{"id", ints_feature({9})}}, {{"x", {floats_feature({1, 2}), floats_feature({3, 4})}},
                                                                {"s", {bytes_feature({"p"}), bytes_feature({"q"})}},
                                                                {"none", {}}})),
            (Seen{{"id", "int64 9"},
                  {"x", "steps [float 100 200] [float 300 400]"},
                  {"s", "steps [bytes p] [bytes q]"},
                  {"none", "steps"}}));
}

TEST(Example, DamageIsSaid) {
  EXPECT_EQ(seen("x").count("damaged"), 1u);
  EXPECT_EQ(seen("plain text, no message").count("damaged"), 1u);
  EXPECT_EQ(seen(example({{"f", field(2, field(1, "abcde"))}})), (Seen{{"f", "float damaged"}})) << "5 bytes of floats";
  EXPECT_EQ(seen(example({{"i", field(3, field(1, "\x80"))}})), (Seen{{"i", "int64 damaged"}}));
  EXPECT_EQ(seen(example({{"b", field(1, "\x0a\x05x")}})), (Seen{{"b", "bytes damaged"}}));
  const std::string whole = sequence_example({{"a", bytes_feature({"xyz"})}, {"b", floats_feature({1, 2})}},
                                             {{"s", {ints_feature({1}), ints_feature({2})}}});
  const Seen all = seen(whole);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    const Seen cut = seen(whole.substr(0, length));
    EXPECT_NE(cut, all) << length;
    const bool is_context = length == example({{"a", bytes_feature({"xyz"})}, {"b", floats_feature({1, 2})}}).size();
    EXPECT_EQ(cut.contains("damaged"), !is_context) << length;
  }
}

}  // namespace
}  // namespace feedline::format
