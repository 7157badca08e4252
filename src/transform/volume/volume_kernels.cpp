// SPDX-License-Identifier: Apache-2.0
#include "transform/volume/volume_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <type_traits>

#include "memory/number.h"

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

// Narrows the indexes k of a row, begin <= k < end, to those for which low <= first + k * step <= high.
void narrow(double first, double step, double low, double high, std::int64_t& begin, std::int64_t& end) {
  if (step == 0) {
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

using Pair = float __attribute__((vector_size(8)));

// Two neighbours along z.
template <typename T>
Pair pair_at(const T* data) {
  if constexpr (std::is_same_v<T, float>) {
    Pair pair;
    std::memcpy(&pair, data, sizeof pair);
    return pair;
  } else {
    return Pair{static_cast<float>(data[0]), static_cast<float>(data[1])};
  }
}

template <typename T>
void linear_inside(const T* data, std::int64_t plane, std::int64_t row, std::array<float, 3> first,
                   std::array<float, 3> step, std::int64_t begin, std::int64_t end, float* out) {
  for (std::int64_t k = begin; k < end; ++k) {
    const auto t = static_cast<float>(k);
    const float px = first[0] + t * step[0], py = first[1] + t * step[1], pz = first[2] + t * step[2];
    const auto x = static_cast<std::int32_t>(px), y = static_cast<std::int32_t>(py), z = static_cast<std::int32_t>(pz);
    const float wx = px - static_cast<float>(x), wy = py - static_cast<float>(y), wz = pz - static_cast<float>(z);
    const T* const at = data + x * plane + y * row + z;
    const Pair near = pair_at(at), below = pair_at(at + row);
    const Pair next = pair_at(at + plane), far = pair_at(at + plane + row);
    const Pair a = near + wy * (below - near), b = next + wy * (far - next);
    const Pair c = a + wx * (b - a);
    out[k] = c[0] + wz * (c[1] - c[0]);
  }
}

// Calls use(i, j) for the first two indexes of all rows of a patch, in an order in which rows that follow each other
// read neighbouring voxels of a rotated volume: a plane of the patch crosses more of it than the caches hold.
template <typename Use>
void for_rows(std::span<const std::int64_t, 3> size, Use use) {
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t block = 0; block < size[1]; block += kBlock)
    for (std::int64_t i = 0; i < size[0]; ++i)
      for (std::int64_t j = block; j < std::min(block + kBlock, size[1]); ++j) use(i, j);
}

template <typename T>
void linear(const VolumeBox& box, const SamplingGrid& grid, float fill, std::span<const std::int64_t, 3> size,
            float* patch) {
  const T* const data = reinterpret_cast<const T*>(box.data);
  std::array<float, 3> step;
  for (std::size_t axis = 0; axis < 3; ++axis) step[axis] = static_cast<float>(grid.steps[axis][2]);
  for_rows(size, [&](std::int64_t i, std::int64_t j) {
    float* const out = patch + (i * size[1] + j) * size[2];
    std::array<float, 3> first;
    std::int64_t begin = 0, end = size[2];
    std::int64_t touch_begin = 0, touch_end = size[2];  // rows outside need no interpolation
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double position = grid.first[axis] - static_cast<double>(box.begin[axis]) +
                              static_cast<double>(i) * grid.steps[axis][0] +
                              static_cast<double>(j) * grid.steps[axis][1];
      first[axis] = static_cast<float>(position);
      const auto last = static_cast<double>(box.size[axis] - 1);
      // a margin for the rounding of floats
      constexpr double kMargin = 1e-3;
      narrow(position, grid.steps[axis][2], kMargin, last - kMargin, begin, end);
      narrow(position, grid.steps[axis][2], -1 - kMargin, last + 1 + kMargin, touch_begin, touch_end);
    }
    if (begin >= end) begin = end = touch_begin;
    std::fill(out, out + touch_begin, fill);
    const auto border = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t k = from; k < to; ++k) {
        std::array<float, 3> p;
        for (std::size_t axis = 0; axis < 3; ++axis) p[axis] = first[axis] + static_cast<float>(k) * step[axis];
        out[k] = linear_at_border<T>(box, p, fill);
      }
    };
    border(touch_begin, begin);
    linear_inside(data, box.plane, box.row, first, step, begin, end, out);
    border(std::max(end, touch_begin), touch_end);
    std::fill(out + std::max(touch_end, touch_begin), out + size[2], fill);
  });
}

template <typename T>
void nearest(const VolumeBox& box, const SamplingGrid& grid, std::span<const std::int64_t, 3> size, T* patch) {
  const T* const data = reinterpret_cast<const T*>(box.data);
  for_rows(size, [&](std::int64_t i, std::int64_t j) {
    T* const out = patch + (i * size[1] + j) * size[2];
    std::array<double, 3> first;
    std::int64_t begin = 0, end = size[2];
    for (std::size_t axis = 0; axis < 3; ++axis) {
      first[axis] = grid.first[axis] - static_cast<double>(box.begin[axis]) +
                    static_cast<double>(i) * grid.steps[axis][0] + static_cast<double>(j) * grid.steps[axis][1] + 0.5;
      narrow(first[axis], grid.steps[axis][2], 0, std::nextafter(static_cast<double>(box.size[axis]), 0.0), begin, end);
    }
    std::fill(out, out + begin, T{});
    for (std::int64_t k = begin; k < end; ++k) {
      std::array<std::int64_t, 3> at;
      for (std::size_t axis = 0; axis < 3; ++axis)
        at[axis] = std::clamp<std::int64_t>(
            static_cast<std::int64_t>(first[axis] + static_cast<double>(k) * grid.steps[axis][2]), 0,
            box.size[axis] - 1);
      out[k] = data[at[0] * box.plane + at[1] * box.row + at[2]];
    }
    std::fill(out + end, out + size[2], T{});
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
  // sums of short blocks are exact enough in float32, and are vectorised
  constexpr std::size_t kBlock = 256;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); i += kBlock) {
    double block = 0, block_squares = 0;
    for (const float value : values.subspan(i, std::min(kBlock, values.size() - i))) {
      block += static_cast<double>(value);
      block_squares += static_cast<double>(value) * static_cast<double>(value);
    }
    sum += block;
    squares += block_squares;
  }
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
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
