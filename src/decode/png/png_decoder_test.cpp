// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_decoder.h"

#include <array>

#include "decode/decoder_contract.h"
#include "decode/png/png_kinds_fixture.h"

namespace feedline::decode {
namespace {

struct Png {
  static constexpr std::string_view kFormat = "png";
  static std::vector<EncodedImage> images() {
    std::vector<EncodedImage> all;
    for (const PngKind& kind : kinds()) all.push_back({kind.name, encode_png(kind), kind.width, kind.height});
    return all;
  }
  static EncodedBytes header_only(int width, int height);
};

EncodedBytes Png::header_only(int width, int height) {
  EncodedBytes bytes = encode_png({});
  bytes.resize(33);
  set_big_endian(bytes, 16, static_cast<std::uint32_t>(width));
  set_big_endian(bytes, 20, static_cast<std::uint32_t>(height));
  seal(bytes, 8, 13);
  return bytes;
}
INSTANTIATE_TYPED_TEST_SUITE_P(Png, DecoderContract, Png);

// Returns Pillow's conversion of a pixel's samples.
std::array<std::uint8_t, 3> pillow_rgb(const PngKind& kind, const int* samples) {
  const auto byte = [&kind](int sample) { return static_cast<std::uint8_t>(kind.depth == 16 ? sample >> 8 : sample); };
  const int most = (1 << kind.depth) - 1;
  switch (kind.color) {
    case PngColor::kGray: {
      const auto v = static_cast<std::uint8_t>(kind.depth == 16 ? std::min(samples[0], 255) : samples[0] * 255 / most);
      return {v, v, v};
    }
    case PngColor::kGrayAlpha:
      return {byte(samples[0]), byte(samples[0]), byte(samples[0])};
    case PngColor::kPalette: {
      if (samples[0] >= kPaletteEntries[kind.depth]) return {0, 0, 0};
      const std::vector<std::uint8_t> colors = palette(kind.depth);
      const std::size_t at = static_cast<std::size_t>(3 * samples[0]);
      return {colors[at], colors[at + 1], colors[at + 2]};
    }
    case PngColor::kRgb:
    case PngColor::kRgba:
      return {byte(samples[0]), byte(samples[1]), byte(samples[2])};
  }
  return {};
}

TEST(PngDecoder, PixelsFollowPillowsRules) {
  for (const PngKind& kind : kinds()) {
    const std::vector<int> samples = samples_of(kind);
    const int channels = header_of(kind).channels();
    std::vector<std::uint8_t> expected;
    for (std::size_t i = 0; i < samples.size(); i += static_cast<std::size_t>(channels))
      for (const std::uint8_t value : pillow_rgb(kind, &samples[i])) expected.push_back(value);
    const auto pixels = decode_whole(encode_png(kind));
    ASSERT_TRUE(pixels) << kind.name << ": " << pixels.error().what;
    EXPECT_EQ(*pixels, expected) << kind.name;
  }
}

std::string error_of(const EncodedBytes& bytes) {
  const auto pixels = decode_whole(bytes);
  return pixels ? "" : pixels.error().what;
}

TEST(PngDecoder, ChecksumsOfChunksThatMatterAreVerified) {
  for (const std::string_view type : {"IHDR", "PLTE", "IDAT"}) {
    EncodedBytes bytes = encode_png({.color = PngColor::kPalette});
    bytes[chunk_at(bytes, type) + 8 + 2] ^= std::byte{1};
    EXPECT_EQ(error_of(bytes), "damaged PNG: wrong checksum of chunk " + std::string(type));
  }
  EncodedBytes gamma = encode_png({});
  gamma[chunk_at(gamma, "gAMA") + 8 + 2] ^= std::byte{1};
  EXPECT_EQ(*decode_whole(gamma), *decode_whole(encode_png({})));
}

TEST(PngDecoder, DamageBehindTheRegionIsSeen) {
  EncodedBytes bytes = encode_png({.width = 90, .height = 90});
  bytes[chunk_at(bytes, "IEND") - 40] ^= std::byte{1};
  ImageDecoder decoder;
  EXPECT_FALSE(decode_region(decoder, bytes, {0, 0, 5, 5}, ColorMode::kRgb));
}

TEST(PngDecoder, OnlyTheEndChunkMayBeMissing) {
  EncodedBytes bytes = encode_png({});
  const auto whole = decode_whole(bytes);
  bytes.resize(chunk_at(bytes, "IEND"));
  EXPECT_EQ(*decode_whole(bytes), *whole);
  bytes.resize(bytes.size() - 8);  // with the checksums of the last IDAT and of its zlib stream
  EXPECT_EQ(*decode_whole(bytes), *whole);
  bytes.resize(bytes.size() - 60);
  EXPECT_TRUE(error_of(bytes).starts_with("truncated PNG: ")) << error_of(bytes);
  EXPECT_TRUE(error_of(bytes).ends_with(" of 29 rows")) << error_of(bytes);
}

TEST(PngDecoder, DataMayComeInManyChunksButInOneRun) {
  const EncodedBytes bytes = encode_png({});
  const auto whole = decode_whole(bytes);
  EXPECT_EQ(*decode_whole(with_data_split(bytes, {}, 99)), *whole);
  EXPECT_EQ(*decode_whole(with_data_split(bytes, {1, 0, 1, 300, 7}, 99)), *whole);
  EXPECT_EQ(*decode_whole(with_data_split(bytes, {300}, 0)), *whole);
  const std::string error = error_of(with_data_split(bytes, {300}, 1));
  EXPECT_TRUE(error.starts_with("truncated PNG: ")) << error;
}

TEST(PngDecoder, AbsurdChunkSizesAreTruncation) {
  EncodedBytes bytes = encode_png({});
  set_big_endian(bytes, chunk_at(bytes, "gAMA"), 0x7FFFFFFF);
  EXPECT_EQ(error_of(bytes), "truncated PNG: ends inside chunk gAMA");
  EncodedBytes data = encode_png({});  // all pixels are present here
  set_big_endian(data, chunk_at(data, "IDAT"), 0x7FFFFFFF);
  EXPECT_EQ(*decode_whole(data), *decode_whole(encode_png({})));
  data.resize(data.size() * 3 / 4);
  EXPECT_TRUE(error_of(data).starts_with("truncated PNG: ")) << error_of(data);
}

TEST(PngDecoder, MissingRowsAreAnErrorThoughTheFileIsWhole) {
  EncodedBytes bytes = encode_png({});
  set_big_endian(bytes, 20, 40);  // taller than its data
  seal(bytes, 8, 13);
  EXPECT_TRUE(error_of(bytes).starts_with("truncated PNG: ")) << error_of(bytes);
  EXPECT_TRUE(error_of(bytes).ends_with(" of 40 rows")) << error_of(bytes);
}

TEST(PngDecoder, BadHeadersAreRefused) {
  EncodedBytes depth = encode_png({});
  depth[24] = std::byte{3};
  seal(depth, 8, 13);
  EXPECT_EQ(error_of(depth), "damaged PNG: color type 2 with 3 bits");
  EncodedBytes no_palette = encode_png({.color = PngColor::kPalette}, false);
  const std::size_t at = chunk_at(no_palette, "PLTE");
  no_palette.erase(no_palette.begin() + static_cast<std::ptrdiff_t>(at),
                   no_palette.begin() + static_cast<std::ptrdiff_t>(at + 12 + 450));
  EXPECT_EQ(error_of(no_palette), "damaged PNG: the palette is missing");
}

}  // namespace
}  // namespace feedline::decode
