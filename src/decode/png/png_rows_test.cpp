// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_rows.h"

#include <random>

#include "base/rounds.h"
#include "decode/png/png_decoder.h"
#include "decode/png/png_kinds_fixture.h"

namespace feedline::decode {
namespace {

// Tests that inflating all rows at once produces the same results and errors as libspng alone.
class BothWays {
 public:
  // Returns whether the fast path could decode the rows.
  bool expect_same(const EncodedBytes& bytes, const Box& region, ColorMode mode, const std::string& what) {
    const std::string mine = decoded_by(best_, bytes, region, mode), other = decoded_by(libspng_, bytes, region, mode);
    EXPECT_TRUE(mine == other) << what;
    return !best_.used_libspng();
  }

 private:
  // Returns the pixels, or the error.
  static std::string decoded_by(PngDecoder& decoder, const EncodedBytes& bytes, const Box& region, ColorMode mode) {
    const auto header = decoder.open(bytes);
    if (!header) return header.error().what;
    memory::PixelBuffer out;
    EXPECT_TRUE(out.resize(region.width, region.height, channels_of(mode)));
    if (const auto result = decoder.decode(region, mode, out); !result) return result.error().what;
    std::string pixels;
    for (int y = 0; y < region.height; ++y)
      pixels.append(reinterpret_cast<const char*>(out.row(y)),
                    static_cast<std::size_t>(region.width * channels_of(mode)));
    return pixels;
  }

  PngDecoder best_, libspng_{PngDecoder::Way::kLibspng};
};

Box drawn_region(const PngKind& kind, std::mt19937& random) {
  const auto draw = [&random](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  const int width = 1 + draw(kind.width), height = 1 + draw(kind.height);
  return {draw(kind.width - width + 1), draw(kind.height - height + 1), width, height};
}

TEST(PngRows, GiveLibspngsPixels) {
  BothWays both;
  std::mt19937 random(1);
  for (const PngKind& kind : kinds())
    for (const EncodedBytes& bytes : {encode_png(kind), with_data_split(encode_png(kind), {3, 0, 20}, 99)}) {
      for (const ColorMode mode : {ColorMode::kRgb, ColorMode::kL})
        EXPECT_TRUE(both.expect_same(bytes, {0, 0, kind.width, kind.height}, mode, kind.name)) << kind.name;
      for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(both.expect_same(bytes, drawn_region(kind, random), ColorMode::kRgb, kind.name)) << kind.name;
    }
}

int image_data_chunks(const EncodedBytes& bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  int chunks = 0;
  for (std::size_t at = 0; (at = text.find("IDAT", at)) != std::string_view::npos; ++at) ++chunks;
  return chunks;
}

// Damages bytes anywhere after the header, and corrects the checksums of image data so that the data is read.
EncodedBytes damaged(EncodedBytes bytes, std::mt19937& random) {
  constexpr std::size_t kHeader = 33;
  const std::size_t at = kHeader + random() % (bytes.size() - kHeader);
  switch (random() % 8) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      bytes[at] = static_cast<std::byte>(random());
      break;
    default: {
      const std::size_t chunk = chunk_at(bytes, "IDAT");
      const std::size_t size = chunk_at(bytes, "IEND") - chunk - 12;
      bytes[chunk + 8 + random() % size] ^= std::byte{1} << random() % 8;
      seal(bytes, chunk, size);
    }
  }
  return bytes;
}

TEST(PngRows, DamageIsReportedAsByLibspng) {
  BothWays both;
  std::mt19937 random(2);
  const std::vector<PngKind> all = kinds();
  for (const PngKind& kind : all) {
    const EncodedBytes good = encode_png(kind);
    ASSERT_EQ(image_data_chunks(good), 1) << kind.name;
    for (int round = 0; round < base::rounds(100); ++round)
      both.expect_same(damaged(good, random), drawn_region(kind, random), ColorMode::kRgb,
                       kind.name + " round " + std::to_string(round));
  }
  EXPECT_GE(all.size(), 100u);  // 10,000 files
}

// libspng reads the filter number along with the previous row.
TEST(PngRows, AFilterThatDoesNotExistIsSeenFromTheRowAbove) {
  const std::vector<Bytef> rows{0, 1, 2, 3, 0, 4, 5, 6, 5, 7, 8, 9, 0, 1, 2, 3};  // three pixels after a filter byte
  uLongf packed_bytes = compressBound(rows.size());
  std::vector<Bytef> packed(packed_bytes);
  ASSERT_EQ(compress(packed.data(), &packed_bytes, rows.data(), rows.size()), Z_OK);
  EncodedBytes bytes = made_png(3, 4, SPNG_COLOR_TYPE_GRAYSCALE, std::vector<std::uint8_t>(12));
  bytes.resize(chunk_at(bytes, "IDAT"));
  add_chunk(bytes, "IDAT", std::as_bytes(std::span(packed).first(packed_bytes)));
  add_chunk(bytes, "IEND", {});
  BothWays both;
  EXPECT_TRUE(both.expect_same(bytes, {0, 0, 3, 1}, ColorMode::kL, "two rows above"));
  EXPECT_FALSE(both.expect_same(bytes, {0, 0, 3, 2}, ColorMode::kL, "the row above"));
  EXPECT_FALSE(both.expect_same(bytes, {0, 0, 3, 3}, ColorMode::kL, "the row itself"));
}

// libspng does not read past the requested rows, whereas the fast path verifies a checksum of all rows.
TEST(PngRows, DamageBelowTheRegionIsLeftToLibspng) {
  BothWays both;
  EncodedBytes bytes = encode_png(PngKind{});
  const std::size_t chunk = chunk_at(bytes, "IDAT"), size = chunk_at(bytes, "IEND") - chunk - 12;
  bytes[chunk + 8 + size - 1] ^= std::byte{1};
  seal(bytes, chunk, size);
  EXPECT_FALSE(both.expect_same(bytes, {0, 0, 37, 5}, ColorMode::kRgb, "a wrong Adler-32"));
}

}  // namespace
}  // namespace feedline::decode
