// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_decoder.h"

#include <spng.h>
#include <zlib.h>

#include <array>
#include <cstring>

#include "decode/decoder_contract.h"
#include "decode/png/png_fixture.h"

namespace feedline::decode {
namespace {

struct PngKind {
  std::string name;
  PngColor color = PngColor::kRgb;
  int depth = 8;
  bool interlaced = false;
  int width = 37, height = 29;
};

constexpr int kPaletteEntries[] = {0, 2, 4, 0, 9, 0, 0, 0, 150};  // by depth; at 4 and 8 some indices have no colour

std::vector<std::uint8_t> palette(int depth) { return photo(kPaletteEntries[depth], 1, 3, 9); }

PngHeader header_of(const PngKind& kind) {
  return {static_cast<std::uint32_t>(kind.width), static_cast<std::uint32_t>(kind.height), kind.depth, kind.color,
          kind.interlaced};
}

// One value per sample, 0 ... 2^depth - 1. 16-bit grey has many values below 256, which Pillow does not clip.
std::vector<int> samples_of(const PngKind& kind) {
  std::vector<int> samples;
  const int channels = header_of(kind).channels();
  for (const std::uint8_t value : photo(kind.width, kind.height, channels)) {
    const int wide = value * 257 + static_cast<int>(samples.size() * 97 % 256);
    const int sample = kind.depth <= 8 ? value >> (8 - kind.depth)
                       : channels == 1 ? wide >> (value % 3 * 4)
                                       : wide & 0xFFFF;
    samples.push_back(std::min(sample, (1 << kind.depth) - 1));
  }
  return samples;
}

void set_palette(spng_ctx* context, int depth, bool ancillary) {
  spng_plte plte{};
  const std::vector<std::uint8_t> colors = palette(depth);
  plte.n_entries = static_cast<std::uint32_t>(colors.size() / 3);
  for (std::uint32_t i = 0; i < plte.n_entries; ++i)
    plte.entries[i] = {colors[3 * i], colors[3 * i + 1], colors[3 * i + 2], 255};
  EXPECT_EQ(spng_set_plte(context, &plte), 0);
  spng_trns trns{};
  trns.n_type3_entries = 2;  // half transparent: to be ignored
  trns.type3_alpha[1] = 77;
  if (ancillary) {
    EXPECT_EQ(spng_set_trns(context, &trns), 0);
  }
}

EncodedBytes encode(const PngKind& kind, bool ancillary = true) {
  const PngHeader header = header_of(kind);
  const std::size_t row_bytes = header.bytes_of(header.width);
  std::vector<std::uint8_t> raw(row_bytes * header.height);
  const std::vector<int> samples = samples_of(kind);
  const std::size_t per_row = samples.size() / header.height;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::uint8_t* row = raw.data() + i / per_row * row_bytes;
    const std::size_t bit = i % per_row * static_cast<std::size_t>(kind.depth);
    if (kind.depth == 16) {  // spng takes them in this machine's order
      const auto sample = static_cast<std::uint16_t>(samples[i]);
      std::memcpy(row + bit / 8, &sample, 2);
    } else {
      row[bit / 8] =
          static_cast<std::uint8_t>(row[bit / 8] | samples[i] << (8 - static_cast<std::size_t>(kind.depth) - bit % 8));
    }
  }
  const spng_ihdr ihdr{
      header.width,   header.height, static_cast<std::uint8_t>(kind.depth), static_cast<std::uint8_t>(kind.color), 0, 0,
      kind.interlaced};
  return made_png(ihdr, raw, SPNG_FMT_PNG, [&](spng_ctx* context) {
    if (kind.color == PngColor::kPalette) set_palette(context, kind.depth, ancillary);
    if (ancillary) {
      EXPECT_EQ(spng_set_gama(context, 0.45), 0);
    }
  });
}

std::vector<PngKind> kinds() {
  std::vector<PngKind> all;
  const std::pair<PngColor, std::vector<int>> layouts[] = {{PngColor::kGray, {1, 2, 4, 8, 16}},
                                                           {PngColor::kRgb, {8, 16}},
                                                           {PngColor::kPalette, {1, 2, 4, 8}},
                                                           {PngColor::kGrayAlpha, {8, 16}},
                                                           {PngColor::kRgba, {8, 16}}};
  for (const auto& [color, depths] : layouts)
    for (const int depth : depths)
      for (const bool interlaced : {false, true}) {
        const std::string name = "color " + std::to_string(static_cast<int>(color)) + " depth " +
                                 std::to_string(depth) + (interlaced ? " interlaced" : "");
        all.push_back({name, color, depth, interlaced});
        for (const int size : {1, 3, 5}) all.push_back({name + " tiny", color, depth, interlaced, size, 6 - size});
      }
  return all;
}

struct Png {
  static constexpr ImageFormat kFormat = ImageFormat::kPng;
  static std::vector<EncodedImage> images() {
    std::vector<EncodedImage> all;
    for (const PngKind& kind : kinds()) all.push_back({kind.name, encode(kind), kind.width, kind.height});
    return all;
  }
  static EncodedBytes header_only(int width, int height);
};

void set_big_endian(EncodedBytes& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

// Makes the checksum of the chunk at `chunk` right again.
void seal(EncodedBytes& bytes, std::size_t chunk, std::size_t data_bytes) {
  const auto* type = reinterpret_cast<const Bytef*>(bytes.data() + chunk + 4);
  set_big_endian(bytes, chunk + 8 + data_bytes, static_cast<std::uint32_t>(crc32_z(0, type, 4 + data_bytes)));
}

EncodedBytes Png::header_only(int width, int height) {
  EncodedBytes bytes = encode({});
  bytes.resize(33);
  set_big_endian(bytes, 16, static_cast<std::uint32_t>(width));
  set_big_endian(bytes, 20, static_cast<std::uint32_t>(height));
  seal(bytes, 8, 13);
  return bytes;
}
INSTANTIATE_TYPED_TEST_SUITE_P(Png, DecoderContract, Png);

// What Pillow makes of a pixel's samples.
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
    const auto pixels = decode_whole(encode(kind));
    ASSERT_TRUE(pixels) << kind.name << ": " << pixels.error().what;
    EXPECT_EQ(*pixels, expected) << kind.name;
  }
}

std::string error_of(const EncodedBytes& bytes) {
  const auto pixels = decode_whole(bytes);
  return pixels ? "" : pixels.error().what;
}

std::size_t chunk_at(const EncodedBytes& bytes, std::string_view type) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.find(type) - 4;
}

TEST(PngDecoder, ChecksumsOfChunksThatMatterAreVerified) {
  for (const std::string_view type : {"IHDR", "PLTE", "IDAT"}) {
    EncodedBytes bytes = encode({.color = PngColor::kPalette});
    bytes[chunk_at(bytes, type) + 8 + 2] ^= std::byte{1};
    EXPECT_EQ(error_of(bytes), "damaged PNG: wrong checksum of chunk " + std::string(type));
  }
  EncodedBytes gamma = encode({});
  gamma[chunk_at(gamma, "gAMA") + 8 + 2] ^= std::byte{1};
  EXPECT_EQ(*decode_whole(gamma), *decode_whole(encode({})));
}

TEST(PngDecoder, DamageBehindTheRegionIsSeen) {
  EncodedBytes bytes = encode({.width = 90, .height = 90});
  bytes[chunk_at(bytes, "IEND") - 40] ^= std::byte{1};
  ImageDecoder decoder;
  EXPECT_FALSE(decode_region(decoder, bytes, {0, 0, 5, 5}, ColorMode::kRgb));
}

TEST(PngDecoder, OnlyTheEndChunkMayBeMissing) {
  EncodedBytes bytes = encode({});
  const auto whole = decode_whole(bytes);
  bytes.resize(chunk_at(bytes, "IEND"));
  EXPECT_EQ(*decode_whole(bytes), *whole);
  bytes.resize(bytes.size() - 8);  // with the checksums of the last IDAT and of its zlib stream
  EXPECT_EQ(*decode_whole(bytes), *whole);
  bytes.resize(bytes.size() - 60);
  EXPECT_TRUE(error_of(bytes).starts_with("truncated PNG: ")) << error_of(bytes);
  EXPECT_TRUE(error_of(bytes).ends_with(" of 29 rows")) << error_of(bytes);
}

// The image data of `bytes` in IDATs of the given sizes, the rest in a last one; a text chunk before number `text`.
EncodedBytes with_data_split(const EncodedBytes& bytes, const std::vector<std::size_t>& sizes, std::size_t text) {
  const std::size_t at = chunk_at(bytes, "IDAT"), end = chunk_at(bytes, "IEND");
  EncodedBytes result(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  const auto add = [&result](std::string_view type, std::span<const std::byte> data) {
    const std::size_t chunk = result.size();
    result.resize(chunk + 12 + data.size());
    set_big_endian(result, chunk, static_cast<std::uint32_t>(data.size()));
    std::memcpy(&result[chunk + 4], type.data(), 4);
    std::ranges::copy(data, result.begin() + static_cast<std::ptrdiff_t>(chunk + 8));
    seal(result, chunk, data.size());
  };
  std::span<const std::byte> data = std::span(bytes).subspan(at + 8, end - 4 - at - 8);
  for (std::size_t i = 0; i <= sizes.size(); ++i) {
    if (i == text) add("tEXt", {});
    const std::size_t size = i < sizes.size() ? sizes[i] : data.size();
    add("IDAT", data.first(size));
    data = data.subspan(size);
  }
  add("IEND", {});
  return result;
}

TEST(PngDecoder, DataMayComeInManyChunksButInOneRun) {
  const EncodedBytes bytes = encode({});
  const auto whole = decode_whole(bytes);
  EXPECT_EQ(*decode_whole(with_data_split(bytes, {}, 99)), *whole);
  EXPECT_EQ(*decode_whole(with_data_split(bytes, {1, 0, 1, 300, 7}, 99)), *whole);
  EXPECT_EQ(*decode_whole(with_data_split(bytes, {300}, 0)), *whole);
  const std::string error = error_of(with_data_split(bytes, {300}, 1));
  EXPECT_TRUE(error.starts_with("truncated PNG: ")) << error;
}

TEST(PngDecoder, AbsurdChunkSizesAreTruncation) {
  EncodedBytes bytes = encode({});
  set_big_endian(bytes, chunk_at(bytes, "gAMA"), 0x7FFFFFFF);
  EXPECT_EQ(error_of(bytes), "truncated PNG: ends inside chunk gAMA");
  EncodedBytes data = encode({});  // here all pixels are there
  set_big_endian(data, chunk_at(data, "IDAT"), 0x7FFFFFFF);
  EXPECT_EQ(*decode_whole(data), *decode_whole(encode({})));
  data.resize(data.size() * 3 / 4);
  EXPECT_TRUE(error_of(data).starts_with("truncated PNG: ")) << error_of(data);
}

TEST(PngDecoder, MissingRowsAreAnErrorThoughTheFileIsWhole) {
  EncodedBytes bytes = encode({});
  set_big_endian(bytes, 20, 40);  // taller than its data
  seal(bytes, 8, 13);
  EXPECT_TRUE(error_of(bytes).starts_with("truncated PNG: ")) << error_of(bytes);
  EXPECT_TRUE(error_of(bytes).ends_with(" of 40 rows")) << error_of(bytes);
}

TEST(PngDecoder, BadHeadersAreRefused) {
  EncodedBytes depth = encode({});
  depth[24] = std::byte{3};
  seal(depth, 8, 13);
  EXPECT_EQ(error_of(depth), "damaged PNG: color type 2 with 3 bits");
  EncodedBytes no_palette = encode({.color = PngColor::kPalette}, false);
  const std::size_t at = chunk_at(no_palette, "PLTE");
  no_palette.erase(no_palette.begin() + static_cast<std::ptrdiff_t>(at),
                   no_palette.begin() + static_cast<std::ptrdiff_t>(at + 12 + 450));
  EXPECT_EQ(error_of(no_palette), "damaged PNG: without its palette");
}

}  // namespace
}  // namespace feedline::decode
