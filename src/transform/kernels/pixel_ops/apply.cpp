// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/apply.h"

#include <string>
#include <type_traits>

#include "base/check.h"
#include "transform/kernels/colour.h"
#include "transform/kernels/pixel_ops/elastic.h"
#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/kernels/pixel_ops/erase.h"
#include "transform/kernels/pixel_ops/geometry.h"
#include "transform/kernels/pixel_ops/tables.h"

namespace feedline {

std::string_view name_of(const PixelOperation& operation) {
  static constexpr std::string_view kNames[] = {"autocontrast",  "equalize",   "invert",   "posterize",   "solarize",
                                                "solarize_add",  "brightness", "contrast", "saturation",  "sharpness",
                                                "hue",           "grayscale",  "affine",   "perspective", "rotate",
                                                "gaussian_blur", "erase",      "elastic",  "pillow_blur"};
  static_assert(std::size(kNames) == std::variant_size_v<PixelOperation>);
  return kNames[operation.index()];
}

}  // namespace feedline

namespace feedline::transform {
namespace {

using memory::PixelBuffer;
using memory::PixelView;

constexpr double kMostRadius = 1000;  // wider than any image; sums of such a box fit in 32 bits

// Checks the parameters.
struct Check {
  const PixelView& in;

  Result<void> operator()(const pixel_op::Posterize& o) const {
    if (o.bits >= 0 && o.bits <= 8) return {};
    return config_error("posterize: bits is " + std::to_string(o.bits) + "; it must be from 0 to 8");
  }
  Result<void> operator()(const pixel_op::Grayscale& o) const {
    if (o.channels == 1 || o.channels == 3) return {};
    return config_error("grayscale: " + std::to_string(o.channels) + " channels, not 1 or 3");
  }
  Result<void> operator()(const pixel_op::Affine& o) const { return transform("affine", o.interpolation, o.size); }
  Result<void> operator()(const pixel_op::Perspective& o) const {
    return transform("perspective", o.interpolation, o.size);
  }
  Result<void> operator()(const pixel_op::Rotate& o) const { return transform("rotate", o.interpolation, {}); }
  Result<void> operator()(const pixel_op::GaussianBlur& o) const {
    for (std::size_t i = 0; i < 2; ++i)
      if (o.kernel_size[i] < 1 || o.kernel_size[i] % 2 == 0 || !(o.sigma[i] > 0))
        return config_error("gaussian_blur: kernel_size must be odd and sigma above 0, got " +
                            std::to_string(o.kernel_size[i]) + " and " + std::to_string(o.sigma[i]));
    return {};
  }
  Result<void> operator()(const pixel_op::PillowBlur& o) const {
    if (o.radius >= 0 && o.radius <= kMostRadius) return {};
    return config_error("pillow_blur: radius is " + std::to_string(o.radius) + "; it must be from 0 to " +
                        std::to_string(static_cast<int>(kMostRadius)));
  }
  Result<void> operator()(const pixel_op::Erase& o) const {
    const Box& box = o.box;
    const bool inside = box.left >= 0 && box.top >= 0 && box.width >= 0 && box.height >= 0 && box.width <= in.width &&
                        box.height <= in.height && box.left <= in.width - box.width &&
                        box.top <= in.height - box.height;
    if (!inside) return config_error("erase: the box is not inside the image");
    const std::size_t bytes = static_cast<std::size_t>(box.width) * static_cast<std::size_t>(box.height) *
                              static_cast<std::size_t>(in.channels);
    if (!o.noise.empty() && o.noise.size() != bytes)
      return config_error("erase: " + std::to_string(o.noise.size()) + " bytes of noise do not match a box of " +
                          std::to_string(bytes));
    return {};
  }
  Result<void> operator()(const pixel_op::Elastic& o) const {
    if (o.interpolation != Interpolation::kNearest && o.interpolation != Interpolation::kBilinear &&
        o.interpolation != Interpolation::kBicubic)
      return config_error("elastic: interpolation must be nearest, bilinear or bicubic");
    const std::size_t needed = 2 * static_cast<std::size_t>(in.width) * static_cast<std::size_t>(in.height);
    if (o.displacement.size() == needed) return {};
    return config_error("elastic: a displacement of " + std::to_string(o.displacement.size()) + " numbers, not " +
                        std::to_string(needed));
  }
  template <typename Op>
  Result<void> operator()(const Op&) const {
    return {};
  }

  static Result<void> transform(const char* name, Interpolation interpolation, std::optional<Size> size) {
    if (interpolation > Interpolation::kBicubic || interpolation == Interpolation::kBox)
      return config_error(std::string(name) + ": interpolation must be nearest, bilinear or bicubic");
    if (size && (size->width < 1 || size->height < 1))
      return config_error(std::string(name) + ": every side must be at least 1");
    return {};
  }
};

struct Apply {
  const PixelView& in;
  PixelScratch& scratch;
  PixelBuffer& out;

  Result<void> operator()(const pixel_op::Autocontrast&) { return autocontrast(in, out); }
  Result<void> operator()(const pixel_op::Equalize&) { return equalize(in, out); }
  Result<void> operator()(const pixel_op::Invert&) { return invert(in, out); }
  Result<void> operator()(const pixel_op::Posterize& o) { return posterize(in, o.bits, out); }
  Result<void> operator()(const pixel_op::Solarize& o) { return solarize(in, o.threshold, out); }
  Result<void> operator()(const pixel_op::SolarizeAdd& o) { return solarize_add(in, o.add, o.threshold, out); }
  Result<void> operator()(const pixel_op::Brightness& o) { return adjust_brightness(in, o.factor, out); }
  Result<void> operator()(const pixel_op::Contrast& o) { return adjust_contrast(in, o.factor, out); }
  Result<void> operator()(const pixel_op::Saturation& o) { return adjust_saturation(in, o.factor, out); }
  Result<void> operator()(const pixel_op::Sharpness& o) { return adjust_sharpness(in, o.factor, scratch.row, out); }
  Result<void> operator()(const pixel_op::Hue& o) { return adjust_hue(in, o.factor, out); }
  Result<void> operator()(const pixel_op::Grayscale& o) { return grayscale(in, o.channels, out); }
  Result<void> operator()(const pixel_op::Affine& o) { return warp_affine(in, o, scratch.warp, out); }
  Result<void> operator()(const pixel_op::Perspective& o) { return warp_perspective(in, o, scratch.warp, out); }
  Result<void> operator()(const pixel_op::Rotate& o) { return rotate(in, o, scratch.warp, out); }
  Result<void> operator()(const pixel_op::GaussianBlur& o) { return gaussian_blur(in, o, scratch.blur, out); }
  Result<void> operator()(const pixel_op::PillowBlur& o) { return pillow_blur(in, o.radius, scratch.pillow_blur, out); }
  Result<void> operator()(const pixel_op::Erase& o) {
    FEEDLINE_CHECK_OK(copy(in, out));
    erase(o, out);
    return {};
  }
  Result<void> operator()(const pixel_op::Elastic& o) { return elastic(in, o, out); }
};

}  // namespace

Size size_after(const PixelOperation& operation, Size image) {
  if (const auto* affine = std::get_if<pixel_op::Affine>(&operation)) return affine->size.value_or(image);
  if (const auto* perspective = std::get_if<pixel_op::Perspective>(&operation))
    return perspective->size.value_or(image);
  if (const auto* rotation = std::get_if<pixel_op::Rotate>(&operation))
    return plan_rotation(image, rotation->angle, rotation->expand, rotation->center).out;
  return image;
}

bool works_in_place(const PixelOperation& operation) {
  return !(
      std::holds_alternative<pixel_op::Sharpness>(operation) ||
      std::holds_alternative<pixel_op::Grayscale>(operation) || std::holds_alternative<pixel_op::Affine>(operation) ||
      std::holds_alternative<pixel_op::Perspective>(operation) || std::holds_alternative<pixel_op::Rotate>(operation) ||
      std::holds_alternative<pixel_op::GaussianBlur>(operation) ||
      std::holds_alternative<pixel_op::PillowBlur>(operation) || std::holds_alternative<pixel_op::Elastic>(operation));
}

Result<void> apply(const PixelOperation& operation, const PixelView& in, PixelScratch& scratch, PixelBuffer& out) {
  FEEDLINE_CHECK(in.channels == 1 || in.channels == 3);
  FEEDLINE_CHECK_OK(std::visit(Check{in}, operation));
  return std::visit(Apply{in, scratch, out}, operation);
}

}  // namespace feedline::transform
