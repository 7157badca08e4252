// SPDX-License-Identifier: Apache-2.0
#include "decode/webp/webp_decoder.h"

#include <webp/decode.h>
#include <webp/encode.h>

#include "decode/decoder_contract.h"

namespace feedline::decode {
namespace {

struct WebpKind {
  std::string name;
  bool lossless = false, alpha = false, simple_filter = false;
  int width = 83, height = 59;
};

EncodedBytes encode(const WebpKind& kind, unsigned seed = 1) {
  WebPConfig config;
  WebPPicture picture;
  EXPECT_TRUE(WebPConfigInit(&config) && WebPPictureInit(&picture));
  config.lossless = kind.lossless;
  config.exact = 1;
  config.quality = 60;
  config.filter_type = kind.simple_filter ? 0 : 1;
  config.filter_strength = 80;
  picture.width = kind.width;
  picture.height = kind.height;
  picture.use_argb = 1;
  const int channels = kind.alpha ? 4 : 3;
  const std::vector<std::uint8_t> pixels = photo(kind.width, kind.height, channels, seed);
  EXPECT_TRUE(
      (kind.alpha ? WebPPictureImportRGBA : WebPPictureImportRGB)(&picture, pixels.data(), kind.width * channels));
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  EXPECT_TRUE(WebPEncode(&config, &picture));
  const auto* first = reinterpret_cast<const std::byte*>(writer.mem);
  EncodedBytes bytes(first, first + writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  return bytes;
}

void put(EncodedBytes& bytes, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}
void put(EncodedBytes& bytes, std::string_view text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}

// Returns an animation with two frames on a canvas; the first frame covers part of the canvas, starting at (left, top).
EncodedBytes animation(int canvas_width, int canvas_height, const WebpKind& frame, int left, int top) {
  EncodedBytes body;
  put(body, "WEBP"), put(body, "VP8X"), put(body, 10, 4);
  put(body, 0x02, 4), put(body, static_cast<std::uint32_t>(canvas_width - 1), 3),
      put(body, static_cast<std::uint32_t>(canvas_height - 1), 3);
  put(body, "ANIM"), put(body, 6, 4), put(body, 0xFFFFFFFF, 4), put(body, 0, 2);
  for (const unsigned seed : {1U, 2U}) {
    const EncodedBytes image = encode(frame, seed);
    put(body, "ANMF"), put(body, static_cast<std::uint32_t>(16 + image.size() - 12), 4);
    put(body, static_cast<std::uint32_t>(left / 2), 3), put(body, static_cast<std::uint32_t>(top / 2), 3);
    put(body, static_cast<std::uint32_t>(frame.width - 1), 3),
        put(body, static_cast<std::uint32_t>(frame.height - 1), 3);
    put(body, 100, 3), put(body, 0, 1);
    body.insert(body.end(), image.begin() + 12, image.end());
  }
  EncodedBytes bytes;
  put(bytes, "RIFF"), put(bytes, static_cast<std::uint32_t>(body.size()), 4);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

std::vector<WebpKind> kinds() {
  std::vector<WebpKind> all{{.name = "lossy"},
                            {.name = "lossy simple filter", .simple_filter = true},
                            {.name = "lossy alpha", .alpha = true},
                            {.name = "lossless", .lossless = true},
                            {.name = "lossless alpha", .lossless = true, .alpha = true}};
  for (const int size : {1, 2, 3, 17, 33})
    for (const bool lossless : {false, true})
      all.push_back({.name = "tiny", .lossless = lossless, .width = size, .height = 34 - size});
  return all;
}

struct Webp {
  static constexpr std::string_view kFormat = "webp";
  static std::vector<EncodedImage> images() {
    std::vector<EncodedImage> all;
    for (const WebpKind& kind : kinds()) all.push_back({kind.name, encode(kind), kind.width, kind.height});
    all.push_back({"animation", animation(61, 45, {.width = 61, .height = 45}, 0, 0), 61, 45});
    all.push_back({"animation part", animation(61, 45, {.lossless = true, .width = 31, .height = 20}, 14, 6), 61, 45});
    return all;
  }
  // lossless: | "VP8L" | size | 0x2F | width - 1: 14 bits | height - 1: 14 bits | alpha 1 | version 3 |
  static EncodedBytes header_only(int width, int height) {
    EncodedBytes bytes;
    put(bytes, "RIFF"), put(bytes, 4000, 4), put(bytes, "WEBP"), put(bytes, "VP8L"), put(bytes, 3988, 4),
        put(bytes, 0x2F, 1);
    put(bytes, static_cast<std::uint32_t>(width - 1) | static_cast<std::uint32_t>(height - 1) << 14, 4);
    put(bytes, 0, 4);
    return bytes;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Webp, DecoderContract, Webp);

TEST(WebpDecoder, LosslessIsLossless) {
  for (const bool alpha : {false, true}) {
    const WebpKind kind{.lossless = true, .alpha = alpha};
    const int channels = alpha ? 4 : 3;
    const std::vector<std::uint8_t> pixels = photo(kind.width, kind.height, channels);
    std::vector<std::uint8_t> expected;  // alpha is dropped, and transparent pixels retain their colour
    for (std::size_t i = 0; i < pixels.size(); i += static_cast<std::size_t>(channels))
      expected.insert(expected.end(), &pixels[i], &pixels[i] + 3);
    EXPECT_EQ(*decode_whole(encode(kind)), expected);
  }
}

// Pillow's animation decoder returns the same pixels as libwebp's plain RGB decoder, apart from alpha.
TEST(WebpDecoder, PixelsAreThoseOfAPlainFullDecode) {
  for (const WebpKind& kind : kinds()) {
    const EncodedBytes bytes = encode(kind);
    int width = 0, height = 0;
    std::uint8_t* rgba =
        WebPDecodeRGBA(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &width, &height);
    ASSERT_NE(rgba, nullptr);
    std::vector<std::uint8_t> expected;
    for (int i = 0; i < width * height; ++i) expected.insert(expected.end(), rgba + 4 * i, rgba + 4 * i + 3);
    WebPFree(rgba);
    EXPECT_EQ(*decode_whole(bytes), expected) << kind.name;
  }
}

TEST(WebpDecoder, FirstFrameLiesOnABlackCanvas) {
  const WebpKind frame{.lossless = true, .width = 31, .height = 20};
  const auto pixels = decode_whole(animation(61, 45, frame, 14, 6));
  ASSERT_TRUE(pixels);
  const std::vector<std::uint8_t> picture = photo(31, 20, 3);
  EXPECT_EQ(cropped(*pixels, 61, {14, 6, 31, 20}, 3), picture);
  EXPECT_EQ(cropped(*pixels, 61, {0, 0, 61, 6}, 3), std::vector<std::uint8_t>(61 * 6 * 3));
  EXPECT_EQ(cropped(*pixels, 61, {45, 0, 16, 45}, 3), std::vector<std::uint8_t>(16 * 45 * 3));
}

TEST(WebpDecoder, FramesMustFitTheCanvas) {
  const auto pixels = decode_whole(animation(40, 45, {.width = 31, .height = 20}, 14, 6));
  ASSERT_FALSE(pixels);
  EXPECT_EQ(pixels.error().what, "damaged WebP: an animation has incomplete frames, or frames outside its canvas");
}

// Changes each byte of the frames' positions, sizes and chunks: the result must be an error or pixels, and sanitizers
// check that nothing outside the file is read.
TEST(WebpDecoder, AnAnimationMayBeDamagedAnywhere) {
  const EncodedBytes whole = animation(61, 45, {.lossless = true, .width = 31, .height = 20}, 14, 6);
  const auto expected = decode_whole(whole);
  ASSERT_TRUE(expected);
  int refused = 0;
  for (std::size_t at = 12; at < 100; ++at)
    for (const int flipped : {0x01, 0x80}) {
      EncodedBytes bytes = whole;
      bytes[at] ^= static_cast<std::byte>(flipped);
      const auto pixels = decode_whole(bytes);
      refused += !pixels;
      if (!pixels) {
        EXPECT_EQ(pixels.error().code, ErrorCode::kData) << at;
      }
    }
  EXPECT_GT(refused, 40);
  EncodedBytes second = whole;  // its signature, after the chunk header; the first frame is unchanged
  const std::size_t image_bytes = encode({.lossless = true, .width = 31, .height = 20}, 2).size() - 12;
  second[second.size() - image_bytes + 8] ^= std::byte{1};
  EXPECT_FALSE(decode_whole(second)) << "the second frame is no image";
}

TEST(WebpDecoder, TruncationTellsHowMuchIsThere) {
  EncodedBytes bytes = encode({});
  const std::size_t size = bytes.size();
  bytes.resize(size - 100);
  const auto pixels = decode_whole(bytes);
  ASSERT_FALSE(pixels);
  EXPECT_EQ(pixels.error().what,
            "truncated WebP: " + std::to_string(size - 100) + " of " + std::to_string(size) + " bytes");
}

}  // namespace
}  // namespace feedline::decode
