// SPDX-License-Identifier: Apache-2.0
#include "transform/targets/target_warp.h"

#include "transform/kernels/pixel_ops/elastic.h"

namespace feedline::transform {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Like torch.matmul with (x, y, 1).
float product(std::span<const float, 3> row, FloatPoint point) {
  return (point[0] * row[0] + point[1] * row[1]) + row[2];
}

std::array<float, 6> floats(const std::array<double, 6>& matrix) {
  std::array<float, 6> out;
  std::ranges::transform(matrix, out.begin(), [](double value) { return static_cast<float>(value); });
  return out;
}

// Returns torchvision's matrix for F.affine, from input to output pixels.
std::array<double, 6> forward_matrix(const AffineWarp& affine, Size image) {
  const auto [center_x, center_y] = affine.center.value_or(Point{image.width * 0.5, image.height * 0.5});
  const auto radians = [](double degrees) { return degrees * (kPi / 180.0); };
  const double rot = radians(affine.angle), sx = radians(affine.shear[0]), sy = radians(affine.shear[1]);
  const double a = std::cos(rot - sy) / std::cos(sy);
  const double b = -std::cos(rot - sy) * std::tan(sx) / std::cos(sy) - std::sin(rot);
  const double c = std::sin(rot - sy) / std::cos(sy);
  const double d = -std::sin(rot - sy) * std::tan(sx) / std::cos(sy) + std::cos(rot);
  std::array<double, 6> matrix{a * affine.scale, b * affine.scale, 0, c * affine.scale, d * affine.scale, 0};
  matrix[2] += matrix[0] * -center_x + matrix[1] * -center_y;
  matrix[5] += matrix[3] * -center_x + matrix[4] * -center_y;
  matrix[2] += center_x + affine.translate[0];
  matrix[5] += center_y + affine.translate[1];
  return matrix;
}

// The inverse of the coefficients with which images are warped.
struct Inverse {
  std::array<float, 6> above;
  std::array<float, 3> below;
};
Inverse inverse_of(const PerspectiveWarp& warp) {
  const auto c = perspective_coefficients(warp.start, warp.end);
  const double denominator = c[0] * c[4] - c[1] * c[3];
  const auto share = [denominator](double value) { return static_cast<float>(value / denominator); };
  return {{share(c[4] - c[5] * c[7]), share(-c[1] + c[2] * c[7]), share(c[1] * c[5] - c[2] * c[4]),
           share(-c[3] + c[5] * c[6]), share(c[0] - c[2] * c[6]), share(-c[0] * c[5] + c[2] * c[3])},
          {share(-c[4] * c[6] + c[3] * c[7]), share(-c[0] * c[7] + c[1] * c[6]), 1.0f}};
}

// Returns the smallest x and y of the whole image's corners after the warp.
FloatPoint least_of(const std::array<float, 6>& matrix, Size image) {
  const auto width = static_cast<float>(image.width), height = static_cast<float>(image.height);
  FloatPoint least{std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  for (const FloatPoint& corner : {FloatPoint{0, 0}, {0, height}, {width, height}, {width, 0}}) {
    least[0] = std::min(least[0], product(std::span(matrix).first<3>(), corner));
    least[1] = std::min(least[1], product(std::span(matrix).last<3>(), corner));
  }
  return least;
}

// Returns the extent of the moved corners in one direction, rounded as in torchvision.
int extent_of(std::span<const float, 3> row, float half_width, float half_height, float half) {
  constexpr float kTolerance = 1e-4f, kInverse = 1e4f;
  const std::array<FloatPoint, 4> corners{
      {{-half_width, -half_height}, {-half_width, half_height}, {half_width, half_height}, {half_width, -half_height}}};
  float least = std::numeric_limits<float>::infinity(), most = -least;
  for (const FloatPoint& corner : corners) {
    least = std::min(least, product(row, corner));
    most = std::max(most, product(row, corner));
  }
  const float end = std::ceil(std::trunc((most + half) * kInverse) * kTolerance);
  const float begin = std::floor(std::trunc((least + half) * kInverse) * kTolerance);
  return static_cast<int>(end - begin);
}

// torchvision's _compute_affine_output_size.
Size size_around(const std::array<float, 6>& matrix, Size image) {
  const float half_width = 0.5f * static_cast<float>(image.width),
              half_height = 0.5f * static_cast<float>(image.height);
  return {extent_of(std::span(matrix).last<3>(), half_width, half_height, half_height),
          extent_of(std::span(matrix).first<3>(), half_width, half_height, half_width)};
}

// Like torch.aminmax, propagates NaN.
std::array<float, 2> least_and_most(float a, float b, float c, float d) {
  const float sum = a + b + c + d;
  if (std::isnan(sum) && (std::isnan(a) || std::isnan(b) || std::isnan(c) || std::isnan(d)))
    return {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::quiet_NaN()};
  return {std::min({a, b, c, d}), std::max({a, b, c, d})};
}

}  // namespace

PointMap::PointMap(const Warp& warp, Size image, ElasticScratch& scratch) {
  if (const auto* const affine = std::get_if<AffineWarp>(&warp.parameters)) {
    map_ = Linear{floats(forward_matrix(*affine, image))};
  } else if (const auto* const rotation = std::get_if<RotationWarp>(&warp.parameters)) {
    const Linear map{floats(forward_matrix({.angle = -rotation->angle, .center = rotation->center}, image))};
    map_ = map;
    if (rotation->expand) origin_ = least_of(map.matrix, image);
  } else if (const auto* const perspective = std::get_if<PerspectiveWarp>(&warp.parameters)) {
    const Inverse inverse = inverse_of(*perspective);
    map_ = Projective{inverse.above, inverse.below};
    converts_first_ = false;
  } else {
    map_ = Elastic{elastic_displacement(std::get<ElasticWarp>(warp.parameters), image, scratch), image};
    converts_first_ = false;
  }
}

FloatPoint PointMap::operator()(FloatPoint point, bool corner) const {
  return std::visit([&](const auto& map) { return moved(map, point, corner); }, map_);
}

FloatPoint PointMap::moved(const Linear& map, FloatPoint point, bool /*corner*/) const {
  return {product(std::span(map.matrix).first<3>(), point), product(std::span(map.matrix).last<3>(), point)};
}

FloatPoint PointMap::moved(const Projective& map, FloatPoint point, bool /*corner*/) const {
  const float below = product(map.below, point);
  return {product(std::span(map.above).first<3>(), point) / below,
          product(std::span(map.above).last<3>(), point) / below};
}

// Uses the negated displacement as the inverse, as torchvision does.
FloatPoint PointMap::moved(const Elastic& map, FloatPoint point, bool corner) const {
  const auto pixel_of = [corner](float value, int side) {
    const auto whole = converted<std::int64_t>(corner ? std::ceil(value) : value);
    return static_cast<int>(std::clamp<std::int64_t>(whole, 0, side - 1));
  };
  const int x = pixel_of(point[0], map.size.width), y = pixel_of(point[1], map.size.height);
  const std::size_t width = static_cast<std::size_t>(map.size.width);
  const std::size_t at = static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x);
  const std::size_t pixels = width * static_cast<std::size_t>(map.size.height);
  const auto moved = [](int i, int side, float shift) {
    return (grid_coordinate(i, side) - shift + 1) * (0.5f * static_cast<float>(side)) - 0.5f;
  };
  return {moved(x, map.size.width, map.displacement[at]), moved(y, map.size.height, map.displacement[pixels + at])};
}

Size canvas_after(const Warp& warp, Size image) {
  const auto* const rotation = std::get_if<RotationWarp>(&warp.parameters);
  if (rotation == nullptr || !rotation->expand) return size_after(warp, image);
  const Point center = rotation->center.value_or(Point{image.width * 0.5, image.height * 0.5});
  return size_around(floats(inverse_affine_matrix(center, -rotation->angle, {}, 1, {})), image);
}

Corners<float> moved_corners(const PointMap& map, const Corners<float>& corners) {
  const FloatPoint a = map({corners[0], corners[1]}, true), b = map({corners[2], corners[1]}, true);
  const FloatPoint c = map({corners[2], corners[3]}, true), d = map({corners[0], corners[3]}, true);
  const auto [left, right] = least_and_most(a[0], b[0], c[0], d[0]);
  const auto [top, bottom] = least_and_most(a[1], b[1], c[1], d[1]);
  const auto [x, y] = map.origin();
  return {left - x, top - y, right - x, bottom - y};
}

}  // namespace feedline::transform
