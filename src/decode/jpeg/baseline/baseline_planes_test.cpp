// SPDX-License-Identifier: Apache-2.0

// Tests regions that are decoded to planes: full-size samples must equal libjpeg's, and reduced samples must equal
// those computed from libjpeg's coefficients.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "decode/jpeg/baseline/baseline_fixture.h"
#include "decode/jpeg/baseline/planes_fixture.h"

namespace feedline::decode::baseline {
namespace {

// Returns libjpeg's samples before upsampling and colour conversion.
memory::Planes raw_samples(const EncodedBytes& bytes) {
  memory::Planes all;
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.raw_data_out = TRUE;
  jpeg_start_decompress(&jpeg);
  all.count = jpeg.num_components;
  const int rows_at_once = jpeg.max_v_samp_factor * DCTSIZE;
  const int mcu_rows = (static_cast<int>(jpeg.image_height) + rows_at_once - 1) / rows_at_once;
  for (int c = 0; c < all.count; ++c) {
    const jpeg_component_info& info = jpeg.comp_info[c];
    EXPECT_TRUE(all.plane[c].samples.resize(static_cast<int>(info.width_in_blocks + 1) * DCTSIZE,
                                            mcu_rows * info.v_samp_factor * DCTSIZE, 1));
  }
  for (int row = 0; row < mcu_rows; ++row) {
    JSAMPROW rows[kMaxComponents][2 * DCTSIZE];
    JSAMPARRAY arrays[kMaxComponents];
    for (int c = 0; c < all.count; ++c) {
      const int height = jpeg.comp_info[c].v_samp_factor * DCTSIZE;
      for (int y = 0; y < height; ++y) rows[c][y] = all.plane[c].samples.row(row * height + y);
      arrays[c] = rows[c];
    }
    jpeg_read_raw_data(&jpeg, arrays, static_cast<JDIMENSION>(rows_at_once));
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return all;
}

// Computes the whole image, reduced by a factor of `by`, from the coefficients that libjpeg reads.
memory::Planes reduced_samples(const EncodedBytes& bytes, int by) {
  memory::Planes all;
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jvirt_barray_ptr* const arrays = jpeg_read_coefficients(&jpeg);
  all.count = jpeg.num_components;
  const int side = kBlockSide / by, reduction = std::bit_width(static_cast<unsigned>(by)) - 1;
  for (int c = 0; c < all.count; ++c) {
    const jpeg_component_info& info = jpeg.comp_info[c];
    memory::PixelBuffer& out = all.plane[c].samples;
    const int columns = static_cast<int>(info.width_in_blocks), rows = static_cast<int>(info.height_in_blocks);
    EXPECT_TRUE(out.resize(columns * side, rows * side, 1));
    for (int row = 0; row < rows; ++row) {
      const JBLOCKARRAY blocks = (*jpeg.mem->access_virt_barray)(reinterpret_cast<j_common_ptr>(&jpeg), arrays[c],
                                                                 static_cast<JDIMENSION>(row), 1, FALSE);
      for (int column = 0; column < columns; ++column)
        reduced_dct_of_block(blocks[0][column], kBlockSide, jpeg.quant_tbl_ptrs[info.quant_tbl_no]->quantval, reduction,
                             out.row(row * side) + column * side, out.stride());
    }
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return all;
}

std::vector<JpegKind> kinds() {
  std::vector<JpegKind> all;
  for (const int restart : {0, 3})
    for (const bool optimised : {false, true}) {
      all.push_back({.width = 301, .height = 147, .restart = restart, .optimised = optimised});
      all.push_back({.width = 149, .height = 83, .h = 2, .v = 1, .restart = restart, .quality = 60});
      all.push_back({.width = 149, .height = 83, .h = 1, .v = 1, .quality = 95, .optimised = optimised});
      all.push_back({.width = 77, .height = 130, .channels = 1, .h = 1, .v = 1, .restart = restart});
    }
  return all;
}

std::vector<memory::Coarseness> all_coarseness() {
  std::vector<memory::Coarseness> all;
  for (const int brightness : {1, 2, 4, 8, 16})
    for (const int colour : {1, 2, 4, 8, 16}) all.push_back({brightness, colour});
  return all;
}

// Expects that the samples of a region equal those in the `whole` image.
void expect_samples(const memory::Plane& plane, const memory::Plane& whole, const Box& region) {
  const Box needed = samples_of(plane, region);
  ASSERT_TRUE(lies_inside(needed, plane.samples));
  for (int y = needed.top; y < needed.top + needed.height; ++y) {
    const std::uint8_t* const there = whole.samples.row(plane.y.first + y) + plane.x.first;
    ASSERT_TRUE(std::equal(there + needed.left, there + needed.left + needed.width, plane.samples.row(y) + needed.left))
        << "row " << y << " of a plane reduced by 2^" << plane.x.shift;
  }
}

class BaselinePlanesVariant : public testing::TestWithParam<const Kernels*> {};

TEST_P(BaselinePlanesVariant, FullSizeIsWhatLibjpegUpsamples) {
  BaselineDecoder ours(*GetParam());
  for (const JpegKind& kind : kinds()) {
    const EncodedBytes bytes = encode(kind);
    const ReadHeader header(bytes);
    const memory::Planes expected = raw_samples(bytes);
    for (const Box& region : regions_of(kind.width, kind.height)) {
      memory::Planes planes;
      ASSERT_TRUE(ours.decode_planes(*header.frame(), region, ColorMode::kRgb, {1, 1}, planes));
      ASSERT_EQ(planes.count, kind.channels);
      for (int c = 0; c < planes.count; ++c) {
        memory::Plane& plane = planes.plane[c];
        EXPECT_EQ(plane.x.halved, c > 0 && kind.h == 2);
        EXPECT_EQ(plane.y.halved, c > 0 && kind.v == 2);
        const Box needed = samples_of(plane, region);
        ASSERT_TRUE(lies_inside(needed, plane.samples));
        for (int y = needed.top; y < needed.top + needed.height; ++y) {
          const std::uint8_t* const there = expected.plane[c].samples.row(plane.y.first + y) + plane.x.first;
          ASSERT_TRUE(
              std::equal(there + needed.left, there + needed.left + needed.width, plane.samples.row(y) + needed.left))
              << kind.width << " x " << kind.height << ", component " << c << ", row " << y;
        }
      }
    }
  }
}

TEST_P(BaselinePlanesVariant, SmallerOnesAreMadeOfTheFilesCoefficients) {
  BaselineDecoder ours(*GetParam());
  for (const JpegKind& kind : kinds()) {
    const EncodedBytes bytes = encode(kind);
    const ReadHeader header(bytes);
    const Box region{kind.width / 3, kind.height / 4, kind.width / 2, kind.height / 2};
    for (const int by : {2, 4, 8}) {
      const memory::Planes expected = reduced_samples(bytes, by);
      for (const memory::Coarseness& most : all_coarseness())
        for (const ColorMode mode : {ColorMode::kRgb, ColorMode::kL}) {
          memory::Planes planes;
          ASSERT_TRUE(ours.decode_planes(*header.frame(), region, mode, most, planes));
          ASSERT_EQ(planes.count, mode == ColorMode::kL ? 1 : kind.channels);
          for (int c = 0; c < planes.count; ++c) {
            memory::Plane& plane = planes.plane[c];
            const int limit = c == 0 ? most.brightness : most.colour;
            EXPECT_TRUE((1 << plane.x.shift) * (plane.x.halved ? 2 : 1) <= limit || plane.x.shift == 0);
            if (1 << plane.x.shift == by) expect_samples(plane, expected.plane[c], region);
          }
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BaselinePlanesVariant, testing::ValuesIn(all_kernels()),
                         [](const auto& variant) { return std::string(variant.param->name); });

// A sample of a reduced plane must be close to the mean of the samples that it replaces.
TEST(BaselinePlanes, SmallerOnesShowTheSame) {
  BaselineDecoder decoder;
  const EncodedBytes bytes = encode({.width = 301, .height = 147, .quality = 90});
  const ReadHeader header(bytes);
  const Box all{0, 0, 301, 147};
  memory::Planes full, reduced;
  ASSERT_TRUE(decoder.decode_planes(*header.frame(), all, ColorMode::kRgb, {1, 2}, full));
  for (const int by : {2, 4, 8}) {
    ASSERT_TRUE(decoder.decode_planes(*header.frame(), all, ColorMode::kRgb, {by, 2 * by}, reduced));
    for (int c = 0; c < 3; ++c) {
      const int width = (c == 0 ? 301 : 150) / by, height = (c == 0 ? 147 : 73) / by;
      double difference = 0;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          double mean = 0;
          for (int i = 0; i < by * by; ++i)
            mean += full.plane[c].samples.row(y * by + i / by)[x * by + i % by] / static_cast<double>(by * by);
          difference += std::abs(mean - reduced.plane[c].samples.row(y)[x]) / (width * height);
        }
      EXPECT_LT(difference, 4) << "component " << c << " by " << by;
    }
  }
}

TEST(BaselinePlanes, DoubtfulFilesHaveNone) {
  JpegDecoder decoder;
  memory::Planes planes;
  const auto has = [&](const EncodedBytes& bytes) {
    EXPECT_TRUE(decoder.open(bytes));
    return decoder.decode_planes({0, 0, 100, 80}, ColorMode::kRgb, {4, 8}, planes);
  };
  EncodedBytes bytes = encode({.width = 149, .height = 83});
  EXPECT_TRUE(has(bytes));
  EncodedBytes progressive = encode({.width = 149, .height = 83, .progressive = true});
  EXPECT_TRUE(has(progressive));
  progressive.resize(progressive.size() * 2 / 3);
  EXPECT_FALSE(has(progressive));
  bytes.resize(bytes.size() * 2 / 3);
  EXPECT_FALSE(has(bytes));
  memory::PixelBuffer out;  // and are still libjpeg's
  ASSERT_TRUE(out.resize(100, 80, 3));
  const auto result = decoder.decode({0, 0, 100, 80}, ColorMode::kRgb, out);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("truncated"), std::string::npos) << result.error().what;
}

// Data from an image that was decoded at a reduced size must not appear in the next image.
TEST(BaselinePlanes, LeaveNoTrace) {
  BaselineDecoder decoder, fresh;
  const EncodedBytes bytes = encode({.width = 149, .height = 83});
  const ReadHeader header(bytes);
  const Box all{0, 0, 149, 83};
  memory::Planes planes;
  for (const ColorMode mode : {ColorMode::kRgb, ColorMode::kL})
    for (const int by : {2, 4, 8}) {
      ASSERT_TRUE(decoder.decode_planes(*header.frame(), all, mode, {by, by}, planes));
      EXPECT_EQ(decoded_by(decoder, *header.frame(), all, ColorMode::kRgb),
                decoded_by(fresh, *header.frame(), all, ColorMode::kRgb));
    }
}

}  // namespace
}  // namespace feedline::decode::baseline
