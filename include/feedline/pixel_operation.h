// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pixel operations with fixed parameters on one image, such as those that an augmentation policy draws. Images have
// 8-bit pixels and 1 or 3 interleaved channels. The output equals that of the named Pillow function byte for byte.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "feedline/operation.h"

namespace feedline {

// One value per channel. Images with one channel use the first value.
using Colour = std::array<std::uint8_t, 3>;

namespace pixel_op {

struct Autocontrast {};  // ImageOps.autocontrast without a cutoff, per channel
struct Equalize {};      // ImageOps.equalize, per channel
struct Invert {};        // ImageOps.invert
// ImageOps.posterize: keeps the highest `bits` bits of each byte, 0 to 8. Unlike Pillow, accepts 0, which makes the
// image black.
struct Posterize {
  int bits = 8;
};
// ImageOps.solarize: inverts bytes that are at least `threshold`.
struct Solarize {
  double threshold = 128;
};
// timm's SolarizeAdd: adds `add` to bytes below `threshold`, up to 255.
struct SolarizeAdd {
  int add = 0;
  int threshold = 128;
};

// ImageEnhance.{Brightness, Contrast, Color, Sharpness}: 0 is the degenerate image, 1 the original, and larger factors
// enhance. Saturation does not change an image with one channel.
struct Brightness {
  double factor = 1;
};
struct Contrast {
  double factor = 1;
};
struct Saturation {
  double factor = 1;
};
struct Sharpness {
  double factor = 1;
};
// torchvision's adjust_hue for PIL images. `factor` is in turns of the colour circle. Images with one channel are
// unchanged.
struct Hue {
  double factor = 0;
};
// Image.convert("L"), stored as 1 channel or as 3 equal channels.
struct Grayscale {
  int channels = 1;
};

// Image.transform(size, AFFINE, matrix): the pixel at (x, y) is read from (a x + b y + c, d x + e y + f).
struct Affine {
  std::array<double, 6> matrix{1, 0, 0, 0, 1, 0};
  Interpolation interpolation = Interpolation::kNearest;  // not kBox
  Colour fill{};
  std::optional<Size> size;  // output size; nullopt: the input size
};
// Image.transform(size, PERSPECTIVE, coefficients): like Affine, with both coordinates divided by g x + h y + 1.
struct Perspective {
  std::array<double, 8> coefficients{1, 0, 0, 0, 1, 0, 0, 0};
  Interpolation interpolation = Interpolation::kBilinear;  // not kBox
  Colour fill{};
  std::optional<Size> size;
};
// Image.rotate: rotates counterclockwise by `angle` degrees around `center` (x, y), by default the centre of the image.
struct Rotate {
  double angle = 0;
  Interpolation interpolation = Interpolation::kNearest;  // not kBox
  bool expand = false;                                    // the output is enlarged to hold the whole rotated image
  std::optional<std::array<double, 2>> center;
  Colour fill{};
};

// torchvision v2's elastic for uint8 tensors. Results differ from torchvision's by at most one level, except that
// out-of-range bicubic sums are clamped instead of wrapped. The source position of a pixel is its x and y, normalised
// to [-1, 1], plus `displacement`.
struct Elastic {
  std::span<const float> displacement;                     // all of x, then all of y, row by row; must outlive the call
  Interpolation interpolation = Interpolation::kBilinear;  // or kNearest, kBicubic
  Colour fill{};
};

// torchvision v2's gaussian_blur for uint8 tensors. Results differ from torchvision's by at most one level, due to
// rounding of float32 sums. Sizes are odd; the order is x, y.
struct GaussianBlur {
  std::array<int, 2> kernel_size{3, 3};
  std::array<double, 2> sigma{1, 1};
};
// ImageFilter.GaussianBlur: three box blurs in each direction. 0 changes nothing.
struct PillowBlur {
  double radius = 0;  // the standard deviation of the Gaussian that the boxes approximate
};
// Overwrites the pixels of `box` with `value`, or with the rows of `noise` if `noise` is not empty.
struct Erase {
  Box box;
  Colour value{};
  std::span<const std::uint8_t> noise;  // box.height x box.width x channels bytes, which must outlive the call
};

}  // namespace pixel_op

using PixelOperation =
    std::variant<pixel_op::Autocontrast, pixel_op::Equalize, pixel_op::Invert, pixel_op::Posterize, pixel_op::Solarize,
                 pixel_op::SolarizeAdd, pixel_op::Brightness, pixel_op::Contrast, pixel_op::Saturation,
                 pixel_op::Sharpness, pixel_op::Hue, pixel_op::Grayscale, pixel_op::Affine, pixel_op::Perspective,
                 pixel_op::Rotate, pixel_op::GaussianBlur, pixel_op::Erase, pixel_op::Elastic, pixel_op::PillowBlur>;

std::string_view name_of(const PixelOperation& operation);  // "autocontrast"

using AffineMatrix = std::array<double, 6>;
using Point = std::array<double, 2>;  // x, y

// Returns the matrix that torchvision's F.affine passes to Pillow. The angle is in degrees clockwise, the shear in
// degrees, and the translation in pixels.
AffineMatrix inverse_affine_matrix(Point center, double angle, Point translate, double scale, Point shear);
// Returns the coefficients that torchvision's F.perspective passes to Pillow, computed in float32 as torchvision does.
// The coefficients map the corners `end` to the corners `start` (top left, top right, bottom right, bottom left). The
// coefficients are not finite if three corners are collinear.
std::array<double, 8> perspective_coefficients(std::span<const Point, 4> start, std::span<const Point, 4> end);

}  // namespace feedline
