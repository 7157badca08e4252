// SPDX-License-Identifier: Apache-2.0
#include "decode/image_traits.h"

#include "decode/jpeg/jpeg_fixture.h"
#include "decode/png/png_kinds_fixture.h"

namespace feedline::decode {
namespace {

using Traits = std::vector<std::string_view>;

TEST(ImageTraits, OfJpegs) {
  const auto of = [](const JpegKind& kind) { return storage_traits(ImageFormat::kJpeg, encode(kind)); };
  EXPECT_EQ(of({}), Traits{});
  EXPECT_EQ(of({.progressive = true}), Traits{"progressive"});
  EXPECT_EQ(of({.arithmetic = true}), Traits{"arithmetic coding"});
  EXPECT_EQ(of({.progressive = true, .arithmetic = true}), (Traits{"progressive", "arithmetic coding"}));
  EXPECT_EQ(of({.channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK}), Traits{"CMYK"});
  EncodedBytes bytes = encode(JpegKind{});
  const auto frame = std::ranges::search(bytes, std::array{std::byte{0xFF}, std::byte{0xC0}}).begin();
  frame[4] = std::byte{12};
  EXPECT_EQ(storage_traits(ImageFormat::kJpeg, bytes), Traits{"12 bits"});
  frame[1] = std::byte{0xC3};
  EXPECT_EQ(storage_traits(ImageFormat::kJpeg, bytes), (Traits{"lossless", "12 bits"}));
}

TEST(ImageTraits, OfPngs) {
  for (const PngKind& kind : kinds()) {
    Traits expected;
    if (kind.color == PngColor::kPalette) expected.push_back("palette");
    if (kind.interlaced) expected.push_back("interlaced");
    if (kind.depth == 16) expected.push_back("16 bits");
    EXPECT_EQ(storage_traits(ImageFormat::kPng, encode_png(kind)), expected) << kind.name;
  }
}

TEST(ImageTraits, OfWhatEndsEarlyNothing) {
  const EncodedBytes jpeg = encode({.progressive = true}), png = encode_png(PngKind{.color = PngColor::kPalette});
  std::size_t told = 0;
  for (std::size_t size = 0; size < 700; ++size) {
    told += storage_traits(ImageFormat::kJpeg, std::span(jpeg).first(std::min(size, jpeg.size()))).size();
    told += storage_traits(ImageFormat::kPng, std::span(png).first(std::min(size, png.size()))).size();
  }
  EXPECT_GT(told, 0u);
  EXPECT_LT(told, 2u * 700);
}

}  // namespace
}  // namespace feedline::decode
