// SPDX-License-Identifier: Apache-2.0
#include "transform/targets/label_warp.h"

#include <array>
#include <cmath>

#include "transform/kernels/pixel_ops/elastic.h"
#include "transform/kernels/pixel_ops/geometry.h"

// Floating-point operations are in torch's order, which decides between labels at equal distances.

namespace feedline::transform {
namespace {

using Theta = std::array<float, 3>;  // factors of x and y, and the constant

struct GridPoint {
  float x, y;  // from -1 to 1
};

float product(float x, float y, const Theta& theta) { return x * theta[0] + y * theta[1] + theta[2]; }

LabelPoint nearest(const GridPoint& point, Size in) {
  const float x = std::nearbyint(pixel_coordinate(point.x, in.width)),
              y = std::nearbyint(pixel_coordinate(point.y, in.height));
  const bool inside = x >= 0 && y >= 0 && x < static_cast<float>(in.width) && y < static_cast<float>(in.height);
  return inside ? LabelPoint{static_cast<int>(x), static_cast<int>(y)} : LabelPoint{};
}

// from(x, y): returns the source of an output pixel.
template <typename From>
void find(Size out, std::vector<LabelPoint>& points, From from) {
  points.resize(static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height));
  LabelPoint* point = points.data();
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) *point++ = from(x, y);
}

Theta row_of(const AffineMatrix& matrix, std::size_t row, int side) {
  const float half = static_cast<float>(0.5 * side);
  Theta theta;
  for (std::size_t i = 0; i < 3; ++i) theta[i] = static_cast<float>(matrix[3 * row + i]) / half;
  return theta;
}

// `matrix` is relative to the centre of the image.
void find_by(const AffineMatrix& matrix, Size in, Size out, std::vector<LabelPoint>& points) {
  const Theta to_x = row_of(matrix, 0, in.width), to_y = row_of(matrix, 1, in.height);
  const auto left = static_cast<float>((1.0 - out.width) * 0.5), top = static_cast<float>((1.0 - out.height) * 0.5);
  find(out, points, [&](int x, int y) {
    const float column = left + static_cast<float>(x), row = top + static_cast<float>(y);
    return nearest({product(column, row, to_x), product(column, row, to_y)}, in);
  });
}

Point from_middle(const std::optional<Point>& center, Size image) {
  if (!center) return {0, 0};
  return {(*center)[0] - image.width * 0.5, (*center)[1] - image.height * 0.5};
}

struct Finder {
  Size in;
  ElasticScratch& scratch;
  std::vector<LabelPoint>& points;

  void operator()(const AffineWarp& w) const {
    const Point center = from_middle(w.center, in);
    find_by(inverse_affine_matrix(center, w.angle, w.translate, w.scale, w.shear), in, in, points);
  }
  void operator()(const RotationWarp& w) const {
    using Kind = RotationPlan::Kind;
    const RotationPlan plan = plan_rotation(in, w.angle, w.expand, w.center);
    const int right = in.width - 1, bottom = in.height - 1;
    if (plan.kind == Kind::kCopy) return find(plan.out, points, [](int x, int y) { return LabelPoint{x, y}; });
    if (plan.kind == Kind::kHalf)
      return find(plan.out, points, [=](int x, int y) { return LabelPoint{right - x, bottom - y}; });
    if (plan.kind == Kind::kQuarter)
      return find(plan.out, points, [=](int x, int y) { return LabelPoint{right - y, x}; });
    if (plan.kind == Kind::kThreeQuarters)
      return find(plan.out, points, [=](int x, int y) { return LabelPoint{y, bottom - x}; });
    // torch rotates by the angle's remainder
    const double angle = std::fmod(std::fmod(w.angle, 360.0) + 360.0, 360.0);
    find_by(inverse_affine_matrix(from_middle(w.center, in), -angle, {0, 0}, 1, {0, 0}), in, plan.out, points);
  }
  void operator()(const PerspectiveWarp& w) const {
    const auto c = perspective_coefficients(w.start, w.end);
    const auto row = [&](std::size_t i, int side) {
      const float half = static_cast<float>(0.5 * side);
      return Theta{static_cast<float>(c[i]) / half, static_cast<float>(c[i + 1]) / half,
                   static_cast<float>(c[i + 2]) / half};
    };
    const Theta to_x = row(0, in.width), to_y = row(3, in.height);
    const Theta below{static_cast<float>(c[6]), static_cast<float>(c[7]), 1};
    find(in, points, [&](int x, int y) {
      const float column = static_cast<float>(x) + 0.5F, line = static_cast<float>(y) + 0.5F;
      const float divisor = product(column, line, below);
      return nearest({product(column, line, to_x) / divisor - 1, product(column, line, to_y) / divisor - 1}, in);
    });
  }
  void operator()(const ElasticWarp& w) const {
    const auto displacement = elastic_displacement(w, in, scratch);
    const float* dx = displacement.data();
    const float* dy = dx + displacement.size() / 2;
    find(in, points, [&](int x, int y) {
      return nearest({grid_coordinate(x, in.width) + *dx++, grid_coordinate(y, in.height) + *dy++}, in);
    });
  }
};

}  // namespace

void find_labels(const Warp& warp, Size in, ElasticScratch& scratch, std::vector<LabelPoint>& points) {
  std::visit(Finder{in, scratch, points}, warp.parameters);
}

}  // namespace feedline::transform
