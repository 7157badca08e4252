// SPDX-License-Identifier: Apache-2.0
#include "format/wire_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "format/tfrecord/example_writer.h"

namespace feedline::format {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Returns the fields as text, such as "1:abc 2:", with "damaged" after the last readable field.
std::string read(const std::string& message) {
  WireReader reader(bytes_of(message));
  std::string text;
  while (reader.next()) {
    const auto bytes = reader.bytes();
    text += std::to_string(reader.number()) + ":" +
            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + " ";
  }
  return text + (reader.is_damaged() ? "damaged" : "");
}

TEST(WireReader, GivesFieldsOfEveryType) {
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read(field(1, "abc") + field(2, "") + tag(3, 0) + "\x05" + tag(4, 5) + "wxyz" + tag(5, 1) + "abcdefgh"),
            "1:abc 2: 3:\x05 4:wxyz 5:abcdefgh ");
  EXPECT_EQ(read(field((1U << 29U) - 1, "x")), "536870911:x ");
  WireReader reader(bytes_of("\x0a\x01x"));
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(reader.is(1, WireType::kLength));
  EXPECT_FALSE(reader.is(1, WireType::kVarint));
  EXPECT_FALSE(reader.is(2, WireType::kLength));
}

TEST(WireReader, SkipsGroups) {
  const std::string inner = field(9, "in") + tag(3, 3) + field(8, "deep") + tag(3, 4);
  EXPECT_EQ(read(field(1, "a") + tag(2, 3) + inner + tag(2, 4) + field(4, "b")), "1:a 4:b ");
  EXPECT_EQ(read(tag(2, 3) + inner), "damaged") << "no end";
  EXPECT_EQ(read(tag(2, 3) + inner + tag(5, 4)), "damaged") << "another's end";
  EXPECT_EQ(read(tag(2, 4)), "damaged") << "an end alone";
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += tag(2, 3);
  for (int i = 0; i < 200; ++i) deep += tag(2, 4);
  EXPECT_EQ(read(deep), "damaged");
}

TEST(WireReader, NothingOutsideOfTheMessageIsLookedAt) {
  const std::string whole =
      field(1, "abc") + tag(3, 0) + varint(~std::uint64_t{0}) + tag(4, 5) + "wxyz" + tag(5, 1) + "abcdefgh";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string text = read(whole.substr(0, length));
    const bool is_end = length == 0 || length == 5 || length == 16 || length == 21;
    EXPECT_EQ(text.ends_with("damaged"), !is_end) << length << text;
  }
  EXPECT_EQ(read(tag(1, 2) + varint(~std::uint64_t{0})), "damaged") << "a length of 2^64 - 1";
  EXPECT_EQ(read(tag(1, 2) + varint(std::uint64_t{1} << 63U) + "abc"), "damaged");
  EXPECT_EQ(read(std::string("\x00\x00", 2)), "damaged") << "field 0";
  EXPECT_EQ(read("\x0e\x01"), "damaged") << "wire type 6";
  EXPECT_EQ(read(varint(std::uint64_t{1} << 33U | 2U) + "\x01x"), "damaged") << "a tag of more than 32 bits";
}

TEST(WireReader, VarintsHaveTenBytesAtMost) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, ~std::uint64_t{0}}) {
    const std::string text = varint(value) + "z";
    auto bytes = bytes_of(text);
    EXPECT_EQ(take_varint(bytes), value);
    EXPECT_EQ(bytes.size(), 1u);
  }
  const std::string eleven = std::string(10, '\x80') + '\x01';
  auto bytes = bytes_of(eleven);
  EXPECT_EQ(take_varint(bytes), std::nullopt);
  EXPECT_EQ(bytes.size(), eleven.size()) << "nothing is taken";
}

}  // namespace
}  // namespace feedline::format
