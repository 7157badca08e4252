// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/emitter.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace feedline::transform {

Emitter::Emitter(Pointwise pointwise, int channels, Size size, Layout layout)
    : pointwise_(std::move(pointwise)), channels_(channels), width_(size.width), height_(size.height), layout_(layout) {
  spec_.dtype = pointwise_.dtype();
  spec_.shape =
      layout == Layout::kNchw ? Shape{channels, size.height, size.width} : Shape{size.height, size.width, channels};
}

void Emitter::emit(const std::uint8_t* row, int y, bool mirrored, const Kernels& kernels,
                   std::vector<std::uint8_t>& scratch, std::byte* out) const {
  const std::size_t element = size_of(spec_.dtype);
  const auto width = static_cast<std::size_t>(width_);
  const std::size_t row_bytes = width * element;
  const std::size_t plane_bytes = row_bytes * static_cast<std::size_t>(height_);
  std::byte* to = out + static_cast<std::size_t>(y) * row_bytes;  // one channel's
  if (channels_ == 1) return emit_plane(row, 0, mirrored, kernels, to);
  if (scratch.size() < width * 3) scratch.resize(width * 3);
  if (layout_ == Layout::kNhwc) {
    if (mirrored) {
      for (std::size_t x = 0; x < width; ++x) std::memcpy(scratch.data() + x * 3, row + (width - 1 - x) * 3, 3);
      row = scratch.data();
    }
    return emit_pixels(row, kernels, out + static_cast<std::size_t>(y) * row_bytes * 3);
  }
  std::uint8_t* planes[3];
  const bool straight = spec_.dtype == DType::kUint8 && !mirrored;
  for (std::size_t c = 0; c < 3; ++c)
    planes[c] = straight ? reinterpret_cast<std::uint8_t*>(to + c * plane_bytes) : scratch.data() + c * width;
  kernels.split(row, width_, planes);
  for (std::size_t c = 0; c < 3 && !straight; ++c)
    emit_plane(planes[c], static_cast<int>(c), mirrored, kernels, to + c * plane_bytes);
}

void Emitter::emit_plane(const std::uint8_t* row, int channel, bool mirrored, const Kernels& kernels,
                         std::byte* out) const {
  const PointwiseConstants* proved = pointwise_.proved() ? pointwise_.proved() + channel : nullptr;
  if (spec_.dtype == DType::kFloat32) {
    kernels.lookup_float32(row, width_, mirrored, pointwise_.float32_tables()[channel], proved,
                           reinterpret_cast<float*>(out));
  } else if (spec_.dtype == DType::kFloat16 || spec_.dtype == DType::kBfloat16) {
    kernels.lookup_float16(row, width_, mirrored, pointwise_.float16_tables()[channel], proved,
                           reinterpret_cast<std::uint16_t*>(out));
  } else if (mirrored) {
    std::reverse_copy(row, row + width_, reinterpret_cast<std::uint8_t*>(out));
  } else {
    std::memcpy(out, row, static_cast<std::size_t>(width_));
  }
}

void Emitter::emit_pixels(const std::uint8_t* row, const Kernels& kernels, std::byte* out) const {
  if (spec_.dtype == DType::kFloat32) {
    kernels.lookup_rgb_float32(row, width_, pointwise_.float32_tables(), pointwise_.proved(),
                               reinterpret_cast<float*>(out));
  } else if (spec_.dtype == DType::kFloat16 || spec_.dtype == DType::kBfloat16) {
    kernels.lookup_rgb_float16(row, width_, pointwise_.float16_tables(), pointwise_.proved(),
                               reinterpret_cast<std::uint16_t*>(out));
  } else {
    std::memcpy(out, row, static_cast<std::size_t>(width_) * 3);
  }
}

}  // namespace feedline::transform
