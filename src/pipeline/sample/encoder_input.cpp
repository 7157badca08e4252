// SPDX-License-Identifier: Apache-2.0
// Inputs of vision encoders: decoded, resized and normalized in one pass over the rows of each window.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "decode/decoder.h"
#include "feedline/image.h"
#include "memory/pixels.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/variants.h"
#include "transform/resizer.h"

namespace feedline {
namespace {

constexpr int kChannels = 3;

std::uint64_t area(const Box& box) {
  return static_cast<std::uint64_t>(box.width) * static_cast<std::uint64_t>(box.height);
}

Result<void> check(const EncoderInput& input, std::uint64_t size) {
  if (input.patch < 0 || input.merge < 1 || input.frames < 1 || input.windows.empty())
    return config_error("encoder input: patch, merge, frames and the number of windows must be positive");
  const int block = std::max(input.patch, 1) * input.merge;
  for (const ImageWindow& one : input.windows)
    if (one.resized.width < 1 || one.resized.height < 1 || one.window.width < 1 || one.window.height < 1 ||
        one.window.width % block != 0 || one.window.height % block != 0)
      return config_error("encoder input: the sides of a window must be positive multiples of " +
                          std::to_string(block));
  if (size != input.size())
    return config_error("encoder input: the output has " + std::to_string(size) + " values instead of " +
                        std::to_string(input.size()));
  return {};
}

// Writes rows of pixels to the output of one window. Patches are written when their last row has arrived, so that the
// output is written in sequence.
class WindowWriter {
 public:
  WindowWriter(const EncoderInput& input, const Box& window, const transform::Kernels& kernels, float* out)
      : input_(input), window_(window), kernels_(kernels), out_(out), strip_(stride() * rows()) {}

  // `pixels` has the window's width. Rows are written in ascending order.
  void write(const std::uint8_t* pixels, int y) {
    const auto row = static_cast<std::size_t>(y);
    std::array<std::uint8_t*, kChannels> planes{};
    for (std::size_t c = 0; c < kChannels; ++c) planes[c] = strip_.data() + row % rows() * stride() + c * width();
    kernels_.split(pixels, window_.width, planes.data());
    if (input_.patch == 0) {
      for (std::size_t c = 0; c < kChannels; ++c)
        look_up(planes[c], width(), c, out_ + (c * static_cast<std::size_t>(window_.height) + row) * width());
    } else if (row % rows() == rows() - 1) {
      write_patches(row / rows());
    }
  }

 private:
  std::size_t width() const { return static_cast<std::size_t>(window_.width); }
  std::size_t stride() const { return width() * kChannels; }
  std::size_t rows() const { return static_cast<std::size_t>(std::max(input_.patch, 1)); }

  void look_up(const std::uint8_t* in, std::size_t count, std::size_t channel, float* out) const {
    const auto& values = input_.values[channel];
    for (std::size_t i = 0; i < count; ++i) out[i] = values[in[i]];
  }

  void write_patches(std::size_t grid_row) const {
    const std::size_t side = rows(), merge = static_cast<std::size_t>(input_.merge);
    const std::size_t frames = static_cast<std::size_t>(input_.frames), frame = side * side;
    const std::size_t columns = width() / side;
    float* const first = out_ + (grid_row / merge * merge * columns + grid_row % merge * merge) * patch_size();
    for (std::size_t column = 0; column < columns; ++column) {
      float* out = first + (column / merge * merge * merge + column % merge) * patch_size();
      for (std::size_t c = 0; c < kChannels; ++c, out += frames * frame) {
        const std::uint8_t* const in = strip_.data() + c * width() + column * side;
        for (std::size_t y = 0; y < side; ++y) look_up(in + y * stride(), side, c, out + y * side);
        for (std::size_t t = 1; t < frames; ++t) std::memcpy(out + t * frame, out, frame * sizeof(float));
      }
    }
  }

  std::size_t patch_size() const { return kChannels * static_cast<std::size_t>(input_.frames) * rows() * rows(); }

  const EncoderInput& input_;
  const Box window_;
  const transform::Kernels& kernels_;
  float* out_;
  std::vector<std::uint8_t> strip_;  // the last rows(), each as three planes
};

void write_window(const EncoderInput& input, const ImageWindow& one, memory::PixelView image,
                  transform::Resizer& resizer, float* out) {
  const Box& window = one.window;
  const transform::Kernels& kernels = transform::active_kernels();
  WindowWriter writer(input, window, kernels, out);
  const int left = std::max(window.left, 0), top = std::max(window.top, 0);
  const int right = std::min(window.left + window.width, one.resized.width);
  const int bottom = std::min(window.top + window.height, one.resized.height);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(window.width) * kChannels + transform::kReadSlack);
  const bool is_whole = left == window.left && right == window.left + window.width;
  const bool has_pixels = left < right && top < bottom;
  if (has_pixels)
    resizer.begin(
        {{image.height, image.width}, one.resized, {left, top, right - left, bottom - top}, input.interpolation}, image,
        kernels);
  for (int y = 0; y < window.height; ++y) {
    const std::uint8_t* pixels = row.data();
    if (has_pixels && window.top + y >= top && window.top + y < bottom) {
      pixels = resizer.next_row();
      if (!is_whole) {
        std::memcpy(row.data() + static_cast<std::size_t>(left - window.left) * kChannels, pixels,
                    static_cast<std::size_t>(right - left) * kChannels);
        pixels = row.data();
      }
    } else if (!is_whole) {
      std::ranges::fill(row, std::uint8_t{0});
    }
    writer.write(pixels, y);
  }
}

}  // namespace

std::uint64_t EncoderInput::size() const {
  std::uint64_t pixels = 0;
  for (const ImageWindow& one : windows) pixels += area(one.window);
  return pixels * kChannels * static_cast<std::uint64_t>(patch == 0 ? 1 : frames);
}

Result<void> write_encoder_input(std::span<const std::byte> encoded, const EncoderInput& input, std::span<float> out) {
  return base::guarded([&]() -> Result<void> {
    FEEDLINE_CHECK_OK(check(input, out.size()));
    thread_local decode::ImageDecoder decoder;
    thread_local memory::PixelBuffer pixels;
    thread_local transform::Resizer resizer;
    FEEDLINE_TRY(const decode::ImageHeader header, decoder.open(encoded, true));
    if (header.width != input.image.width || header.height != input.image.height)
      return data_error("the image has " + std::to_string(header.width) + " x " + std::to_string(header.height) +
                            " pixels instead of " + std::to_string(input.image.width) + " x " +
                            std::to_string(input.image.height),
                        "decode");
    FEEDLINE_CHECK_OK(decoder.decode({0, 0, header.width, header.height}, ColorMode::kRgb, pixels));
    float* at = out.data();
    for (const ImageWindow& one : input.windows) {
      write_window(input, one, pixels.view(), resizer, at);
      at += area(one.window) * kChannels * static_cast<std::uint64_t>(input.patch == 0 ? 1 : input.frames);
    }
    return {};
  });
}

Result<Size> upright_size(std::span<const std::byte> encoded) {
  return base::guarded([&]() -> Result<Size> {
    decode::ImageDecoder decoder;
    FEEDLINE_TRY(const decode::ImageHeader header, decoder.open(encoded, true));
    return Size{header.height, header.width};
  });
}

}  // namespace feedline
