// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_decoder.h"

#include <array>

#include "decode/decoder_contract.h"
#include "decode/jpeg/jpeg_fixture.h"

namespace feedline::decode {
namespace {

std::vector<JpegKind> kinds() {
  std::vector<JpegKind> all;
  for (const auto& [h, v] : {std::pair{2, 2}, {2, 1}, {1, 1}, {1, 2}, {4, 1}, {4, 2}, {1, 4}}) {
    const std::string sampling = std::to_string(h) + "x" + std::to_string(v);
    for (const bool progressive : {false, true})
      all.push_back(
          {.name = sampling + (progressive ? " progressive" : ""), .h = h, .v = v, .progressive = progressive});
    all.push_back({.name = sampling + " restart", .width = 130, .height = 35, .h = h, .v = v, .restart = 2});
    all.push_back({.name = sampling + " separate scans", .h = h, .v = v, .interleaved = false});
    for (const int size : {1, 2, 3, 5, 16, 17})
      all.push_back({.name = sampling + " tiny", .width = size, .height = 18 - size, .h = h, .v = v});
  }
  all.push_back({.name = "grey", .channels = 1, .h = 1, .v = 1});
  all.push_back({.name = "grey progressive", .channels = 1, .h = 1, .v = 1, .progressive = true});
  all.push_back({.name = "grey 2x2", .channels = 1, .restart = 3});
  all.push_back({.name = "stored RGB", .h = 1, .v = 1, .stored = JCS_RGB});
  all.push_back({.name = "CMYK", .channels = 4, .h = 1, .v = 1, .stored = JCS_CMYK});
  all.push_back({.name = "YCCK 2x2", .channels = 4, .stored = JCS_YCCK});
  all.push_back(
      {.name = "YCCK 2x1 progressive", .channels = 4, .h = 2, .v = 1, .stored = JCS_YCCK, .progressive = true});
  all.push_back({.name = "arithmetic", .arithmetic = true});
  all.push_back({.name = "motion JPEG", .tables = false});
  return all;
}

struct Jpeg {
  static constexpr std::string_view kFormat = "jpeg";
  static std::vector<EncodedImage> images() {
    std::vector<EncodedImage> all;
    for (const JpegKind& kind : kinds()) all.push_back({kind.name, encode(kind), kind.width, kind.height});
    return all;
  }
  static EncodedBytes header_only(int width, int height) {
    EncodedBytes bytes = encode({});
    const auto sof = std::ranges::search(bytes, std::array{std::byte{0xFF}, std::byte{0xC0}}).begin();
    sof[5] = static_cast<std::byte>(height >> 8), sof[6] = static_cast<std::byte>(height);
    sof[7] = static_cast<std::byte>(width >> 8), sof[8] = static_cast<std::byte>(width);
    const auto sos = std::ranges::search(bytes, std::array{std::byte{0xFF}, std::byte{0xDA}}).begin();
    bytes.erase(sos + 14, bytes.end());
    return bytes;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Jpeg, DecoderContract, Jpeg);

// Decodes as Pillow uses libjpeg: the whole image, with accurate DCT and fancy upsampling.
std::vector<std::uint8_t> reference(const EncodedBytes& bytes, J_COLOR_SPACE space) {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = space;
  jpeg_start_decompress(&jpeg);
  const std::size_t stride = std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  std::vector<std::uint8_t> pixels(stride * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = pixels.data() + jpeg.output_scanline * stride;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

TEST(JpegDecoder, PixelsAreThoseOfAPlainFullDecode) {
  for (const JpegKind& kind : kinds()) {
    const EncodedBytes bytes = encode(kind);
    std::vector<std::uint8_t> expected = reference(bytes, kind.channels == 4 ? JCS_CMYK : JCS_RGB);
    if (kind.channels == 4) {
      const std::vector<std::uint8_t> cmyk = expected;
      expected.resize(cmyk.size() / 4 * 3);
      inverted_cmyk_to_rgb(cmyk.data(), static_cast<int>(cmyk.size() / 4), expected.data());
    }
    const auto pixels = decode_whole(bytes);
    ASSERT_TRUE(pixels) << kind.name << ": " << pixels.error().what;
    EXPECT_EQ(*pixels, expected) << kind.name;
  }
}

std::string error_of(const EncodedBytes& bytes) {
  const auto pixels = decode_whole(bytes);
  return pixels ? "" : pixels.error().what;
}

std::ptrdiff_t position_of(const EncodedBytes& bytes, int marker, std::ptrdiff_t from = 0) {
  const std::array pattern{std::byte{0xFF}, static_cast<std::byte>(marker)};
  return std::search(bytes.begin() + from, bytes.end(), pattern.begin(), pattern.end()) - bytes.begin();
}

void insert(EncodedBytes& bytes, std::ptrdiff_t at, std::initializer_list<int> values) {
  EncodedBytes more;
  for (const int value : values) more.push_back(static_cast<std::byte>(value));
  bytes.insert(bytes.begin() + at, more.begin(), more.end());
}

TEST(JpegDecoder, TruncationTellsHowManyRowsAreThere) {
  EncodedBytes bytes = encode({.width = 64, .height = 160});
  bytes.resize(bytes.size() * 7 / 10);
  EXPECT_TRUE(error_of(bytes).starts_with("truncated JPEG: ")) << error_of(bytes);
  EXPECT_TRUE(error_of(bytes).ends_with(" of 160 rows")) << error_of(bytes);
}

TEST(JpegDecoder, AFileMayEndInsideItsHeader) {
  const EncodedBytes bytes = encode({});
  for (std::ptrdiff_t cut = 4; cut < position_of(bytes, 0xDA) + 14; ++cut)
    ASSERT_EQ(error_of(EncodedBytes(bytes.begin(), bytes.begin() + cut)), "truncated JPEG: ends inside its header")
        << cut;
}

TEST(JpegDecoder, TruncationIsSeenBehindTheRegion) {
  EncodedBytes bytes = encode({.width = 64, .height = 160});
  bytes.resize(bytes.size() * 9 / 10);
  ImageDecoder decoder;
  const auto part = decode_region(decoder, bytes, {0, 0, 20, 20}, ColorMode::kRgb);
  ASSERT_FALSE(part);
  EXPECT_TRUE(part.error().what.starts_with("truncated JPEG: ")) << part.error().what;
}

TEST(JpegDecoder, OnlyTheEndMarkerMayBeMissing) {
  for (const JpegKind& kind : kinds()) {
    EncodedBytes bytes = encode(kind);
    const auto whole = decode_whole(bytes);
    bytes.resize(bytes.size() - 2);
    const auto pixels = decode_whole(bytes);
    if (kind.arithmetic) {  // if nothing else shows that the data is complete
      EXPECT_FALSE(pixels);
      continue;
    }
    ASSERT_TRUE(pixels) << kind.name << ": " << pixels.error().what;
    EXPECT_EQ(*pixels, *whole) << kind.name;
    bytes.resize(bytes.size() - 3);
    EXPECT_FALSE(decode_whole(bytes)) << kind.name;
  }
}

TEST(JpegDecoder, DamageIsAnErrorInTheRegionAndBeforeIt) {
  EncodedBytes bytes = encode({.width = 64, .height = 160, .restart = 1});
  EncodedBytes no_restart = bytes;
  const std::ptrdiff_t at = position_of(no_restart, 0xD3, position_of(no_restart, 0xDA));
  no_restart[static_cast<std::size_t>(at + 1)] = std::byte{0xD6};
  EXPECT_TRUE(error_of(no_restart).starts_with("damaged JPEG after ")) << error_of(no_restart);
  ImageDecoder decoder;
  EXPECT_FALSE(decode_region(decoder, no_restart, {0, 120, 64, 40}, ColorMode::kRgb));

  EncodedBytes bad_code = encode({.width = 64, .height = 160});  // the code of all ones is never assigned
  for (std::size_t i = 0; i < 40; ++i)
    bad_code[bad_code.size() / 2 + i] = static_cast<std::byte>(i % 2 == 0 ? 0xFF : 0x00);
  EXPECT_NE(error_of(bad_code).find("bad Huffman code"), std::string::npos) << error_of(bad_code);

  EncodedBytes early_end = encode({.width = 64, .height = 160});
  const std::ptrdiff_t middle = position_of(early_end, 0xDA) + 14 + static_cast<std::ptrdiff_t>(early_end.size() / 3);
  insert(early_end, middle, {0xFF, JPEG_EOI});
  EXPECT_TRUE(error_of(early_end).starts_with("damaged JPEG after ")) << error_of(early_end);
}

TEST(JpegDecoder, OdditiesThatCostNoPixelsAreFine) {
  const EncodedBytes plain = encode({});
  const auto expected = decode_whole(plain);
  EncodedBytes between = plain;  // bytes between two segments
  insert(between, position_of(between, 0xDB), {0x12, 0x34, 0x56});
  EXPECT_EQ(error_of(between), "");
  EXPECT_EQ(*decode_whole(between), *expected);
  EncodedBytes jfif = plain;  // an unknown JFIF version
  jfif[static_cast<std::size_t>(position_of(jfif, 0xE0) + 9)] = std::byte{7};
  EXPECT_EQ(*decode_whole(jfif), *expected);
  EncodedBytes extended = plain;
  extended.resize(extended.size() + 1000, std::byte{0x5A});
  EXPECT_EQ(*decode_whole(extended), *expected);
  EncodedBytes adobe = plain;  // an unknown colour transform is treated as YCbCr
  insert(adobe, 2, {0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 9});
  EXPECT_EQ(*decode_whole(adobe), *expected);
}

TEST(JpegDecoder, NothingIsInheritedFromTheImageBefore) {
  const EncodedBytes motion = encode({.name = "", .tables = false});
  EncodedBytes no_quantisation = encode({});
  const std::ptrdiff_t table = position_of(no_quantisation, 0xDB);
  no_quantisation.erase(no_quantisation.begin() + table, no_quantisation.begin() + table + 2 + 67);
  ImageDecoder decoder;
  const Box whole{0, 0, 61, 47};
  const auto fresh = decode_whole(motion);
  ASSERT_TRUE(fresh);
  for (const JpegKind& before : kinds()) {
    ASSERT_TRUE(decode_region(decoder, encode(before), {0, 0, 1, 1}, ColorMode::kRgb)) << before.name;
    const auto pixels = decode_region(decoder, motion, whole, ColorMode::kRgb);
    ASSERT_TRUE(pixels) << before.name;
    EXPECT_EQ(*pixels, *fresh) << before.name;
    ASSERT_TRUE(decode_region(decoder, encode(before), {0, 0, 1, 1}, ColorMode::kRgb));
    EXPECT_FALSE(decode_region(decoder, no_quantisation, whole, ColorMode::kRgb)) << before.name;
  }
}

TEST(JpegDecoder, EndlessScansAreRefused) {
  EncodedBytes bytes = encode({.width = 16, .height = 16, .channels = 1, .h = 1, .v = 1, .progressive = true});
  const std::ptrdiff_t first = position_of(bytes, 0xDA);
  const std::ptrdiff_t next = position_of(bytes, 0xC4, first);
  const EncodedBytes scan(bytes.begin() + first, bytes.begin() + next);
  EncodedBytes many(bytes.begin(), bytes.begin() + first);
  for (int i = 0; i < 2000; ++i) many.insert(many.end(), scan.begin(), scan.end());
  many.insert(many.end(), bytes.begin() + first, bytes.end());
  EXPECT_NE(error_of(many).find("more scans"), std::string::npos) << error_of(many);
}

TEST(JpegDecoder, RefusesKindsByTheirNames) {
  const EncodedBytes plain = encode({.h = 1, .v = 1});
  const auto frame = static_cast<std::size_t>(position_of(plain, 0xC0));
  const auto error_with = [&](std::size_t at, int value) {
    EncodedBytes bytes = plain;
    bytes[frame + at] = static_cast<std::byte>(value);
    return error_of(bytes);
  };
  const std::string prefix = "cannot decode this JPEG: ";
  EXPECT_EQ(error_with(4, 12), prefix +
                                   "JPEG of 12 bits per sample is not supported: write a PNG with 16 "
                                   "bits, or a JPEG with 8");
  for (const auto& [marker, name] : {std::pair{0xC3, "lossless JPEG"},
                                     {0xCB, "lossless JPEG with arithmetic coding"},
                                     {0xC5, "hierarchical JPEG"},
                                     {0xCE, "hierarchical JPEG with arithmetic coding"}})
    EXPECT_TRUE(error_with(1, marker).starts_with(prefix + name + " is not supported: write it as"))
        << error_with(1, marker);
}

}  // namespace
}  // namespace feedline::decode
