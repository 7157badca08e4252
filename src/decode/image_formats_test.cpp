// SPDX-License-Identifier: Apache-2.0
#include "decode/image_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "decode/codec.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/jpeg/jpeg_fixture.h"
#include "decode/png/png_decoder.h"
#include "decode/png/png_kinds_fixture.h"
#include "feedline/image_formats.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Returns a file that begins with the signature.
std::string begun(const ImageSignature& signature, std::string_view rest) {
  return std::string(signature.offset, '\0').append(signature.bytes).append(rest);
}

TEST(ImageFormats, EveryRowIsComplete) {
  std::set<std::string_view> names, extensions;
  for (const ImageFormat& format : image_formats()) {
    SCOPED_TRACE(format.name);
    EXPECT_TRUE(names.insert(format.name).second);
    EXPECT_FALSE(format.title.empty());
    EXPECT_EQ(&image_format(format.name), &format);
    EXPECT_FALSE(format.signatures[0].bytes.empty());
    for (std::size_t i = 0; i < std::size(format.extensions) && !format.extensions[i].empty(); ++i) {
      EXPECT_TRUE(extensions.insert(format.extensions[i]).second) << format.extensions[i];
      EXPECT_EQ(format_of_extension(format.extensions[i]), &format);
      EXPECT_EQ(is_in_image_folders(format.extensions[i]), i < format.image_folder) << format.extensions[i];
    }
    if (format.codec == nullptr) continue;
    EXPECT_FALSE(format.extensions[0].empty());
    EXPECT_NE(format.codec->make(), nullptr);
    EXPECT_GT(format.codec->costs.byte, 0);
    EXPECT_GT(format.codec->costs.pixel, 0);
    EXPECT_TRUE(format.pillow_requires.empty());
  }
  EXPECT_EQ(format_of_extension(""), nullptr);
  EXPECT_EQ(format_of_extension("txt"), nullptr);
}

TEST(ImageFormats, EverySignatureIsRecognised) {
  for (const ImageFormat& format : image_formats())
    for (const ImageSignature& signature : format.signatures) {
      if (signature.bytes.empty()) continue;
      SCOPED_TRACE(std::string(format.name) + " " + std::string(signature.extension));
      // one of these satisfies the further condition
      const std::string files[] = {begun(signature, "\1\2\3\4\0\0\0\0\5\0"sv), begun(signature, "\0\0\0\0WEBPVP8 "sv),
                                   begun(signature, "6 7 5 255 "sv)};
      const auto found = std::ranges::find_if(files, [&](const std::string& file) {
        return format_of(bytes_of(file)) == &format && image_extension(bytes_of(file)) == signature.extension;
      });
      ASSERT_NE(found, std::end(files));
      if (signature.extension.empty()) continue;
      EXPECT_NE(std::ranges::find(format.extensions, signature.extension), std::end(format.extensions));
      EXPECT_EQ(image_extension(bytes_of(found->substr(0, kImageHead))), signature.extension);
      EXPECT_EQ(extension_to_store(bytes_of(*found)), signature.extension);
    }
  EXPECT_EQ(format_of(bytes_of("not an image")), nullptr);
  EXPECT_EQ(extension_to_store(bytes_of("not an image")), "jpg");
}

TEST(ImageFormats, AreDescribed) {
  const auto described = feedline::image_formats();
  ASSERT_EQ(described.size(), image_formats().size());
  EXPECT_EQ(described[0].name, "jpeg");
  EXPECT_TRUE(described[0].is_native);
  EXPECT_EQ(described[0].extensions, (std::vector<std::string_view>{"jpg", "jpeg", "jpe", "jfif", "mpo"}));
  EXPECT_EQ(described[0].image_folder_extensions, (std::vector<std::string_view>{"jpg", "jpeg"}));
  EXPECT_EQ(image_format_of(bytes_of("GIF89a"sv)), "gif");
  EXPECT_EQ(image_format_of(bytes_of("text"sv)), "");
}

TEST(Sniff, GoesByContent) {
  EXPECT_EQ(*sniff(bytes_of("\xFF\xD8\xFF\xE0"sv)), &image_format("jpeg"));
  EXPECT_EQ(*sniff(bytes_of("\x89PNG\r\n\x1A\n"sv)), &image_format("png"));
  EXPECT_EQ(*sniff(bytes_of("RIFF\0\0\0\0WEBPVP8 "sv)), &image_format("webp"));
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
       "HEIC/HEIF images are not supported"},
      {"<html><body>404 not found"sv, "not an image: looks like text"},
      {"na\xC3\xAFve text\n"sv, "not an image: looks like text"},
      {"RIFF\0\0\0\0WAVEfmt "sv, "not an image: a RIFF file, but not WebP"},
      {"PK\3\4\0"sv, "not an image: looks like a zip archive"},
      {"\0\0\0\0\0\0\0\0"sv, "not an image: all bytes are zero"},
      {"\1\2\3\4"sv, "not an image of a known format"},
      {"\xFF\xD8"sv, "not an image of a known format"},
  };
  for (const auto& [bytes, what] : cases) {
    const auto format = sniff(bytes_of(bytes));
    ASSERT_FALSE(format) << what;
    EXPECT_EQ(format.error().what, what);
    EXPECT_EQ(format.error().code, ErrorCode::kData);
    EXPECT_EQ(format.error().where.stage, "decode");
  }
}

using Traits = std::vector<std::string_view>;

TEST(ImageTraits, OfJpegs) {
  const auto of = [](const JpegKind& kind) { return kJpegCodec.read_traits(encode(kind)); };
  EXPECT_EQ(of({}), Traits{});
  EXPECT_EQ(of({.progressive = true}), Traits{"progressive"});
  EXPECT_EQ(of({.arithmetic = true}), Traits{"arithmetic coding"});
  EXPECT_EQ(of({.progressive = true, .arithmetic = true}), (Traits{"progressive", "arithmetic coding"}));
  EXPECT_EQ(of({.channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK}), Traits{"CMYK"});
  EncodedBytes bytes = encode(JpegKind{});
  const auto frame = std::ranges::search(bytes, std::array{std::byte{0xFF}, std::byte{0xC0}}).begin();
  frame[4] = std::byte{12};
  EXPECT_EQ(kJpegCodec.read_traits(bytes), Traits{"12 bits"});
  frame[1] = std::byte{0xC3};
  EXPECT_EQ(kJpegCodec.read_traits(bytes), (Traits{"lossless", "12 bits"}));
}

TEST(ImageTraits, OfPngs) {
  for (const PngKind& kind : kinds()) {
    Traits expected;
    if (kind.color == PngColor::kPalette) expected.push_back("palette");
    if (kind.interlaced) expected.push_back("interlaced");
    if (kind.depth == 16) expected.push_back("16 bits");
    EXPECT_EQ(kPngCodec.read_traits(encode_png(kind)), expected) << kind.name;
  }
}

TEST(ImageTraits, AreEmptyForTruncatedFiles) {
  const EncodedBytes jpeg = encode({.progressive = true}), png = encode_png(PngKind{.color = PngColor::kPalette});
  std::size_t found = 0;
  for (std::size_t size = 0; size < 700; ++size) {
    found += kJpegCodec.read_traits(std::span(jpeg).first(std::min(size, jpeg.size()))).size();
    found += kPngCodec.read_traits(std::span(png).first(std::min(size, png.size()))).size();
  }
  EXPECT_GT(found, 0u);
  EXPECT_LT(found, 2u * 700);
}

TEST(PillowMode, IsKnownForColourAndGreyImages) {
  EXPECT_EQ(pillow_mode_of(encode(JpegKind{})), "RGB");
  EXPECT_EQ(pillow_mode_of(encode({.progressive = true})), "RGB");
  EXPECT_EQ(pillow_mode_of(encode({.channels = 1, .h = 1, .v = 1, .stored = JCS_GRAYSCALE})), "L");
  EXPECT_EQ(pillow_mode_of(encode({.channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK})), "");
  for (const PngKind& kind : kinds()) {
    const bool is_rgb = kind.color == PngColor::kRgb, is_grey = kind.color == PngColor::kGray;
    EXPECT_EQ(pillow_mode_of(encode_png(kind)), kind.depth != 8 ? "" : is_rgb ? "RGB" : is_grey ? "L" : "");
  }
  EXPECT_EQ(pillow_mode_of(bytes_of("RIFF\0\0\0\0WEBPVP8 "sv)), "RGB");
  EXPECT_EQ(pillow_mode_of(bytes_of("RIFF\0\0\0\0WEBPVP8L"sv)), "");
  EXPECT_EQ(pillow_mode_of(bytes_of("GIF89a"sv)), "");
  EXPECT_EQ(pillow_mode_of({}), "");
}

}  // namespace
}  // namespace feedline::decode
