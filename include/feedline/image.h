// SPDX-License-Identifier: Apache-2.0
#pragma once

// Single images through the engine's own decoder and kernels, without a dataset.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "feedline/pixel_operation.h"

namespace feedline {

// 8-bit pixels, contiguous rows without padding, channels interleaved.
struct Image {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<std::uint8_t> pixels;
};

struct ImageInfo {
  std::string format;  // "jpeg", "gif", ...: the name in image_formats(), or that of Pillow in lower case
  int width = 0;
  int height = 0;
};

// Reads only the header. kData: not an image that Feedline can decode.
Result<ImageInfo> image_info(std::span<const std::byte> encoded);
// Describes how an image is stored, whether or not it can be decoded.
struct ImageTraits {
  std::string format;               // the name in image_formats()
  int orientation = 1;              // EXIF orientation, 1 to 8; 1 is as stored, 0 is unknown
  std::vector<std::string> stored;  // the applicable subset of "progressive", "arithmetic coding", "lossless", "CMYK",
                                    // "palette", "interlaced", "12 bits", "16 bits", "32 bits", "floats"
};
// kData: not an image.
Result<ImageTraits> image_traits(std::span<const std::byte> encoded);
// The pixels of `region` (nullopt: all), as Pillow's Image.open().convert(mode).crop() returns them. kConfig: the
// region is not inside the image. kData: damaged. applies_exif: rotates the image according to its EXIF orientation
// first.
Result<Image> decode_image(std::span<const std::byte> encoded, std::optional<Box> region, ColorMode mode,
                           bool applies_exif = false);
// Pillow's Image.resize, antialiased except for kNearest. kConfig: a side of zero.
Result<Image> resize_image(const Image& image, Size size, Interpolation interpolation);
// One pixel operation. kConfig: a parameter out of range, or an image with neither 1 nor 3 channels.
Result<Image> apply_pixel_operation(const Image& image, const PixelOperation& operation);
// The displacements that elastic_transform, as operation `stream` of a list, adds to the pixel positions, as input for
// pixel_op::Elastic. For tests. kConfig: a side below 1.
Result<std::vector<float>> elastic_displacement(const op::ElasticTransform& elastic, Size size, std::uint64_t seed,
                                                std::uint64_t epoch, std::uint64_t sample, std::uint32_t stream);
// The CPU seconds of each of `runs` runs after a warm-up, for benchmarks.
Result<std::vector<double>> time_pixel_operation(const Image& image, const PixelOperation& operation, int runs);

// Rewrites a JPEG losslessly with a restart marker after every `interval` MCUs (0: an interval that suits the image's
// size), so that regions of it decode faster. nullopt: unchanged, as for other formats and JPEGs that gain nothing.
// kData: pixels are missing or damaged. kConfig: an invalid interval.
Result<std::optional<std::vector<std::byte>>> jpeg_with_restarts(std::span<const std::byte> encoded, int interval);

// Returns the kernels' instruction sets on this machine, best first, with "scalar" last; and sets the instruction set
// of the whole process ("" for the best). Do not set it while a loader runs.
std::vector<std::string> simd_variants();
std::string active_simd_variant();
Result<void> force_simd_variant(const std::string& name);

// Resizes like the given major version of Pillow, 10 to 13. Pillow 13 chooses the order of the two resize passes by the
// sizes, which changes some pixels by one level; up to 12 the horizontal pass was always first. Process-wide; 13 by
// default. Do not call it while a loader runs. kConfig: an unsupported version.
Result<void> follow_pillow(int major);

}  // namespace feedline
