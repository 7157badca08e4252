// SPDX-License-Identifier: Apache-2.0
#include "transform/volume/volume_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <type_traits>

#include "memory/number.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {

Matrix3 product(const Matrix3& a, const Matrix3& b) {
  Matrix3 result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k) result[i][j] += a[i][k] * b[k][j];
  return result;
}

std::string in_brackets(const std::vector<int>& numbers) {
  std::string text = "(";
  for (const int number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + ")";
}

SamplingGrid grid_of(const VolumeGeometry& geometry, std::span<const std::int64_t, 3> origin,
                     std::span<const std::int64_t, 3> size) {
  SamplingGrid grid{.steps = geometry.matrix};
  for (std::size_t i = 0; i < 3; ++i) {
    grid.first[i] = static_cast<double>(origin[i]) + static_cast<double>(size[i] - 1) / 2;
    for (std::size_t j = 0; j < 3; ++j) grid.first[i] -= geometry.matrix[i][j] * static_cast<double>(size[j] - 1) / 2;
  }
  return grid;
}

namespace {

// Calls use(T) with the type of a dtype; float16 is not supported.
template <typename Use>
void with_type(DType dtype, Use use) {
  const std::array<std::byte, 8> zero{};
  memory::with_number(dtype, zero, [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>) use(T{});
  });
}

// Narrows the indexes k of a row, begin <= k < end, to those for which low <= first + k * step <= high; to none if
// low > high.
void narrow(double first, double step, double low, double high, std::int64_t& begin, std::int64_t& end) {
  if (step == 0 || low > high) {
    if (!(first >= low && first <= high)) end = begin;
    return;
  }
  double from = (low - first) / step, to = (high - first) / step;
  if (from > to) std::swap(from, to);
  const double most = 1e15;
  const std::int64_t limit = end;
  begin = std::min(std::max(begin, static_cast<std::int64_t>(std::ceil(std::clamp(from, -most, most)))), limit);
  end = std::max(std::min(end, static_cast<std::int64_t>(std::floor(std::clamp(to, -most, most))) + 1), begin);
}

template <typename T>
float at_or(const VolumeBox& box, std::int64_t x, std::int64_t y, std::int64_t z, float fill) {
  if (x < 0 || y < 0 || z < 0 || x >= box.size[0] || y >= box.size[1] || z >= box.size[2]) return fill;
  return static_cast<float>(reinterpret_cast<const T*>(box.data)[x * box.plane + y * box.row + z]);
}

template <typename T>
float linear_at_border(const VolumeBox& box, std::array<float, 3> p, float fill) {
  std::array<std::int64_t, 3> i;
  std::array<float, 3> w;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const float floor = std::floor(p[axis]);
    i[axis] = static_cast<std::int64_t>(floor);
    w[axis] = p[axis] - floor;
  }
  float sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const int a = corner >> 2, b = corner >> 1 & 1, c = corner & 1;
    const float weight = (a ? w[0] : 1 - w[0]) * (b ? w[1] : 1 - w[1]) * (c ? w[2] : 1 - w[2]);
    if (weight != 0) sum += weight * at_or<T>(box, i[0] + a, i[1] + b, i[2] + c, fill);
  }
  return sum;
}

template <typename T>
void linear_inside(const T* volume, const LinearRow& points, bool is_large, float* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (!is_large) return active_kernels().linear_row_float32(volume, points, out);
  } else if constexpr (std::is_same_v<T, std::int16_t>) {
    if (!is_large) return active_kernels().linear_row_int16(volume, points, out);
  }
  linear_row(volume, points, out);
}

// The indexes k of a row of a patch whose points are inside the volume, begin <= k < end, and those whose points have a
// neighbour in it, touch_begin <= k < touch_end.
struct RowPart {
  std::array<double, 3> first{};  // the position of k = 0 in the box
  std::int64_t begin = 0, end = 0, touch_begin = 0, touch_end = 0;
};

// Calls row(i, j), which returns a RowPart, once for each row of a patch, and use(part, i, j, from, to) for its indexes
// from <= k < to. The order is that of small cubes, because a plane, or a row, of the patch crosses more pages of a
// rotated volume than the caches hold.
template <typename Row, typename Use>
void for_cubes(std::span<const std::int64_t, 3> size, Row row, Use use) {
  constexpr std::int64_t kRows = 16, kLength = 32;
  std::array<RowPart, kRows * kRows> parts;
  for (std::int64_t i0 = 0; i0 < size[0]; i0 += kRows)
    for (std::int64_t j0 = 0; j0 < size[1]; j0 += kRows) {
      const std::int64_t i1 = std::min(i0 + kRows, size[0]), j1 = std::min(j0 + kRows, size[1]);
      const auto part = [&](std::int64_t i, std::int64_t j) -> RowPart& {
        return parts[static_cast<std::size_t>((i - i0) * kRows + j - j0)];
      };
      for (std::int64_t i = i0; i < i1; ++i)
        for (std::int64_t j = j0; j < j1; ++j) part(i, j) = row(i, j);
      for (std::int64_t k = 0; k < size[2]; k += kLength)
        for (std::int64_t i = i0; i < i1; ++i)
          for (std::int64_t j = j0; j < j1; ++j) use(part(i, j), i, j, k, std::min(k + kLength, size[2]));
    }
}

template <typename T>
void linear(const VolumeBox& box, const SamplingGrid& grid, float fill, std::span<const std::int64_t, 3> size,
            float* patch) {
  const T* const data = reinterpret_cast<const T*>(box.data);
  const bool is_large = box.size[0] * box.plane >= kMostGathered;
  std::array<float, 3> step;
  for (std::size_t axis = 0; axis < 3; ++axis) step[axis] = static_cast<float>(grid.steps[axis][2]);
  const auto row = [&](std::int64_t i, std::int64_t j) {
    RowPart part{.end = size[2], .touch_end = size[2]};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      part.first[axis] = grid.first[axis] - static_cast<double>(box.begin[axis]) +
                         static_cast<double>(i) * grid.steps[axis][0] + static_cast<double>(j) * grid.steps[axis][1];
      const auto last = static_cast<double>(box.size[axis] - 1);
      const double reach = std::abs(part.first[axis]) + std::abs(grid.steps[axis][2]) * static_cast<double>(size[2]);
      // for the rounding of floats: first, step and their sums are each wrong by at most reach / 2^24
      const double margin = std::max(1e-3, reach / (1 << 22));
      narrow(part.first[axis], grid.steps[axis][2], margin, last - margin, part.begin, part.end);
      narrow(part.first[axis], grid.steps[axis][2], -1 - margin, last + 1 + margin, part.touch_begin, part.touch_end);
    }
    if (part.begin >= part.end) part.begin = part.end = part.touch_begin;
    part.end = std::max(part.end, part.touch_begin);
    part.touch_end = std::max(part.touch_end, part.end);
    return part;
  };
  for_cubes(size, row, [&](const RowPart& part, std::int64_t i, std::int64_t j, std::int64_t from, std::int64_t to) {
    float* const out = patch + (i * size[1] + j) * size[2];
    std::array<float, 3> first;
    for (std::size_t axis = 0; axis < 3; ++axis) first[axis] = static_cast<float>(part.first[axis]);
    const auto within = [&](std::int64_t k) { return std::clamp(k, from, to); };
    const auto border = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) {
        std::array<float, 3> p;
        for (std::size_t axis = 0; axis < 3; ++axis) p[axis] = first[axis] + static_cast<float>(k) * step[axis];
        out[k] = linear_at_border<T>(box, p, fill);
      }
    };
    const std::int64_t touched = within(part.touch_begin), begin = within(part.begin), end = within(part.end),
                       untouched = within(part.touch_end);
    std::fill(out + from, out + touched, fill);
    border(touched, begin);
    linear_inside(data, {box.plane, box.row, first, step, begin, end}, is_large, out);
    border(end, untouched);
    std::fill(out + untouched, out + to, fill);
  });
}

template <typename T>
void nearest(const VolumeBox& box, const SamplingGrid& grid, std::span<const std::int64_t, 3> size, T* patch) {
  const T* const data = reinterpret_cast<const T*>(box.data);
  const auto row = [&](std::int64_t i, std::int64_t j) {
    RowPart part{.end = size[2]};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      part.first[axis] = grid.first[axis] - static_cast<double>(box.begin[axis]) +
                         static_cast<double>(i) * grid.steps[axis][0] + static_cast<double>(j) * grid.steps[axis][1] +
                         0.5;
      narrow(part.first[axis], grid.steps[axis][2], 0, std::nextafter(static_cast<double>(box.size[axis]), 0.0),
             part.begin, part.end);
    }
    return part;
  };
  for_cubes(size, row, [&](const RowPart& part, std::int64_t i, std::int64_t j, std::int64_t from, std::int64_t to) {
    T* const out = patch + (i * size[1] + j) * size[2];
    const std::int64_t begin = std::clamp(part.begin, from, to), end = std::clamp(part.end, begin, to);
    std::fill(out + from, out + begin, T{});
    for (std::int64_t k = begin; k < end; ++k) {
      std::array<std::int64_t, 3> at;
      for (std::size_t axis = 0; axis < 3; ++axis)
        at[axis] = std::clamp<std::int64_t>(
            static_cast<std::int64_t>(part.first[axis] + static_cast<double>(k) * grid.steps[axis][2]), 0,
            box.size[axis] - 1);
      out[k] = data[at[0] * box.plane + at[1] * box.row + at[2]];
    }
    std::fill(out + end, out + to, T{});
  });
}

// The weights of a Gaussian at 0, 1, ... voxels.
std::vector<float> gaussian(double sigma) {
  const auto radius = static_cast<std::int64_t>(std::ceil(4 * sigma));
  std::vector<float> weights;
  double total = 0;
  for (std::int64_t r = 0; r <= radius; ++r) {
    const double x = static_cast<double>(r) / sigma, weight = std::exp(-x * x / 2);
    weights.push_back(static_cast<float>(weight));
    total += r == 0 ? weight : 2 * weight;
  }
  for (float& weight : weights) weight = static_cast<float>(static_cast<double>(weight) / total);
  return weights;
}

// Blurs along one axis. outer, inner: the number of lines before and after it in memory.
void blur_axis(const float* in, float* out, std::int64_t outer, std::int64_t count, std::int64_t inner,
               std::span<const float> weights) {
  const auto radius = static_cast<std::int64_t>(weights.size()) - 1;
  const auto mirrored = [count](std::int64_t i) {
    const std::int64_t period = 2 * count;
    i = (i % period + period) % period;
    return i < count ? i : period - 1 - i;
  };
  if (inner == 1) {
    for (std::int64_t o = 0; o < outer; ++o, in += count, out += count) {
      for (std::int64_t i = 0; i < count; ++i) out[i] = weights[0] * in[i];
      for (std::int64_t r = 1; r <= radius; ++r) {
        const float weight = weights[static_cast<std::size_t>(r)];
        const std::int64_t begin = std::min(r, count), end = std::max(count - r, begin);
        const auto at_border = [&](std::int64_t i) { out[i] += weight * (in[mirrored(i - r)] + in[mirrored(i + r)]); };
        for (std::int64_t i = 0; i < begin; ++i) at_border(i);
        for (std::int64_t i = begin; i < end; ++i) out[i] += weight * (in[i - r] + in[i + r]);
        for (std::int64_t i = end; i < count; ++i) at_border(i);
      }
    }
    return;
  }
  for (std::int64_t o = 0; o < outer; ++o, in += count * inner, out += count * inner)
    for (std::int64_t i = 0; i < count; ++i) {
      float* const to = out + i * inner;
      const float* const middle = in + i * inner;
      for (std::int64_t k = 0; k < inner; ++k) to[k] = weights[0] * middle[k];
      for (std::int64_t r = 1; r <= radius; ++r) {
        const float* const a = in + mirrored(i - r) * inner;
        const float* const b = in + mirrored(i + r) * inner;
        const float weight = weights[static_cast<std::size_t>(r)];
        for (std::int64_t k = 0; k < inner; ++k) to[k] += weight * (a[k] + b[k]);
      }
    }
}

}  // namespace

void sample_linear(const VolumeBox& box, const SamplingGrid& grid, float fill, std::span<const std::int64_t, 3> size,
                   float* out) {
  with_type(box.dtype, [&]<typename T>(T) { linear<T>(box, grid, fill, size, out); });
}

void sample_nearest(const VolumeBox& box, const SamplingGrid& grid, std::span<const std::int64_t, 3> size,
                    std::byte* out) {
  with_type(box.dtype, [&]<typename T>(T) { nearest<T>(box, grid, size, reinterpret_cast<T*>(out)); });
}

void to_floats(DType dtype, const std::byte* in, std::size_t count, float* out) {
  with_type(dtype, [&]<typename T>(T value) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(&value, in + i * sizeof(T), sizeof(T));
      out[i] = static_cast<float>(value);
    }
  });
}

std::pair<double, double> mean_and_std(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;  // separate sums, so that the compiler uses vectors
  std::array<double, kLanes> sums{}, squares{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      sums[lane] += value;
      squares[lane] += value * value;
    }
  for (std::size_t lane = 0; i < values.size(); ++i, ++lane) {
    const auto value = static_cast<double>(values[i]);
    sums[lane] += value;
    squares[lane] += value * value;
  }
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(sums.begin(), sums.end(), 0.0) / count;
  const double square = std::accumulate(squares.begin(), squares.end(), 0.0) / count;
  return {mean, std::sqrt(std::max(0.0, square - mean * mean))};
}

std::pair<float, float> least_and_most(std::span<const float> values) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> least, most;
  least.fill(values[0]);
  most.fill(values[0]);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      least[lane] = std::min(least[lane], values[i + lane]);
      most[lane] = std::max(most[lane], values[i + lane]);
    }
  for (; i < values.size(); ++i) {
    least[0] = std::min(least[0], values[i]);
    most[0] = std::max(most[0], values[i]);
  }
  return {std::ranges::min(least), std::ranges::max(most)};
}

void rescale(std::span<float> values, float from, float factor, float to) {
  for (float& value : values) value = (value - from) * factor + to;
}

void clamp(std::span<float> values, float least, float most) {
  for (float& value : values) value = std::clamp(value, least, most);
}

void raise_to_power(std::span<float> values, float sign, float low, float range, float gamma) {
  const float inverse = 1 / std::max(range, 1e-7F);
  for (float& value : values)
    value = sign * (std::pow(std::max((sign * value - low) * inverse, 0.0F), gamma) * range + low);
}

void stretch_axis(const float* in, float* out, std::int64_t outer, std::int64_t from, std::int64_t to,
                  std::int64_t inner, double first, double step) {
  struct Position {
    std::int64_t low, high;
    float weight;
  };
  std::vector<Position> positions;
  for (std::int64_t i = 0; i < to; ++i) {
    const double position = std::clamp(first + step * static_cast<double>(i), 0.0, static_cast<double>(from - 1));
    const auto low = static_cast<std::int64_t>(position);
    positions.push_back({low, std::min(low + 1, from - 1), static_cast<float>(position - static_cast<double>(low))});
  }
  for (std::int64_t o = 0; o < outer; ++o)
    for (const auto& [low, high, weight] : positions) {
      const float* const a = in + (o * from + low) * inner;
      const float* const b = in + (o * from + high) * inner;
      for (std::int64_t k = 0; k < inner; ++k) out[k] = a[k] + weight * (b[k] - a[k]);
      out += inner;
    }
}

void blur(VolumeValues values, const std::array<double, 3>& sigma, VolumeWorkspace& workspace) {
  workspace.first.resize(values.data.size());
  float* in = values.data.data();
  float* out = workspace.first.data();
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(values.data.size());
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t count = values.size[axis];
    inner /= count;
    if (sigma[axis] > 0) {
      blur_axis(in, out, outer, count, inner, gaussian(sigma[axis]));
      std::swap(in, out);
    }
    outer *= count;
  }
  if (in != values.data.data()) std::copy(in, in + values.data.size(), values.data.data());
}

double draw_around_one(base::Random& random, const Range& range) {
  if (range.low < 1 && range.high > 1) {
    const bool is_below = random.uniform() < 0.5;
    return is_below ? random.uniform(range.low, 1) : random.uniform(1, range.high);
  }
  return random.uniform(range.low, range.high);
}

void add_noise(std::span<float> values, double deviation, base::Random random) {
  const auto scale = static_cast<float>(deviation);
  for (std::size_t i = 0; i < values.size(); i += 2) {  // Box and Muller
    const float u = (static_cast<float>(random.bits() >> 8U) + 1) * 0x1p-24F;
    const float angle = static_cast<float>(random.bits() >> 8U) * (0x1p-24F * 2 * std::numbers::pi_v<float>);
    const float radius = scale * std::sqrt(-2 * std::log(u));
    values[i] += radius * std::cos(angle);
    if (i + 1 < values.size()) values[i + 1] += radius * std::sin(angle);
  }
}

}  // namespace feedline::transform
