// SPDX-License-Identifier: Apache-2.0
#include "decode/foreign/foreign_decoder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "decode/image_formats.h"

namespace feedline::decode {
namespace {

using namespace std::string_view_literals;

// Decodes any input as an image of one fixed size whose pixels encode their position.
class MadeImages final : public ForeignImages {
 public:
  static constexpr int kWidth = 7, kHeight = 5;

  Result<Opened> open(std::span<const std::byte> bytes, bool applies_exif) const override {
    ++opened;
    turned = applies_exif;
    if (bytes.size() < 8) return decode_error("too short for it");
    return Opened{"MADE", width, kHeight, held};
  }
  Result<void> decode(const Opened& one, const Box& region, ColorMode mode, std::uint8_t* out,
                      std::size_t stride) const override {
    EXPECT_EQ(one.image, held);
    const int channels = channels_of(mode);
    for (int y = 0; y < region.height; ++y)
      for (int x = 0; x < region.width * channels; ++x)
        out[static_cast<std::size_t>(y) * stride + static_cast<std::size_t>(x)] =
            pixel(region.left + x / channels, region.top + y, x % channels);
    return {};
  }
  static std::uint8_t pixel(int x, int y, int channel) { return static_cast<std::uint8_t>(100 * channel + 10 * y + x); }

  int width = kWidth;
  const std::shared_ptr<void> held = std::make_shared<int>(1);
  mutable std::atomic<int> opened{0};
  mutable std::atomic<bool> turned{false};
};

class ForeignDecoderTest : public testing::Test {
 protected:
  ~ForeignDecoderTest() override { read_foreign_images_by(nullptr); }
  static std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
  const std::shared_ptr<MadeImages> images = std::make_shared<MadeImages>();
  ImageDecoder decoder;
};

constexpr std::string_view kGif = "GIF89a and so on"sv;

TEST_F(ForeignDecoderTest, NobodyIsAskedBeforeSomebodyIsThere) {
  const auto none = decoder.open(bytes_of(kGif));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "GIF images are not supported");
}

TEST_F(ForeignDecoderTest, RegionsArePixelsOfTheLibrary) {
  read_foreign_images_by(images);
  const auto before = foreign_images_decoded()["MADE"];
  for (const ColorMode mode : {ColorMode::kRgb, ColorMode::kL})
    for (const Box& box : {Box{0, 0, MadeImages::kWidth, MadeImages::kHeight}, Box{2, 1, 3, 4}}) {
      const auto header = decoder.open(bytes_of(kGif));
      ASSERT_TRUE(header);
      EXPECT_EQ(header->format, &image_format("gif"));
      EXPECT_EQ(decoder.kind(), "made");
      EXPECT_EQ(header->width, MadeImages::kWidth);
      EXPECT_EQ(header->height, MadeImages::kHeight);
      EXPECT_FALSE(images->turned);
      memory::PixelBuffer out;
      ASSERT_TRUE(decoder.decode(box, mode, out));
      for (int y = 0; y < box.height; ++y)
        for (int x = 0; x < box.width * channels_of(mode); ++x)
          EXPECT_EQ(out.row(y)[x],
                    MadeImages::pixel(box.left + x / channels_of(mode), box.top + y, x % channels_of(mode)));
      EXPECT_EQ(images->held.use_count(), 1) << "is let go of";
    }
  EXPECT_EQ(foreign_images_decoded()["MADE"], before + 4);
  ASSERT_TRUE(decoder.open(bytes_of(kGif), true));
  EXPECT_TRUE(images->turned);
}

TEST_F(ForeignDecoderTest, IsAskedAboutImagesAlone) {
  read_foreign_images_by(images);
  const std::string_view asked[] = {"BM and so on"sv,
                                    "II*\0 and so on"sv,
                                    "MM\0* and so on"sv,
                                    "P6 7 5 255 ..."sv,
                                    "P5\n7 5 255 ..."sv,
                                    "Pf\n7 5\n-1.0\n..."sv,
                                    "\0\0\0\x1C"
                                    "ftypavis1234"sv};
  for (const std::string_view one : asked) EXPECT_TRUE(decoder.open(bytes_of(one))) << one;
  EXPECT_EQ(images->opened, static_cast<int>(std::size(asked)));
  for (const std::string_view other : {"%PDF and so on"sv, "P7 is a text"sv, "Pictures of cats"sv, ""sv, "P6"sv,
                                       "\0\0\0\x1C"
                                       "ftypisom1234"sv})
    EXPECT_FALSE(decoder.open(bytes_of(other))) << other;
  EXPECT_EQ(images->opened, static_cast<int>(std::size(asked)));
}

TEST_F(ForeignDecoderTest, ItsErrorsAndAbsurdSizesAreErrors) {
  read_foreign_images_by(images);
  const auto refused = decoder.open(bytes_of("GIF89a"sv));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "GIF image: too short for it");
  images->width = 1 << 30;
  EXPECT_FALSE(decoder.open(bytes_of(kGif)));
  images->width = 0;
  EXPECT_FALSE(decoder.open(bytes_of(kGif)));
}

}  // namespace
}  // namespace feedline::decode
