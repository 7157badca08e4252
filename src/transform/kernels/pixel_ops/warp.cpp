// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/warp.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/kernels/pixel_ops/geometry.h"
#include "transform/kernels/pixel_ops/nearest.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

void nearest(const memory::PixelView& in, const double* xs, const double* ys, int count, const std::uint8_t* fill,
             std::uint8_t* out) {
  const auto bytes = static_cast<std::size_t>(in.channels);
  for (int x = 0; x < count; ++x, out += bytes) {
    const bool inside = xs[x] >= 0.0 && xs[x] < in.width && ys[x] >= 0.0 && ys[x] < in.height;
    std::memcpy(out, inside ? in.row(static_cast<int>(ys[x])) + static_cast<int>(xs[x]) * in.channels : fill, bytes);
  }
}

PixelKernels::Sample sampler(Interpolation interpolation, const PixelKernels& kernels) {
  FEEDLINE_CHECK(interpolation != Interpolation::kBox && interpolation <= Interpolation::kBicubic);
  if (interpolation == Interpolation::kNearest) return nearest;
  return interpolation == Interpolation::kBilinear ? kernels.bilinear : kernels.bicubic;
}

// For each row, computes the source positions, and then the pixels.
template <typename Places>
Result<void> warp(const memory::PixelView& in, Size size, Interpolation interpolation, const Colour& fill,
                  Places points, WarpScratch& scratch, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(size.width, size.height, in.channels));
  scratch.xs.resize(static_cast<std::size_t>(size.width));
  scratch.ys.resize(static_cast<std::size_t>(size.width));
  const auto sample = sampler(interpolation, *active_kernels().pixels);
  for (int y = 0; y < size.height; ++y) {
    points(y, scratch.xs.data(), scratch.ys.data());
    sample(in, scratch.xs.data(), scratch.ys.data(), size.width, fill.data(), out.row(y));
  }
  return {};
}

// A counterclockwise quarter turn moves the last column to the first row.
void turn_quarter(const memory::PixelView& in, bool clockwise, memory::PixelBuffer& out) {
  const auto bytes = static_cast<std::size_t>(in.channels);
  const std::ptrdiff_t step =
      clockwise ? -static_cast<std::ptrdiff_t>(in.stride) : static_cast<std::ptrdiff_t>(in.stride);
  for (int y = 0; y < in.width; ++y) {
    const int column = clockwise ? y : in.width - 1 - y;
    const std::uint8_t* from = in.row(clockwise ? in.height - 1 : 0) + column * in.channels;
    std::uint8_t* to = out.row(y);
    for (int x = 0; x < in.height; ++x, from += step, to += bytes) std::memcpy(to, from, bytes);
  }
}

void turn_half(const memory::PixelView& in, memory::PixelBuffer& out) {
  for (int y = 0; y < in.height; ++y) {
    const std::uint8_t* from = in.row(in.height - 1 - y) + (in.width - 1) * in.channels;
    std::uint8_t* to = out.row(y);
    for (int x = 0; x < in.width; ++x, from -= in.channels)
      for (int c = 0; c < in.channels; ++c) *to++ = from[c];
  }
}

}  // namespace

Result<void> warp_affine(const memory::PixelView& in, const pixel_op::Affine& affine, WarpScratch& scratch,
                         memory::PixelBuffer& out) {
  const Size size = affine.size.value_or(Size{in.height, in.width});
  if (affine.interpolation == Interpolation::kNearest) {
    FEEDLINE_CHECK_OK(out.resize(size.width, size.height, in.channels));
    affine_nearest(in, affine.matrix, affine.fill, scratch.columns, out);
    return {};
  }
  const auto points = [&](int y, double* xs, double* ys) {
    active_kernels().pixels->affine_points(affine.matrix.data(), y, size.width, xs, ys);
  };
  return warp(in, size, affine.interpolation, affine.fill, points, scratch, out);
}

Result<void> warp_perspective(const memory::PixelView& in, const pixel_op::Perspective& perspective,
                              WarpScratch& scratch, memory::PixelBuffer& out) {
  const Size size = perspective.size.value_or(Size{in.height, in.width});
  const auto points = [&](int y, double* xs, double* ys) {
    active_kernels().pixels->perspective_points(perspective.coefficients.data(), y, size.width, xs, ys);
  };
  return warp(in, size, perspective.interpolation, perspective.fill, points, scratch, out);
}

Result<void> rotate(const memory::PixelView& in, const pixel_op::Rotate& rotation, WarpScratch& scratch,
                    memory::PixelBuffer& out) {
  using Kind = RotationPlan::Kind;
  const RotationPlan plan = plan_rotation({in.height, in.width}, rotation.angle, rotation.expand, rotation.center);
  if (plan.kind == Kind::kCopy) return copy(in, out);
  if (plan.kind == Kind::kAffine)
    return warp_affine(in, {plan.matrix, rotation.interpolation, rotation.fill, plan.out}, scratch, out);
  FEEDLINE_CHECK_OK(out.resize(plan.out.width, plan.out.height, in.channels));
  if (plan.kind == Kind::kHalf) {
    turn_half(in, out);
  } else {
    turn_quarter(in, plan.kind == Kind::kThreeQuarters, out);
  }
  return {};
}

}  // namespace feedline::transform
