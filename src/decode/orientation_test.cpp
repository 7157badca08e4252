// SPDX-License-Identifier: Apache-2.0
#include "decode/orientation.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "decode/decoder_contract.h"
#include "decode/jpeg/jpeg_fixture.h"

namespace feedline::decode {
namespace {

using namespace std::string_literals;

const JpegKind kPhoto{.name = "photo", .width = 61, .height = 47};

std::string u16(unsigned value, bool big_endian) {
  const char high = static_cast<char>(value >> 8), low = static_cast<char>(value);
  return big_endian ? std::string{high, low} : std::string{low, high};
}
std::string u32(unsigned value, bool big_endian) {
  const std::string high = u16(value >> 16, big_endian), low = u16(value & 0xFFFF, big_endian);
  return big_endian ? high + low : low + high;
}

struct Exif {
  unsigned orientation = 6;
  bool big_endian = false;
  unsigned type = 3, count = 1, tag = 0x0112;
};

// Returns a TIFF file whose first directory contains this entry after another one.
std::string tiff(const Exif& exif) {
  const bool big = exif.big_endian;
  const auto entry = [&](unsigned tag, unsigned type, unsigned count, const std::string& value) {
    return u16(tag, big) + u16(type, big) + u32(count, big) + value;
  };
  const std::string value =
      exif.type == 4 ? u32(exif.orientation, big) : u16(exif.orientation, big) + std::string(2, '\0');
  return (big ? "MM\0*"s : "II*\0"s) + u32(12, big) + "gap!" + u16(2, big) + entry(0x0100, 4, 1, u32(7, big)) +
         entry(exif.tag, exif.type, exif.count, value) + u32(0, big);
}

EncodedBytes bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::string segment(char marker, const std::string& payload) {
  return std::string("\xFF") + marker + u16(static_cast<unsigned>(payload.size() + 2), true) + payload;
}
// Inserts segments before all other segments of the JPEG.
EncodedBytes with_segments(const EncodedBytes& jpeg, const std::string& segments) {
  EncodedBytes file(jpeg.begin(), jpeg.begin() + 2);
  const EncodedBytes added = bytes_of(segments);
  file.insert(file.end(), added.begin(), added.end());
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}
std::string app1(const Exif& exif) { return segment('\xE1', "Exif\0\0"s + tiff(exif)); }

std::string chunk(const std::string& name, const std::string& payload) {
  return u32(static_cast<unsigned>(payload.size()), true) + name + payload + "crc!";
}
std::string riff(const std::string& name, const std::string& payload) {
  return name + u32(static_cast<unsigned>(payload.size()), false) + payload + std::string(payload.size() % 2, '\0');
}

Orientation in(std::string_view format, const std::string& file) {
  return stored_orientation(image_format(format), bytes_of(file));
}

TEST(Orientation, TurnsAsPillowDoes) {
  // exif_transpose of "abc" over "def", by orientation
  const std::vector<std::vector<std::string>> expected{{"abc", "def"},     {"cba", "fed"},     {"fed", "cba"},
                                                       {"def", "abc"},     {"ad", "be", "cf"}, {"da", "eb", "fc"},
                                                       {"fc", "eb", "da"}, {"cf", "be", "ad"}};
  for (const int channels : {1, 3})
    for (int number = 1; number <= 8; ++number) {
      const Orientation orientation = orientation_of(number);
      std::vector<std::uint8_t> stored;
      for (const char letter : "abcdef"s)
        for (int c = 0; c < channels; ++c) stored.push_back(static_cast<std::uint8_t>(letter + 32 * c));
      const memory::PixelView view{stored.data(), 3, 2, channels, 3 * static_cast<std::size_t>(channels)};
      memory::PixelBuffer out;
      ASSERT_TRUE(orientation.transposes ? out.resize(2, 3, channels) : out.resize(3, 2, channels));
      turn(orientation, view, out);
      for (int y = 0; y < out.height(); ++y)
        for (int x = 0; x < out.width() * channels; ++x)
          EXPECT_EQ(out.row(y)[x], expected[static_cast<std::size_t>(number - 1)][static_cast<std::size_t>(y)]
                                           [static_cast<std::size_t>(x / channels)] +
                                       32 * (x % channels))
              << number << ": " << x << ", " << y;
    }
  for (const int number : {0, 1, 9, -1, 65536}) EXPECT_TRUE(orientation_of(number).is_stored()) << number;
}

TEST(Orientation, IsFoundInJpegsPngsAndWebps) {
  for (const bool big_endian : {false, true})
    for (const unsigned type : {3u, 4u})
      for (unsigned number = 0; number <= 9; ++number) {
        const Exif exif{number, big_endian, type};
        const Orientation expected = orientation_of(static_cast<int>(number));
        const std::string other = segment('\xE0', "JFIF\0etc"s) + segment('\xE1', "http://ns.adobe.com/xap/1.0/\0"s);
        EXPECT_EQ(in("jpeg", "\xFF\xD8" + other + "\xFF\xFF" + app1(exif) + "\xFF\xDA"), expected);
        const std::string head = "\x89PNG\r\n\x1A\n" + chunk("IHDR", std::string(13, '\0'));
        EXPECT_EQ(in("png", head + chunk("eXIf", tiff(exif)) + chunk("IDAT", "x")), expected);
        EXPECT_EQ(in("png", head + chunk("IDAT", "x") + chunk("eXIf", "Exif\0\0"s + tiff(exif))), expected);
        const std::string webp = "RIFF" + u32(100, false) + "WEBP";
        const std::string body = riff("VP8 ", "odd") + riff("EXIF", tiff(exif));
        EXPECT_EQ(in("webp", webp + riff("VP8X", "\x08" + std::string(9, '\0')) + body), expected);
        EXPECT_TRUE(in("webp", webp + riff("VP8X", std::string(10, '\0')) + body).is_stored());
      }
}

TEST(Orientation, IsAsStoredWhereNothingSoundSaysOtherwise) {
  const auto of_exif = [](const Exif& exif) { return in("jpeg", "\xFF\xD8" + app1(exif) + "\xFF\xDA").is_stored(); };
  EXPECT_FALSE(of_exif({}));
  EXPECT_TRUE(of_exif({.type = 2}));
  EXPECT_TRUE(of_exif({.count = 2}));
  EXPECT_TRUE(of_exif({.tag = 0x0113}));
  EXPECT_TRUE(in("jpeg", "\xFF\xD8" + segment('\xDA', "") + app1({})).is_stored()) << "after the scan";
  EXPECT_TRUE(in("jpeg", "\xFF\xD8 " + app1({})).is_stored());
  EXPECT_TRUE(in("jpeg", "\xFF\xD8" + segment('\xE1', "Exif\0\0JUNK"s)).is_stored());
  EXPECT_TRUE(in("gif", tiff({})).is_stored()) << "its decoder applies the orientation";
}

// Sanitizers check that damaged files are not read out of bounds.
TEST(Orientation, DamagedFilesAreReadNoFurtherThanTheyGo) {
  const std::string whole[] = {
      "\xFF\xD8" + app1({}) + "\xFF\xDA", "\x89PNG\r\n\x1A\n" + chunk("eXIf", tiff({})),
      "RIFF" + u32(100, false) + "WEBP" + riff("VP8X", "\x08" + std::string(9, '\0')) + riff("EXIF", tiff({}))};
  const std::string_view formats[] = {"jpeg", "png", "webp"};
  for (std::size_t i = 0; i < std::size(whole); ++i) {
    ASSERT_EQ(in(formats[i], whole[i]), orientation_of(6));
    for (std::size_t cut = 0; cut < whole[i].size(); ++cut) (void)in(formats[i], whole[i].substr(0, cut));
    for (std::size_t at = 0; at < whole[i].size(); ++at)
      for (const char value : {'\0', '\x7F', '\xFF'}) {
        std::string damaged = whole[i];
        damaged[at] = value;
        (void)in(formats[i], damaged);
      }
  }
}

TEST(ImageDecoder, RegionsOfATurnedImageAreThoseOfAllOfIt) {
  const EncodedBytes plain = encode(kPhoto);
  const auto stored = decode_whole(plain);
  ASSERT_TRUE(stored);
  for (unsigned number = 1; number <= 8; ++number) {
    const EncodedBytes file = with_segments(plain, app1({.orientation = number, .big_endian = number % 2 == 0}));
    EXPECT_EQ(*decode_whole(file), *stored) << "not requested";
    const Orientation orientation = orientation_of(static_cast<int>(number));
    ImageDecoder decoder;
    const auto header = decoder.open(file, true);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->width, orientation.transposes ? kPhoto.height : kPhoto.width);
    EXPECT_EQ(header->height, orientation.transposes ? kPhoto.width : kPhoto.height);
    memory::PixelBuffer all, turned, part;
    ASSERT_TRUE(turned.resize(header->width, header->height, 3));
    turn(orientation, {stored->data(), kPhoto.width, kPhoto.height, 3, 3u * static_cast<std::size_t>(kPhoto.width)},
         turned);
    ASSERT_TRUE(decoder.decode({0, 0, header->width, header->height}, ColorMode::kRgb, all));
    const auto same_rows = [&](const memory::PixelBuffer& got, const Box& box) {
      for (int y = 0; y < box.height; ++y)
        if (std::memcmp(got.row(y), turned.row(box.top + y) + 3 * box.left, 3 * static_cast<std::size_t>(box.width)) !=
            0)
          return false;
      return got.width() == box.width && got.height() == box.height;
    };
    EXPECT_TRUE(same_rows(all, {0, 0, header->width, header->height})) << number;
    const Box box{5, 9, 30, 21};
    ASSERT_TRUE(decoder.open(file, true));
    ASSERT_TRUE(decoder.decode(box, ColorMode::kRgb, part));
    EXPECT_TRUE(same_rows(part, box)) << number;
    // alternating with an image that needs no rotation
    ImageDecoder other;
    memory::PixelBuffer first, second;
    ASSERT_TRUE(decoder.open(file, true));
    ASSERT_TRUE(other.open(plain, true));
    const auto both = ImageDecoder::decode_in_turn(decoder, {box, ColorMode::kRgb, &first}, other,
                                                   {{0, 0, 8, 8}, ColorMode::kRgb, &second});
    ASSERT_TRUE(both[0] && both[1]);
    EXPECT_TRUE(same_rows(first, box)) << number;
    ASSERT_TRUE(decoder.open(file, true));
    memory::Planes planes;
    EXPECT_TRUE(orientation.is_stored() || !decoder.decode_planes(box, ColorMode::kRgb, {2, 2}, planes)) << number;
  }
}

}  // namespace
}  // namespace feedline::decode
