// SPDX-License-Identifier: Apache-2.0
#include "decode/labels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "decode/png/png_fixture.h"

namespace feedline::decode {
namespace {

// Rows are packed at the given bit depth, in big-endian order.
std::vector<std::byte> png_of(std::uint32_t width, std::uint32_t height, int depth, int color, bool interlaced,
                              const std::vector<std::uint8_t>& rows) {
  const spng_ihdr header{width,
                         height,
                         static_cast<std::uint8_t>(depth),
                         static_cast<std::uint8_t>(color),
                         0,
                         0,
                         static_cast<std::uint8_t>(interlaced ? 1 : 0)};
  spng_plte palette{};
  palette.n_entries = static_cast<std::uint32_t>(1 << std::min(depth, 8));
  for (std::uint32_t i = 0; i < palette.n_entries; ++i)
    palette.entries[i] = {static_cast<std::uint8_t>(255 - i), static_cast<std::uint8_t>(i * 3), 7, 0};
  return made_png(header, rows, SPNG_FMT_RAW, [&](spng_ctx* context) {
    if (color == SPNG_COLOR_TYPE_INDEXED) spng_set_plte(context, &palette);
  });
}

std::vector<int> labels_of(const std::vector<std::byte>& png, LabelDecoder& decoder) {
  const auto header = decoder.open(png);
  EXPECT_TRUE(header) << header.error().message();
  memory::PixelBuffer out;
  const auto decoded = decoder.decode(out);
  EXPECT_TRUE(decoded) << decoded.error().message();
  std::vector<int> labels;
  for (int y = 0; y < out.height(); ++y)
    for (int x = 0; x < out.width(); ++x) {
      std::uint16_t wide = 0;
      std::memcpy(&wide, out.row(y) + x * out.channels(), static_cast<std::size_t>(out.channels()));
      labels.push_back(wide);
    }
  EXPECT_EQ(header->dtype, out.channels() == 2 ? DType::kUint16 : DType::kUint8);
  return labels;
}

TEST(Labels, AreNumbersNotColours) {
  LabelDecoder decoder;
  EXPECT_EQ(labels_of(png_of(3, 2, 8, SPNG_COLOR_TYPE_INDEXED, false, {0, 5, 255, 1, 2, 3}), decoder),
            (std::vector<int>{0, 5, 255, 1, 2, 3}));
  EXPECT_EQ(labels_of(png_of(3, 2, 8, SPNG_COLOR_TYPE_GRAYSCALE, false, {0, 5, 255, 1, 2, 3}), decoder),
            (std::vector<int>{0, 5, 255, 1, 2, 3}));
  EXPECT_EQ(labels_of(png_of(3, 1, 4, SPNG_COLOR_TYPE_INDEXED, false, {0x1f, 0x20}), decoder),
            (std::vector<int>{1, 15, 2}));
  // like Pillow: one bit stays 0 and 1, two and four bits are scaled to a byte
  EXPECT_EQ(labels_of(png_of(3, 1, 1, SPNG_COLOR_TYPE_GRAYSCALE, false, {0xa0}), decoder), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(labels_of(png_of(3, 1, 2, SPNG_COLOR_TYPE_GRAYSCALE, false, {0x6c}), decoder),
            (std::vector<int>{85, 170, 255}));
  EXPECT_EQ(labels_of(png_of(2, 1, 16, SPNG_COLOR_TYPE_GRAYSCALE, false, {0x12, 0x34, 0xff, 0xff}), decoder),
            (std::vector<int>{0x1234, 0xffff}));
}

TEST(Labels, InterlacedOnesAreTheSame) {
  std::vector<std::uint8_t> rows(17 * 13);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i * 7);
  LabelDecoder decoder;
  const auto plain = labels_of(png_of(17, 13, 8, SPNG_COLOR_TYPE_INDEXED, false, rows), decoder);
  EXPECT_EQ(plain, std::vector<int>(rows.begin(), rows.end()));
  EXPECT_EQ(labels_of(png_of(17, 13, 8, SPNG_COLOR_TYPE_INDEXED, true, rows), decoder), plain);
}

TEST(Labels, SaysWhatIsNoMask) {
  LabelDecoder decoder;
  const auto refusal = [&](const std::vector<std::byte>& file) {
    const auto header = decoder.open(file);
    EXPECT_FALSE(header);
    return header ? std::string() : header.error().what;
  };
  EXPECT_NE(refusal(png_of(1, 1, 8, SPNG_COLOR_TYPE_TRUECOLOR, false, {1, 2, 3})).find("3 channels"),
            std::string::npos);
  const std::string jpeg = "\xFF\xD8\xFF\xE0 and so on";
  const auto* bytes = reinterpret_cast<const std::byte*>(jpeg.data());
  EXPECT_NE(refusal({bytes, bytes + jpeg.size()}).find("this image is JPEG"), std::string::npos);
  auto cut = png_of(64, 64, 8, SPNG_COLOR_TYPE_GRAYSCALE, false, std::vector<std::uint8_t>(64 * 64, 3));
  cut.resize(cut.size() / 2);
  memory::PixelBuffer out;
  if (decoder.open(cut)) {
    EXPECT_FALSE(decoder.decode(out));
  }
}

}  // namespace
}  // namespace feedline::decode
