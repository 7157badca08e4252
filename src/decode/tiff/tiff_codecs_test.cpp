// SPDX-License-Identifier: Apache-2.0
#include "decode/tiff/tiff_codecs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace feedline::decode {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// The example in section 13 of TIFF 6.0, which ends with the code that it has just defined.
TEST(TiffCodecs, LzwIsThatOfTheSpecification) {
  const auto packed = bytes_of({0x80, 0x01, 0xE0, 0x40, 0x80, 0x44, 0x08, 0x0C, 0x06, 0x80, 0x80});
  const auto wanted = bytes_of({7, 7, 7, 8, 8, 7, 7, 6, 6});
  std::vector<std::byte> made(20);
  LzwDecoder decoder;
  const auto count = decoder.decode(packed, made);
  ASSERT_TRUE(count);
  made.resize(*count);
  EXPECT_EQ(made, wanted);
  std::vector<std::byte> few(4);  // stops when the room is full
  EXPECT_EQ(decoder.decode(packed, few), 4u);
}

TEST(TiffCodecs, LzwRefusesCodesThatAreNotDefined) {
  std::vector<std::byte> made(20);
  LzwDecoder decoder;
  EXPECT_FALSE(decoder.decode(bytes_of({0xFF, 0xFF, 0xFF}), made));
  EXPECT_FALSE(decoder.decode(bytes_of({0x00, 0x01, 0x02}), made)) << "the kind before TIFF 6.0";
  EXPECT_EQ(decoder.decode({}, made), 0u);
}

TEST(TiffCodecs, PackBitsIsThatOfTheSpecification) {
  const auto packed = bytes_of({0xFE, 0xAA, 0x02, 0x80, 0x00, 0x2A, 0x80, 0xFD, 0xAA});
  std::vector<std::byte> made(20);
  const auto count = unpack_bits(packed, made);
  ASSERT_TRUE(count);
  made.resize(*count);
  EXPECT_EQ(made, bytes_of({0xAA, 0xAA, 0xAA, 0x80, 0x00, 0x2A, 0xAA, 0xAA, 0xAA, 0xAA}));
  EXPECT_FALSE(unpack_bits(bytes_of({0x05, 1, 2}), made)) << "ends inside a run";
}

TEST(TiffCodecs, DifferencesAreAddedPerChannel) {
  auto row = bytes_of({1, 10, 2, 20, 255, 1});
  add_differences(row, 1, 2);
  EXPECT_EQ(row, bytes_of({1, 10, 3, 30, 2, 31}));
}

TEST(TiffCodecs, BytesOfFloatsAreJoined) {
  const float wanted[] = {1.5F, -2.25F, 1e-3F};
  std::vector<std::byte> row(sizeof wanted), room(sizeof wanted);
  for (std::size_t b = 0; b < 4; ++b)
    for (std::size_t i = 0; i < 3; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &wanted[i], sizeof bits);
      row[b * 3 + i] = static_cast<std::byte>(bits >> (24 - 8 * b));
    }
  for (std::size_t i = row.size() - 1; i > 0; --i)
    row[i] = static_cast<std::byte>(static_cast<int>(row[i]) - static_cast<int>(row[i - 1]));
  join_float_bytes(row, 4, 1, room);
  EXPECT_EQ(std::memcmp(row.data(), wanted, sizeof wanted), 0);
}

}  // namespace
}  // namespace feedline::decode
