// SPDX-License-Identifier: Apache-2.0
#include "decode/decoder.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/check.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Sniff, GoesByContent) {
  EXPECT_EQ(*sniff(bytes_of("\xFF\xD8\xFF\xE0"sv)), ImageFormat::kJpeg);
  EXPECT_EQ(*sniff(bytes_of("\x89PNG\r\n\x1A\n"sv)), ImageFormat::kPng);
  EXPECT_EQ(*sniff(bytes_of("RIFF\0\0\0\0WEBPVP8 "sv)), ImageFormat::kWebp);
}

TEST(ImageExtension, NeedsASignatureThatOtherDataDoesNotHave) {
  const std::pair<std::string_view, std::string_view> images[] = {{"\xFF\xD8\xFF\xE0"sv, "jpg"},
                                                                  {"\x89PNG\r\n\x1A\n"sv, "png"},
                                                                  {"RIFF\0\0\0\0WEBP"sv, "webp"},
                                                                  {"GIF89a"sv, "gif"},
                                                                  {"II*\0"sv, "tif"},
                                                                  {"BM\1\2\3\4\0\0\0\0\5\0"sv, "bmp"},
                                                                  {"\0\0\0\x20"
                                                                   "ftypavif"sv,
                                                                   "avif"},
                                                                  {"\0\0\0\x0CjP  \r\n"sv, "jp2"}};
  for (const auto& [bytes, extension] : images) EXPECT_EQ(image_extension(bytes_of(bytes)), extension);
  for (const std::string_view other : {"BM is text"sv, "BM"sv, "GIF"sv, "P5 text"sv, "\xFF\x0A"sv, "8BPS"sv, ""sv})
    EXPECT_EQ(image_extension(bytes_of(other)), "") << other;
}

TEST(Sniff, SaysWhatItLooksLikeInstead) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {""sv, "an empty file"},
      {"GIF89a\1\0\1\0"sv, "GIF images are not supported"},
      {"BM\0\0\0\0"sv, "BMP images are not supported"},
      {"II*\0\1"sv, "TIFF images are not supported"},
      {"MM\0+\0\10"sv, "TIFF images are not supported"},
      {"\0\0\0\x1C"
       "ftypavif"sv,
       "AVIF images are not supported"},
      {"\0\0\0\x1C"
       "ftypheic"sv,
       "HEIC images are not supported"},
      {"<html><body>404 not found"sv, "not an image: looks like text"},
      {"na\xC3\xAFve text\n"sv, "not an image: looks like text"},
      {"RIFF\0\0\0\0WAVEfmt "sv, "not an image: a RIFF file, but not WebP"},
      {"PK\3\4\0"sv, "not an image: looks like a zip archive"},
      {"\0\0\0\0\0\0\0\0"sv, "not an image: nothing but zeros"},
      {"\1\2\3\4"sv, "not an image that is known here"},
      {"\xFF\xD8"sv, "not an image that is known here"},
  };
  for (const auto& [bytes, what] : cases) {
    const auto format = sniff(bytes_of(bytes));
    ASSERT_FALSE(format) << what;
    EXPECT_EQ(format.error().what, what);
    EXPECT_EQ(format.error().code, ErrorCode::kData);
    EXPECT_EQ(format.error().where.stage, "decode");
  }
}

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
