// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes and transforms single images with the engine's own decoder and kernels, without a dataset.

#include <array>
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

// Reads only the header. Fails with kData if Feedline cannot decode the image.
Result<ImageInfo> image_info(std::span<const std::byte> encoded);
// Describes how an image is stored, whether or not it can be decoded.
struct ImageTraits {
  std::string format;               // the name in image_formats()
  int orientation = 1;              // EXIF orientation, 1 to 8; 1 is as stored, 0 is unknown
  std::vector<std::string> stored;  // the applicable subset of "progressive", "arithmetic coding", "lossless", "CMYK",
                                    // "palette", "interlaced", "12 bits", "16 bits", "32 bits", "floats"
};
// Fails with kData if the bytes are not an image.
Result<ImageTraits> image_traits(std::span<const std::byte> encoded);
// Returns the pixels of `region`, or of the whole image if `region` is nullopt, as Pillow's
// Image.open().convert(mode).crop() returns them. With applies_exif, first rotates the image according to its EXIF
// orientation. Fails with kConfig if the region is not inside the image, and with kData if the image is damaged.
Result<Image> decode_image(std::span<const std::byte> encoded, std::optional<Box> region, ColorMode mode,
                           bool applies_exif = false);
// Equals Pillow's Image.resize, with antialiasing except for kNearest. Fails with kConfig if a side is zero.
Result<Image> resize_image(const Image& image, Size size, Interpolation interpolation);
// A window of a resized image. Parts of the window that are outside of the resized image are black.
struct ImageWindow {
  Size resized;
  Box window;
};
// The input of a vision encoder, made of windows of one image.
struct EncoderInput {
  Size image;  // with the EXIF orientation applied
  Interpolation interpolation = Interpolation::kTorchBicubic;
  std::vector<ImageWindow> windows;  // in the order of the output
  // With patch 0, each window is stored as planes (3, height, width). Otherwise, its patches are rows of
  // (3, frames, patch, patch) values, with `frames` equal frames. The rows are ordered by blocks of merge x merge
  // patches, and within a block from left to right and top to bottom.
  int patch = 0;
  int merge = 1;
  int frames = 1;
  std::array<std::array<float, 256>, 3> values{};  // of each 8-bit value, per channel

  std::uint64_t size() const;  // number of values of the output
};
// Decodes an image to RGB with its EXIF orientation, and writes the encoder's input to `out`. Fails with kConfig if
// `input` is not valid or `out` does not have its size, and with kData if the image is damaged or has another size.
Result<void> write_encoder_input(std::span<const std::byte> encoded, const EncoderInput& input, std::span<float> out);
// Returns the size of an image with its EXIF orientation applied, from the header.
Result<Size> upright_size(std::span<const std::byte> encoded);
// Applies one pixel operation. Fails with kConfig if a parameter is out of range or the image has neither 1 nor 3
// channels.
Result<Image> apply_pixel_operation(const Image& image, const PixelOperation& operation);
// Returns the displacements that elastic_transform, as operation number `stream` of a dataset, adds to the pixel
// positions, as input for pixel_op::Elastic. For tests. Fails with kConfig if a side is below 1.
Result<std::vector<float>> elastic_displacement(const op::ElasticTransform& elastic, Size size, std::uint64_t seed,
                                                std::uint64_t epoch, std::uint64_t sample, std::uint32_t stream);
// Runs a pixel operation `runs` times after a warm-up, for benchmarks. Returns the CPU time of each run in seconds.
Result<std::vector<double>> time_pixel_operation(const Image& image, const PixelOperation& operation, int runs);

// Rewrites a JPEG losslessly with a restart marker after every `interval` MCUs, so that its regions can be decoded
// faster. With interval 0, the interval depends on the image's size. Returns nullopt for images that would not benefit
// and for other formats. Fails with kData if pixels are missing or damaged, and with kConfig if the interval is
// invalid.
Result<std::optional<std::vector<std::byte>>> jpeg_with_restarts(std::span<const std::byte> encoded, int interval);

// The instruction sets that the kernels can use on this machine, best first and "scalar" last. force_simd_variant()
// selects one for the whole process, or the best one if `name` is empty. Do not call force_simd_variant() while a
// loader runs.
std::vector<std::string> simd_variants();
std::string active_simd_variant();
Result<void> force_simd_variant(const std::string& name);

// Makes resizes in this process match the given major version of Pillow, 10 to 13; the default is 13. Pillow 13 chooses
// the order of the two resize passes by the image sizes, which changes some pixels by one level. Earlier versions begin
// with the horizontal pass, except that Pillow 12 begins with the vertical pass for images that are over 100 times as
// tall as wide and are reduced in height. Do not call follow_pillow() while a loader runs. Fails with kConfig if the
// version is not supported.
Result<void> follow_pillow(int major);

}  // namespace feedline
