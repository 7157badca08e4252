// SPDX-License-Identifier: Apache-2.0
#pragma once

// Generates PNGs of every kind, and modifies their chunks, for tests.

#include <gtest/gtest.h>
#include <spng.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/decoder_contract.h"
#include "decode/png/png_fixture.h"
#include "decode/png/png_stream.h"

namespace feedline::decode {

struct PngKind {
  std::string name;
  PngColor color = PngColor::kRgb;
  int depth = 8;
  bool interlaced = false;
  int width = 37, height = 29;
};

inline constexpr int kPaletteEntries[] = {0, 2, 4, 0,  9,
                                          0, 0, 0, 150};  // by depth; at 4 and 8 bits some indices have no colour

inline std::vector<std::uint8_t> palette(int depth) { return photo(kPaletteEntries[depth], 1, 3, 9); }

inline PngHeader header_of(const PngKind& kind) {
  return {static_cast<std::uint32_t>(kind.width), static_cast<std::uint32_t>(kind.height), kind.depth, kind.color,
          kind.interlaced};
}

// Returns one value per sample, 0 ... 2^depth - 1. Many 16-bit grey values are below 256, because Pillow clips larger
// values.
inline std::vector<int> samples_of(const PngKind& kind) {
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

inline void set_palette(spng_ctx* context, int depth, bool ancillary) {
  spng_plte plte{};
  const std::vector<std::uint8_t> colors = palette(depth);
  plte.n_entries = static_cast<std::uint32_t>(colors.size() / 3);
  for (std::uint32_t i = 0; i < plte.n_entries; ++i)
    plte.entries[i] = {colors[3 * i], colors[3 * i + 1], colors[3 * i + 2], 255};
  EXPECT_EQ(spng_set_plte(context, &plte), 0);
  spng_trns trns{};
  trns.n_type3_entries = 2;  // half transparent, which must be ignored
  trns.type3_alpha[1] = 77;
  if (ancillary) {
    EXPECT_EQ(spng_set_trns(context, &trns), 0);
  }
}

inline EncodedBytes encode_png(const PngKind& kind, bool ancillary = true) {
  const PngHeader header = header_of(kind);
  const std::size_t row_bytes = header.bytes_of(header.width);
  std::vector<std::uint8_t> raw(row_bytes * header.height);
  const std::vector<int> samples = samples_of(kind);
  const std::size_t per_row = samples.size() / header.height;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::uint8_t* row = raw.data() + i / per_row * row_bytes;
    const std::size_t bit = i % per_row * static_cast<std::size_t>(kind.depth);
    if (kind.depth == 16) {  // spng expects host byte order
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

inline std::vector<PngKind> kinds() {
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

inline void set_big_endian(EncodedBytes& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
}

// Recomputes the checksum of the chunk at offset `chunk`.
inline void seal(EncodedBytes& bytes, std::size_t chunk, std::size_t data_bytes) {
  const auto* type = reinterpret_cast<const Bytef*>(bytes.data() + chunk + 4);
  set_big_endian(bytes, chunk + 8 + data_bytes, static_cast<std::uint32_t>(crc32_z(0, type, 4 + data_bytes)));
}

inline std::size_t chunk_at(const EncodedBytes& bytes, std::string_view type) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.find(type) - 4;
}

inline void add_chunk(EncodedBytes& bytes, std::string_view type, std::span<const std::byte> data) {
  const std::size_t chunk = bytes.size();
  bytes.resize(chunk + 12 + data.size());
  set_big_endian(bytes, chunk, static_cast<std::uint32_t>(data.size()));
  std::memcpy(&bytes[chunk + 4], type.data(), 4);
  std::ranges::copy(data, bytes.begin() + static_cast<std::ptrdiff_t>(chunk + 8));
  seal(bytes, chunk, data.size());
}

// Splits the image data in `bytes` into IDATs of the given sizes and a last IDAT for the rest, and inserts a text chunk
// before the IDAT with index `text`.
inline EncodedBytes with_data_split(const EncodedBytes& bytes, const std::vector<std::size_t>& sizes,
                                    std::size_t text) {
  const std::size_t at = chunk_at(bytes, "IDAT"), end = chunk_at(bytes, "IEND");
  EncodedBytes result(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  std::span<const std::byte> data = std::span(bytes).subspan(at + 8, end - 4 - at - 8);
  for (std::size_t i = 0; i <= sizes.size(); ++i) {
    if (i == text) add_chunk(result, "tEXt", {});
    const std::size_t size = i < sizes.size() ? std::min(sizes[i], data.size()) : data.size();
    add_chunk(result, "IDAT", data.first(size));
    data = data.subspan(size);
  }
  add_chunk(result, "IEND", {});
  return result;
}

}  // namespace feedline::decode
