// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/geometry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

namespace feedline {
namespace {

double radians(double degrees) { return degrees * (std::numbers::pi / 180.0); }

// Python's %, whose result has the sign of the divisor.
double python_modulo(double value, double divisor) {
  const double rest = std::fmod(value, divisor);
  return rest < 0.0 ? rest + divisor : rest;
}

// Python's round(value, 15): returns the double nearest to the value with 15 decimals.
double rounded_to_15_digits(double value) {
  char text[64];
  const auto written = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 15);
  std::from_chars(text, written.ptr, value);
  return value;
}

Point moved(const AffineMatrix& m, double x, double y) {
  return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
}

AffineMatrix rotation(double angle, Point center) {
  angle = -radians(angle);
  const double cosine = rounded_to_15_digits(std::cos(angle)), sine = rounded_to_15_digits(std::sin(angle));
  AffineMatrix matrix{cosine, sine, 0.0, rounded_to_15_digits(-std::sin(angle)), cosine, 0.0};
  const Point shift = moved(matrix, -center[0], -center[1]);
  matrix[2] = shift[0] + center[0];
  matrix[5] = shift[1] + center[1];
  return matrix;
}

// Enlarges the output until the corners of the image fit.
Size expanded(Size image, AffineMatrix& matrix) {
  double low[2], high[2];
  const double w = image.width, h = image.height;
  const Point corners[] = {moved(matrix, 0, 0), moved(matrix, w, 0), moved(matrix, w, h), moved(matrix, 0, h)};
  for (std::size_t i = 0; i < 2; ++i) {
    low[i] = std::min({corners[0][i], corners[1][i], corners[2][i], corners[3][i]});
    high[i] = std::max({corners[0][i], corners[1][i], corners[2][i], corners[3][i]});
  }
  const Size out{static_cast<int>(std::ceil(high[1]) - std::floor(low[1])),
                 static_cast<int>(std::ceil(high[0]) - std::floor(low[0]))};
  const Point shift = moved(matrix, -(out.width - image.width) / 2.0, -(out.height - image.height) / 2.0);
  matrix[2] = shift[0];
  matrix[5] = shift[1];
  return out;
}

// Solves eight equations with eight unknowns by elimination, with the largest pivot in each column. Uses long double,
// so that the result is nearly exact after rounding to float, as with torch's least squares.
using Row = std::array<long double, 9>;
std::array<long double, 8> solved(std::array<Row, 8> rows) {
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t best = i;
    for (std::size_t r = i + 1; r < 8; ++r)
      if (std::abs(rows[r][i]) > std::abs(rows[best][i])) best = r;
    std::swap(rows[i], rows[best]);
    for (std::size_t r = 0; r < 8; ++r) {
      if (r == i) continue;
      const long double share = rows[r][i] / rows[i][i];
      for (std::size_t c = i; c < 9; ++c) rows[r][c] -= share * rows[i][c];
    }
  }
  std::array<long double, 8> values;
  for (std::size_t i = 0; i < 8; ++i) values[i] = rows[i][8] / rows[i][i];
  return values;
}

}  // namespace

AffineMatrix inverse_affine_matrix(Point center, double angle, Point translate, double scale, Point shear) {
  const double turn = radians(angle), sx = radians(shear[0]), sy = radians(shear[1]);
  const double a = std::cos(turn - sy) / std::cos(sy);
  const double b = -std::cos(turn - sy) * std::tan(sx) / std::cos(sy) - std::sin(turn);
  const double c = std::sin(turn - sy) / std::cos(sy);
  const double d = -std::sin(turn - sy) * std::tan(sx) / std::cos(sy) + std::cos(turn);
  AffineMatrix matrix{d / scale, -b / scale, 0.0 / scale, -c / scale, a / scale, 0.0 / scale};
  const double x = -center[0] - translate[0], y = -center[1] - translate[1];
  matrix[2] += matrix[0] * x + matrix[1] * y;
  matrix[5] += matrix[3] * x + matrix[4] * y;
  matrix[2] += center[0];
  matrix[5] += center[1];
  return matrix;
}

std::array<double, 8> perspective_coefficients(std::span<const Point, 4> start, std::span<const Point, 4> end) {
  std::array<Row, 8> rows;
  for (std::size_t i = 0; i < 4; ++i) {
    const long double x = end[i][0], y = end[i][1], to_x = start[i][0], to_y = start[i][1];
    rows[2 * i] = {x, y, 1, 0, 0, 0, -to_x * x, -to_x * y, to_x};
    rows[2 * i + 1] = {0, 0, 0, x, y, 1, -to_y * x, -to_y * y, to_y};
  }
  const auto exact = solved(rows);
  std::array<double, 8> coefficients;
  for (std::size_t i = 0; i < 8; ++i) coefficients[i] = static_cast<float>(static_cast<double>(exact[i]));
  return coefficients;
}

namespace transform {

RotationPlan plan_rotation(Size image, double angle, bool expand, std::optional<Point> center) {
  using Kind = RotationPlan::Kind;
  angle = python_modulo(angle, 360.0);
  const Size turned{image.width, image.height};
  if (!center) {
    if (angle == 0.0) return {Kind::kCopy, {}, image};
    if (angle == 180.0) return {Kind::kHalf, {}, image};
    if ((angle == 90.0 || angle == 270.0) && (expand || image.width == image.height))
      return {angle == 90.0 ? Kind::kQuarter : Kind::kThreeQuarters, {}, turned};
  }
  RotationPlan plan{Kind::kAffine, {}, image};
  plan.matrix = rotation(angle, center.value_or(Point{image.width / 2.0, image.height / 2.0}));
  if (expand) plan.out = expanded(image, plan.matrix);
  return plan;
}

}  // namespace transform
}  // namespace feedline
