// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests of the contract that every codec must meet. A codec registers a type with
//
//   static constexpr std::string_view kFormat;           // its name
//   static std::vector<EncodedImage> images();           // every kind of file it decodes, small
//   static std::vector<std::byte> header_only(int, int);  // the start of a file of that size, without its pixels
//
// and INSTANTIATE_TYPED_TEST_SUITE_P(Name, DecoderContract, TheType).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/rounds.h"
#include "decode/color.h"
#include "decode/decoder.h"
#include "decode/image_formats.h"

namespace feedline::decode {

using EncodedBytes = std::vector<std::byte>;

struct EncodedImage {
  std::string name;
  EncodedBytes bytes;
  int width = 0;
  int height = 0;
};

// A synthetic photo with gradients, edges, texture and noise. 8-bit interleaved samples.
inline std::vector<std::uint8_t> photo(int width, int height, int channels, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> samples;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) {
        const int gradient = (x * (3 + c) + y * (5 - c)) % 256;
        const int disc = (x - width / 2) * (x - width / 2) + (y - height / 3) * (y - height / 3) < width * 9 ? 90 : 0;
        const int noise = static_cast<int>(random() % 24);
        samples.push_back(static_cast<std::uint8_t>(std::min(255, gradient * 2 / 3 + disc * (c + 1) / 3 + noise)));
      }
  return samples;
}

// Returns contiguous rows without padding, or the error.
inline Result<std::vector<std::uint8_t>> decode_region(ImageDecoder& decoder, const EncodedBytes& bytes,
                                                       const Box& region, ColorMode mode) {
  FEEDLINE_TRY(const ImageHeader header, decoder.open(bytes));
  (void)header;
  memory::PixelBuffer out;
  FEEDLINE_CHECK_OK(decoder.decode(region, mode, out));
  EXPECT_EQ(out.width(), region.width);
  EXPECT_EQ(out.height(), region.height);
  EXPECT_EQ(out.channels(), mode == ColorMode::kRgb ? 3 : 1);
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < region.height; ++y)
    pixels.insert(pixels.end(), out.row(y), out.row(y) + region.width * out.channels());
  return pixels;
}

inline Result<std::vector<std::uint8_t>> decode_whole(const EncodedBytes& bytes, ColorMode mode = ColorMode::kRgb) {
  ImageDecoder decoder;
  FEEDLINE_TRY(const ImageHeader header, decoder.open(bytes));
  return decode_region(decoder, bytes, {0, 0, header.width, header.height}, mode);
}

inline std::vector<std::uint8_t> cropped(const std::vector<std::uint8_t>& pixels, int width, const Box& region,
                                         int channels) {
  std::vector<std::uint8_t> part;
  for (int y = region.top; y < region.top + region.height; ++y) {
    const auto row = pixels.begin() + std::ptrdiff_t{y} * width * channels;
    part.insert(part.end(), row + region.left * channels, row + (region.left + region.width) * channels);
  }
  return part;
}

// Returns regions at borders and corners, single pixels, every small offset in both directions, and random boxes.
inline std::vector<Box> regions_of(int width, int height) {
  std::vector<Box> regions{{0, 0, width, height},
                           {width - 1, height - 1, 1, 1},
                           {0, 0, 1, 1},
                           {0, height - 1, width, 1},
                           {width - 1, 0, 1, height}};
  for (int offset = 1; offset < 36; ++offset) {
    if (offset < width) regions.push_back({offset, 0, std::min(width - offset, 1 + offset % 5), height});
    if (offset < width) regions.push_back({width - offset, 0, offset, height});
    if (offset < height) regions.push_back({0, offset, width, std::min(height - offset, 1 + offset % 3)});
  }
  std::mt19937 random(7);
  const auto below = [&random](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  for (int i = 0; i < base::rounds(60, 6); ++i) {
    const int w = 1 + below(width), h = 1 + below(height);
    regions.push_back({below(width - w + 1), below(height - h + 1), w, h});
  }
  return regions;
}

template <typename Registered>
class DecoderContract : public testing::Test {
 protected:
  std::vector<EncodedImage> images_ = Registered::images();
  ImageDecoder decoder_;
};
TYPED_TEST_SUITE_P(DecoderContract);

TYPED_TEST_P(DecoderContract, HeaderGivesFormatAndSize) {
  for (const EncodedImage& image : this->images_) {
    const auto header = this->decoder_.open(image.bytes);
    ASSERT_TRUE(header) << image.name << ": " << header.error().what;
    EXPECT_EQ(header->format, &image_format(TypeParam::kFormat));
    EXPECT_EQ(header->width, image.width) << image.name;
    EXPECT_EQ(header->height, image.height) << image.name;
  }
}

TYPED_TEST_P(DecoderContract, EveryRegionEqualsFullDecodeAndCrop) {
  for (const EncodedImage& image : this->images_)
    for (const ColorMode mode : {ColorMode::kRgb, ColorMode::kL}) {
      const auto whole = decode_whole(image.bytes, mode);
      ASSERT_TRUE(whole) << image.name << ": " << whole.error().what;
      for (const Box& region : regions_of(image.width, image.height)) {
        const auto part = decode_region(this->decoder_, image.bytes, region, mode);
        ASSERT_TRUE(part) << image.name << ": " << part.error().what;
        ASSERT_EQ(*part, cropped(*whole, image.width, region, mode == ColorMode::kRgb ? 3 : 1))
            << image.name << " at " << region.left << ", " << region.top << " of " << region.width << " x "
            << region.height;
      }
    }
}

TYPED_TEST_P(DecoderContract, GreyIsTheLumaOfRgb) {
  for (const EncodedImage& image : this->images_) {
    const auto rgb = decode_whole(image.bytes, ColorMode::kRgb);
    const auto grey = decode_whole(image.bytes, ColorMode::kL);
    ASSERT_TRUE(rgb && grey) << image.name;
    std::vector<std::uint8_t> expected(grey->size());
    rgb_to_l(rgb->data(), static_cast<int>(grey->size()), expected.data());
    EXPECT_EQ(*grey, expected) << image.name;
  }
}

TYPED_TEST_P(DecoderContract, CutFilesGiveAnErrorOrTheRightPixels) {
  for (const EncodedImage& image : this->images_) {
    const auto whole = decode_whole(image.bytes);
    ASSERT_TRUE(whole);
    const Box corner{0, 0, std::min(image.width, 9), std::min(image.height, 9)};
    const std::size_t step = std::max<std::size_t>(1, image.bytes.size() / 150);
    bool early_cuts_fail = true;
    for (std::size_t cut = 0; cut < image.bytes.size(); cut += image.bytes.size() - cut < 40 ? 1 : step) {
      const EncodedBytes bytes(image.bytes.begin(), image.bytes.begin() + static_cast<std::ptrdiff_t>(cut));
      const auto all = decode_whole(bytes);
      const auto part = decode_region(this->decoder_, bytes, corner, ColorMode::kRgb);
      if (all) {
        ASSERT_EQ(*all, *whole) << image.name << " cut at " << cut;
      }
      if (part) {
        ASSERT_EQ(*part, cropped(*whole, image.width, corner, 3)) << image.name << " cut at " << cut;
      }
      // a file that one reader finds damaged is damaged for all, whatever they crop
      ASSERT_EQ(all.has_value(), part.has_value()) << image.name << " cut at " << cut;
      if (!all) {
        ASSERT_EQ(all.error().code, ErrorCode::kData);
        ASSERT_EQ(all.error().where.stage, "decode");
        ASSERT_FALSE(all.error().what.empty());
      }
      if (cut + image.bytes.size() / 10 + 40 < image.bytes.size()) early_cuts_fail &= !all.has_value();
    }
    EXPECT_TRUE(early_cuts_fail) << image.name;
  }
}

TYPED_TEST_P(DecoderContract, OpeningAgainStartsOver) {
  const EncodedImage &first = this->images_.front(), &last = this->images_.back();
  ASSERT_TRUE(this->decoder_.open(first.bytes));
  ASSERT_TRUE(this->decoder_.open(first.bytes));
  const auto header = this->decoder_.open(last.bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->width, last.width);
  const auto whole = decode_region(this->decoder_, last.bytes, {0, 0, last.width, last.height}, ColorMode::kRgb);
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, *decode_whole(last.bytes));
}

TYPED_TEST_P(DecoderContract, AnErrorLeavesNoTrace) {
  for (const EncodedImage& image : this->images_) {
    const EncodedBytes half(image.bytes.begin(),
                            image.bytes.begin() + static_cast<std::ptrdiff_t>(image.bytes.size() / 2));
    const Box whole{0, 0, image.width, image.height};
    EXPECT_FALSE(decode_region(this->decoder_, half, whole, ColorMode::kRgb)) << image.name;
    EXPECT_FALSE(decode_region(this->decoder_, EncodedBytes(5), whole, ColorMode::kRgb));
    const auto again = decode_region(this->decoder_, image.bytes, whole, ColorMode::kRgb);
    ASSERT_TRUE(again) << image.name;
    EXPECT_EQ(*again, *decode_whole(image.bytes)) << image.name;
  }
}

TYPED_TEST_P(DecoderContract, RandomAndFlippedBytesNeverCrash) {
  std::mt19937 random(3);
  for (const EncodedImage& image : this->images_)
    for (int round = 0; round < 60; ++round) {
      EncodedBytes bytes = image.bytes;
      if (round % 2 == 0) {
        const std::size_t keep = random() % bytes.size();
        for (std::size_t i = keep; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random());
      } else {
        for (unsigned i = 0; i < 1 + random() % 8; ++i)
          bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
      }
      const auto header = this->decoder_.open(bytes);
      if (!header || std::int64_t{header->width} * header->height > 1'000'000) continue;
      memory::PixelBuffer out;
      (void)this->decoder_.decode({header->width / 2, header->height / 2, 1, 1}, ColorMode::kRgb, out);
    }
}

TYPED_TEST_P(DecoderContract, HeadersAloneAreTruncatedFiles) {
  const EncodedBytes bytes = TypeParam::header_only(640, 480);
  const auto header = this->decoder_.open(bytes);
  ASSERT_TRUE(header) << header.error().what;
  EXPECT_EQ(header->width, 640);
  memory::PixelBuffer out;
  const auto decoded = this->decoder_.decode({0, 0, 8, 8}, ColorMode::kRgb, out);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::kData);
  EXPECT_NE(decoded.error().what.find("truncated"), std::string::npos) << decoded.error().what;
}

REGISTER_TYPED_TEST_SUITE_P(DecoderContract, HeaderGivesFormatAndSize, EveryRegionEqualsFullDecodeAndCrop,
                            GreyIsTheLumaOfRgb, CutFilesGiveAnErrorOrTheRightPixels, OpeningAgainStartsOver,
                            AnErrorLeavesNoTrace, RandomAndFlippedBytesNeverCrash, HeadersAloneAreTruncatedFiles);

}  // namespace feedline::decode
