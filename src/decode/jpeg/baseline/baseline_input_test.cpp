// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "decode/jpeg/baseline/baseline_entropy.h"

namespace feedline::decode::baseline {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes all;
  for (const int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

// Reads whole bytes in the same way that a kernel reads bits: up to kMaxMcuBytes between two checks of the limit.
std::vector<std::uint8_t> read(BaselineInput& input, BitBuffer& buffer, std::size_t count, std::size_t step) {
  std::vector<std::uint8_t> all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % step == 0 && buffer.next > buffer.limit && !input.refill(buffer)) break;
    fill(buffer);
    all.push_back(static_cast<std::uint8_t>(buffer.bits >> 56));
    take(buffer, 8);
  }
  return all;
}

TEST(BaselineInput, StuffedZerosAreGoneWhateverThePieces) {
  std::mt19937 random(2);
  const auto input = std::make_unique<BaselineInput>();
  for (const std::size_t size : {0u, 1u, 7u, 8u, 1000u, 8191u, 8192u, 8193u, 100'000u})
    for (const unsigned prefixes : {0u, 3u, 400u}) {
      std::vector<std::uint8_t> plain(size);
      for (std::uint8_t& byte : plain)
        byte = prefixes > 0 && random() % prefixes == 0 ? 0xFF : static_cast<std::uint8_t>(random() % 255);
      Bytes stuffed;
      for (const std::uint8_t byte : plain) {
        stuffed.push_back(std::byte{byte});
        if (byte == 0xFF) stuffed.push_back(std::byte{0});
      }
      stuffed.insert(stuffed.end(), {std::byte{0xFF}, std::byte{0xD9}});
      BitBuffer buffer;
      input->start(stuffed, buffer);
      EXPECT_EQ(read(*input, buffer, size, 1 + random() % kMaxMcuBytes), plain);
      EXPECT_TRUE(input->is_within(buffer));
      EXPECT_TRUE(input->end_marker_ahead());
      fill(buffer);
      take(buffer, 1);
      EXPECT_FALSE(input->is_within(buffer)) << size;
    }
}

TEST(BaselineInput, BitsBehindTheEndAreMadeUpOnlyForAWhile) {
  const auto input = std::make_unique<BaselineInput>();
  const Bytes scan = bytes_of({1, 2, 3});
  BitBuffer buffer;
  input->start(scan, buffer);
  EXPECT_LT(read(*input, buffer, 100'000, kMaxMcuBytes).size(), 2 * kMaxMcuBytes + 16);
  EXPECT_FALSE(input->is_within(buffer));
  EXPECT_FALSE(input->refill(buffer));
}

TEST(BaselineInput, ARestartMarkerMustStandBehindTheLastBits) {
  const auto input = std::make_unique<BaselineInput>();
  const Bytes scan = bytes_of({0x12, 0x34, 0xFF, 0xD3, 0x56, 0xFF, 0xD9});
  const auto after = [&](std::size_t bytes, int number) {
    BitBuffer buffer;
    input->start(scan, buffer);
    (void)read(*input, buffer, bytes, 1);
    return input->restart(number, buffer) && read(*input, buffer, 1, 1).front() == 0x56;
  };
  EXPECT_TRUE(after(2, 3));
  EXPECT_FALSE(after(2, 4)) << "another marker is due";
  EXPECT_FALSE(after(1, 3)) << "bytes are left";
  EXPECT_FALSE(after(3, 3)) << "bytes were made up";
  const Bytes cut = bytes_of({0x12, 0xFF});
  BitBuffer buffer;
  input->start(cut, buffer);
  (void)read(*input, buffer, 1, 1);
  EXPECT_FALSE(input->restart(0, buffer));
}

TEST(BaselineInput, OnlyAnEndMarkerAheadCounts) {
  const auto input = std::make_unique<BaselineInput>();
  const auto ahead = [&](const Bytes& scan) {
    BitBuffer buffer;
    input->start(scan, buffer);
    return input->end_marker_ahead();
  };
  EXPECT_TRUE(ahead(bytes_of({1, 0xFF, 0xD9})));
  EXPECT_TRUE(ahead(bytes_of({1, 0xFF, 0xD0, 7, 0xFF, 0xD9, 1, 2, 3})));
  EXPECT_FALSE(ahead(bytes_of({1, 0xFF, 0xD0, 7, 0xFF, 0})));
  EXPECT_FALSE(ahead(bytes_of({1, 0xFF})));
  EXPECT_FALSE(ahead(bytes_of({0xD9})));
  EXPECT_FALSE(ahead({}));
}

}  // namespace
}  // namespace feedline::decode::baseline
