// SPDX-License-Identifier: Apache-2.0
#include "decode/decoder.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/check.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(ImageDecoder, DecodeNeedsAnOpenedImage) {
  ImageDecoder decoder;
  memory::PixelBuffer out;
  EXPECT_THROW((void)decoder.decode({0, 0, 1, 1}, ColorMode::kRgb, out), base::CheckFailed);
}

TEST(ImageDecoder, MovesWithItsState) {
  ImageDecoder first;
  ImageDecoder second = std::move(first);
  EXPECT_FALSE(second.open(bytes_of("text")));
}

}  // namespace
}  // namespace feedline::decode
