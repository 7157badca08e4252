// SPDX-License-Identifier: Apache-2.0
#include "transform/noise.h"

#include <algorithm>

#include "base/check.h"
#include "transform/kernels/pixel_ops/normals.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pointwise.h"
#include "transform/operation/image_operation.h"

namespace feedline::transform {
namespace {

// Writes the values of row `y` of the rectangle, one channel after another.
std::span<float> values_of_row(const Erasure& erasure, int y, int channels, const Kernels& kernels,
                               NoiseScratch& scratch) {
  const auto width = static_cast<std::size_t>(erasure.box.width);
  const std::size_t count = width * static_cast<std::size_t>(channels), groups = normal_groups(count);
  if (scratch.values.size() < groups * kGroupNormals) scratch.values.resize(groups * kGroupNormals);
  float* const values = scratch.values.data();
  if (erasure.noise) {
    base::Random::Blocks blocks = *erasure.noise;
    blocks.counter[0] += static_cast<std::uint32_t>(static_cast<std::size_t>(y) * groups * kGroupBlocks);
    kernels.pixels->normals(blocks, groups, values);
  } else {
    for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
      std::fill_n(values + c * width, width, erasure.value[c]);
  }
  return {values, count};
}

// The position of a rectangle's row within a row of the batch.
struct OutputRow {
  std::size_t at, next_pixel, next_channel;  // in elements
};

OutputRow output_row(const Box& box, int y, const Shape& shape, Layout layout) {
  const bool planes = layout == Layout::kNchw;
  const auto channels = static_cast<std::size_t>(shape[planes ? 0 : 2]);
  const auto height = static_cast<std::size_t>(shape[planes ? 1 : 0]);
  const auto width = static_cast<std::size_t>(shape[planes ? 2 : 1]);
  const std::size_t pixel =
      (static_cast<std::size_t>(box.top) + static_cast<std::size_t>(y)) * width + static_cast<std::size_t>(box.left);
  return planes ? OutputRow{pixel, 1, width * height} : OutputRow{pixel * channels, channels, 1};
}

template <typename T>
void write(const T* values, std::size_t width, std::size_t channels, const OutputRow& row, T* out) {
  for (std::size_t c = 0; c < channels; ++c) {
    T* const to = out + row.at + c * row.next_channel;
    const T* const from = values + c * width;
    if (row.next_pixel == 1)
      std::copy_n(from, width, to);
    else
      for (std::size_t x = 0; x < width; ++x) to[x * row.next_pixel] = from[x];
  }
}

}  // namespace

void erase_pixels(const Erasure& erasure, const Kernels& kernels, NoiseScratch& scratch, memory::PixelBuffer& image) {
  const Box& box = erasure.box;
  FEEDLINE_CHECK(erasure.noise && box.left >= 0 && box.top >= 0 && box.left + box.width <= image.width() &&
                 box.top + box.height <= image.height());
  const int channels = image.channels();
  const auto width = static_cast<std::size_t>(box.width);
  for (int y = 0; y < box.height; ++y) {
    const std::span<const float> values = values_of_row(erasure, y, channels, kernels, scratch);
    std::uint8_t* to = image.row(box.top + y) + box.left * channels;
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
        *to++ = static_cast<std::uint8_t>(static_cast<int>(values[c * width + x]));
  }
}

constexpr OutputEraser::ValueStep OutputEraser::kRounding{.halves = true, .is_rounding = true};

// Appends the effect of an operation to the steps of every operation before it.
class OutputEraser::Appender final : public ValueSteps {
 public:
  explicit Appender(std::vector<std::vector<ValueStep>>& steps) : steps_(steps) {}
  bool halves() const { return halves_; }

  void convert(DType dtype, bool /*scale*/) override {
    halves_ = dtype == DType::kFloat16;
    if (halves_) append(kRounding);
  }
  void normalize(const op::Normalize& normalize) override {
    ValueStep step{.halves = halves_};
    for (std::size_t c = 0; c < 3; ++c) {
      step.mean[c] = normalize.mean[std::min(c, normalize.mean.size() - 1)];
      step.std[c] = normalize.std[std::min(c, normalize.std.size() - 1)];
      if (halves_) step.mean[c] = as_half(step.mean[c]), step.std[c] = as_half(step.std[c]);
    }
    append(step);
  }
  void window(const op::Window& window) override { append({.window = window}); }

 private:
  void append(const ValueStep& step) {
    for (std::vector<ValueStep>& steps : steps_) steps.push_back(step);
  }

  std::vector<std::vector<ValueStep>>& steps_;
  bool halves_ = false;
};

OutputEraser::OutputEraser(std::span<const Operation> operations, std::size_t first, Layout layout) : layout_(layout) {
  Appender appender(steps_);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    operations[i]->convert(appender);
    if (i < first) continue;
    steps_.emplace_back();
    if (appender.halves()) steps_.back().push_back(kRounding);
  }
}

void OutputEraser::convert(std::size_t channel, std::span<const ValueStep> steps, std::span<float> values) const {
  for (const ValueStep& step : steps) {
    const float mean = step.mean[channel], std = step.std[channel];
    for (float& value : values) {
      if (step.window) {
        value = in_window(value, *step.window);
        continue;
      }
      if (!step.is_rounding) {
        value -= mean;
        if (step.halves) value = as_half(value);
        value /= std;
      }
      if (step.halves) value = as_half(value);
    }
  }
}

void OutputEraser::erase(const Erasure& erasure, const Kernels& kernels, NoiseScratch& scratch, ArrayView out) const {
  const Shape& shape = out.spec.shape;
  const auto channels = static_cast<std::size_t>(shape[layout_ == Layout::kNchw ? 0 : 2]);
  const auto width = static_cast<std::size_t>(erasure.box.width);
  const std::span<const ValueStep> steps = steps_[static_cast<std::size_t>(erasure.operation)];
  for (int y = 0; y < erasure.box.height; ++y) {
    const std::span<float> values = values_of_row(erasure, y, static_cast<int>(channels), kernels, scratch);
    for (std::size_t c = 0; c < channels && !steps.empty(); ++c) convert(c, steps, values.subspan(c * width, width));
    const OutputRow row = output_row(erasure.box, y, shape, layout_);
    if (out.spec.dtype == DType::kFloat32) {
      write(values.data(), width, channels, row, reinterpret_cast<float*>(out.data));
      continue;
    }
    FEEDLINE_CHECK(out.spec.dtype == DType::kFloat16);
    scratch.halves.resize(values.size());
    std::ranges::transform(values, scratch.halves.begin(), to_half);
    write(scratch.halves.data(), width, channels, row, reinterpret_cast<std::uint16_t*>(out.data));
  }
}

}  // namespace feedline::transform
