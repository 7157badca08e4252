// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/outline.h"

#include <gtest/gtest.h>

#include <limits>

namespace feedline::format {
namespace {

std::vector<std::byte> polygons(const std::vector<std::vector<double>>& all) {
  std::vector<std::byte> bytes;
  OutlineWriter(bytes).add(all.size());
  for (const auto& one : all) {
    std::vector<std::int32_t> fifths;
    for (const double value : one) fifths.push_back(to_fifths(value).value());
    OutlineWriter(bytes).add_polygon(fifths);
  }
  return bytes;
}

// Returns a mask as the digits 0 and 1, with a slash after each row.
std::string drawn(const Outline& outline, int height, int width) {
  OutlineScratch scratch;
  std::vector<std::uint8_t> plane(static_cast<std::size_t>(height * width) + 1);
  plane.back() = 7;
  const auto done = draw_outline(outline, height, width, scratch, plane.data());
  if (!done) return "error: " + done.error().what;
  EXPECT_EQ(plane.back(), 7) << "the byte after the plane";
  std::string text;
  for (int i = 0; i < height * width; ++i) {
    text += static_cast<char>('0' + plane[static_cast<std::size_t>(i)]);
    if ((i + 1) % width == 0) text += '/';
  }
  return text;
}

std::string drawn(const std::vector<std::vector<double>>& all, int height, int width) {
  const auto bytes = polygons(all);
  return drawn({OutlineKind::kPolygons, bytes}, height, width);
}

std::string drawn_runs(std::string_view text, std::uint32_t runs_height, std::uint32_t runs_width, int height,
                       int width) {
  std::vector<std::uint32_t> runs;
  if (const auto parsed = parse_runs(text, runs); !parsed) return parsed.error();
  if (const auto fits = check_runs(runs_height, runs_width, runs); !fits) return fits.error();
  std::vector<std::byte> bytes;
  OutlineWriter(bytes).add_runs(runs_height, runs_width, runs);
  return drawn({OutlineKind::kRuns, bytes}, height, width);
}

// Masks computed by pycocotools 2.0.11.
TEST(Outline, PolygonsCoverThePixelsThatCocosToolsSay) {
  EXPECT_EQ(drawn({{1.5, 1.5, 8.2, 2.1, 5.7, 7.9}}, 10, 12),
            "000000000000/000000000000/001111110000/000111110000/000011100000/000011100000/000001000000/000000000000/"
            "000000000000/000000000000/");
  EXPECT_EQ(drawn({{-3, -2, 20, -1, 6.3, 14.7}}, 10, 12),
            "111111111111/111111111111/111111111111/111111111111/011111111111/011111111111/001111111111/001111111111/"
            "000111111111/000011111110/")
      << "over all edges";
  EXPECT_EQ(drawn({{2, 2, 2, 2, 6, 2, 6, 6, 2, 6}}, 8, 8),
            "00000000/00000000/00111100/00111100/00111100/00111100/00000000/00000000/")
      << "a repeated point";
  EXPECT_EQ(drawn({{3.3, 1.2, 3.3, 1.2, 3.3, 1.2}}, 6, 9),
            "000000000/000000000/000000000/000000000/000000000/000000000/")
      << "the same point three times";
  EXPECT_EQ(drawn({{0.5, 0.5, 6.5, 8.5, 6.5, 0.5, 0.5, 8.5}, {2, 2, 4, 2, 4, 4, 2, 4}}, 9, 7),
            "0000000/0000001/0111011/0111111/0111111/0110111/0100011/0000001/0000000/");
  EXPECT_EQ(drawn({{1, 1, 11, 1, 11, 2, 1, 2}, {2, 2, 5, 2.4}}, 10, 12),
            "000000000000/011111111110/000000000000/000000000000/000000000000/000000000000/000000000000/000000000000/"
            "000000000000/000000000000/");
}

TEST(Outline, RunsAreReadAsCocosToolsWriteThem) {
  EXPECT_EQ(drawn_runs("f0191O2N1OO1NX1", 10, 12, 10, 12), drawn({{1.5, 1.5, 8.2, 2.1, 5.7, 7.9}}, 10, 12));
  EXPECT_EQ(drawn_runs("0462N2N1OV20", 10, 12, 10, 12), drawn({{-3, -2, 20, -1, 6.3, 14.7}}, 10, 12));
}

TEST(Outline, RunsThatDoNotFitAreRefused) {
  EXPECT_NE(drawn_runs("f0191O2N1OO1NX1", 10, 13, 10, 13).find("the runs cover 120 pixels"), std::string::npos);
  EXPECT_NE(drawn_runs("f0191O2N1OO1NX1", 10, 11, 10, 11).find("has 110"), std::string::npos);
  EXPECT_NE(drawn_runs("f0191O2N1OO1NX1", 10, 12, 12, 10).find("encode a mask of 12 x 10 pixels"), std::string::npos);
  EXPECT_NE(drawn_runs("f0191O2N1OO1NX", 10, 12, 10, 12).find("ends within a number"), std::string::npos);
  EXPECT_NE(drawn_runs("f0 ", 10, 12, 10, 12).find("an invalid character"), std::string::npos);
  EXPECT_NE(drawn_runs("oooooooooo0", 10, 12, 10, 12).find("too large"), std::string::npos);
  EXPECT_NE(drawn_runs("O", 10, 12, 10, 12).find("negative"), std::string::npos);
}

TEST(Outline, CoordinatesThatNoImageHasAreNoNumbers) {
  EXPECT_EQ(to_fifths(1.5), 8);
  EXPECT_EQ(to_fifths(-3), -14) << "towards zero, as COCO's tools round";
  EXPECT_FALSE(to_fifths(65536.0));
  EXPECT_TRUE(to_fifths(65535.0));
  EXPECT_FALSE(to_fifths(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(to_fifths(-std::numeric_limits<double>::infinity()));
}

TEST(Outline, BytesThatAreDamagedAreAnError) {
  const auto bytes = polygons({{1, 1, 5, 1, 5, 5}, {2, 2, 3, 2, 3, 3}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Outline cut{OutlineKind::kPolygons, std::span(bytes).first(size)};
    EXPECT_NE(drawn(cut, 8, 8).find("damaged"), std::string::npos) << size;
  }
  std::vector<std::byte> runs;
  OutlineWriter(runs).add_runs(2, 2, std::vector<std::uint32_t>{1, 4});
  EXPECT_NE(drawn({OutlineKind::kRuns, runs}, 2, 2).find("damaged"), std::string::npos) << "past the end of the mask";
  std::vector<std::byte> far;
  OutlineWriter(far).add(1);
  OutlineWriter(far).add_polygon(std::vector<std::int32_t>{0, 0, 2 * kMostFifths, 0, 0, 5});
  EXPECT_NE(drawn({OutlineKind::kPolygons, far}, 2, 2).find("damaged"), std::string::npos) << "too far off";
}

TEST(Outline, PolygonsThatTakeForEverToDrawAreRefused) {
  std::vector<double> long_one;
  for (int i = 0; i < 400; ++i)
    long_one.insert(long_one.end(), {i % 2 == 0 ? -65000. : 65000., static_cast<double>(i)});
  EXPECT_NE(drawn({long_one}, 8, 8).find("too long"), std::string::npos);
}

}  // namespace
}  // namespace feedline::format
