// SPDX-License-Identifier: Apache-2.0
#include "transform/deep/deep_output.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/check.h"
#include "transform/deep/deep_numbers.h"

namespace feedline::transform {
namespace {

// Copies elements of kBytes bytes, `from_step` and `to_step` elements apart.
template <std::size_t kBytes>
void copy_elements(const std::byte* from, std::ptrdiff_t from_step, std::byte* to, std::ptrdiff_t to_step,
                   std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, from += from_step * static_cast<std::ptrdiff_t>(kBytes),
                   to += to_step * static_cast<std::ptrdiff_t>(kBytes))
    std::memcpy(to, from, kBytes);
}

}  // namespace

bool is_wide(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kUint32 || dtype == DType::kInt64 || dtype == DType::kUint64 ||
         dtype == DType::kFloat64;
}

void DeepOutput::normalize(const op::Normalize& normalize) {
  for (const auto& values : {normalize.mean, normalize.std})
    if (values.size() != 1 && values.size() != static_cast<std::size_t>(channels_))
      failure_ = std::to_string(values.size()) + " numbers for images with " + std::to_string(channels_) +
                 (channels_ == 1 ? " channel" : " channels") + "; give one per channel, or one for all";
  steps_.emplace_back(normalize);
  if (dtype_ != DType::kFloat16 || stored_ == DType::kFloat16) dtype_ = DType::kFloat32;
}

void DeepOutput::window(const op::Window& window) {
  steps_.emplace_back(window);
  dtype_ = DType::kFloat32;
}

void DeepOutput::convert(DType dtype, bool scale) {
  const bool was_whole = with_number_type(dtype_, []<typename T>(T) { return std::is_integral_v<T>; });
  if (scale && was_whole)
    steps_.emplace_back(Scale{with_number_type(dtype_, []<typename T>(T) {
      if constexpr (std::is_integral_v<T>) return static_cast<float>(std::numeric_limits<T>::max());
      return 1.0F;
    })});
  dtype_ = dtype;
}

Shape DeepOutput::shape_of(Size size) const {
  if (layout_ == Layout::kNchw) return {channels_, size.height, size.width};
  return {size.height, size.width, channels_};
}

void DeepOutput::finish(Size size, Layout layout) {
  layout_ = layout;
  spec_ = {dtype_, shape_of(size)};
}

void DeepOutput::write(DType dtype, const std::byte* pixels, int y, bool mirrored, Size size, DeepRow& scratch,
                       std::byte* out) const {
  if (dtype != dtype_ || !steps_.empty()) {
    if (is_wide(stored_)) return write_values(dtype, pixels, y, mirrored, size, scratch.doubles, out);
    return write_values(dtype, pixels, y, mirrored, size, scratch.floats, out);
  }
  const std::size_t bytes = size_of(dtype_), width = static_cast<std::size_t>(size.width),
                    channels = static_cast<std::size_t>(channels_);
  const bool is_planar = layout_ == Layout::kNchw && channels_ > 1;
  const std::ptrdiff_t step = mirrored ? -channels_ : channels_;
  const std::byte* const first = mirrored ? pixels + (width - 1) * channels * bytes : pixels;
  if (!is_planar && !mirrored) {
    std::memcpy(out + static_cast<std::size_t>(y) * width * channels * bytes, pixels, width * channels * bytes);
    return;
  }
  for (std::size_t c = 0; c < channels; ++c) {
    const std::size_t at = is_planar ? (c * static_cast<std::size_t>(size.height) + static_cast<std::size_t>(y)) * width
                                     : static_cast<std::size_t>(y) * width * channels + c;
    const std::ptrdiff_t to_step = is_planar ? 1 : channels_;
    std::byte* const to = out + at * bytes;
    const std::byte* const from = first + c * bytes;
    switch (bytes) {
      case 1:
        copy_elements<1>(from, step, to, to_step, width);
        break;
      case 2:
        copy_elements<2>(from, step, to, to_step, width);
        break;
      case 4:
        copy_elements<4>(from, step, to, to_step, width);
        break;
      default:
        copy_elements<8>(from, step, to, to_step, width);
    }
  }
}

template <typename Work>
void DeepOutput::apply(Work* values, std::size_t count, std::size_t channel) const {
  for (const Step& step : steps_) {
    if (const auto* const normalize = std::get_if<op::Normalize>(&step)) {
      const Work mean = normalize->mean[normalize->mean.size() == 1 ? 0 : channel];
      const Work std = normalize->std[normalize->std.size() == 1 ? 0 : channel];
      for (std::size_t i = 0; i < count; ++i) values[i] = (values[i] - mean) / std;
    } else if (const auto* const window = std::get_if<op::Window>(&step)) {
      const auto level = static_cast<Work>(window->level), width = static_cast<Work>(window->width);
      const Work half = width / 2;
      for (std::size_t i = 0; i < count; ++i) {
        const Work value = (values[i] - level + half) / width;
        values[i] = value > 1 ? Work{1} : value < 0 ? Work{0} : value;  // NaN remains
      }
    } else {
      const Work divisor = std::get<Scale>(step).divisor;
      for (std::size_t i = 0; i < count; ++i) values[i] /= divisor;
    }
  }
}

template <typename Work>
void DeepOutput::write_values(DType dtype, const std::byte* pixels, int y, bool mirrored, Size size,
                              AlignedVector<Work>& values, std::byte* out) const {
  const std::size_t width = static_cast<std::size_t>(size.width), channels = static_cast<std::size_t>(channels_);
  values.resize(width);
  const bool is_planar = layout_ == Layout::kNchw;
  for (std::size_t c = 0; c < channels; ++c) {
    with_number_type(dtype, [&]<typename T>(T) {
      const std::ptrdiff_t step = mirrored ? -channels_ : channels_;
      const std::byte* from = pixels + ((mirrored ? (width - 1) * channels : 0) + c) * sizeof(T);
      for (std::size_t x = 0; x < width; ++x, from += step * static_cast<std::ptrdiff_t>(sizeof(T))) {
        T value;
        std::memcpy(&value, from, sizeof value);
        values[x] = number_from<Work>(value);
      }
    });
    apply(values.data(), width, c);
    const std::size_t at = is_planar ? (c * static_cast<std::size_t>(size.height) + static_cast<std::size_t>(y)) * width
                                     : static_cast<std::size_t>(y) * width * channels + c;
    const std::size_t to_step = is_planar ? 1 : channels;
    if (dtype_ == DType::kBfloat16) {
      std::byte* to = out + at * 2;
      for (std::size_t x = 0; x < width; ++x, to += 2 * to_step) {
        const std::uint16_t bits = to_bfloat16(static_cast<float>(values[x]));
        std::memcpy(to, &bits, sizeof bits);
      }
      continue;
    }
    with_number_type(dtype_, [&]<typename T>(T) {
      std::byte* to = out + at * sizeof(T);
      for (std::size_t x = 0; x < width; ++x, to += to_step * sizeof(T)) {
        const T value = number_to<T>(values[x]);
        std::memcpy(to, &value, sizeof value);
      }
    });
  }
}

}  // namespace feedline::transform
