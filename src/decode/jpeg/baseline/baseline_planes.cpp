// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_planes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "decode/color.h"

namespace feedline::decode::baseline {
namespace {

constexpr std::size_t kAlignment = 64;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// For 2:1 vertical subsampling, returns the chroma row that is adjacent to luma row `y` but does not contain it.
int far_row(const Frame& frame, int y) {
  return std::clamp(y / 2 + (y % 2 == 0 ? -1 : 1), 0, frame.chroma_height() - 1);
}

}  // namespace

Window window_of(const Frame& frame, const Box& region) {
  const int right = region.left + region.width - 1, bottom = region.top + region.height - 1;
  Window window;
  if (frame.component[0].across == 2) {  // each chroma sample is mixed with its neighbours
    window.first_column = std::max(region.left / 2 - 1, 0) / kBlockSide;
    window.end_column = std::min(right / 2 + 1, frame.chroma_width() - 1) / kBlockSide + 1;
  } else {
    window.first_column = region.left / kBlockSide;
    window.end_column = right / kBlockSide + 1;
  }
  if (frame.component[0].down == 2) {
    window.first_row = std::min(far_row(frame, region.top), region.top / 2) / kBlockSide;
    window.end_row = std::max(far_row(frame, bottom), bottom / 2) / kBlockSide + 1;
    // libjpeg produces two rows at a time
    window.end_coded_row = std::min((bottom + 2) / frame.mcu_height() + 1, frame.mcus_down());
  } else {
    window.first_row = region.top / kBlockSide;
    window.end_row = window.end_coded_row = bottom / kBlockSide + 1;
  }
  return window;
}

bool lay_out_planes(const Frame& frame, const Window& window, const memory::Coarseness& most, memory::Planes& out) {
  const int chunks = (window.end_column - window.first_column + kChunkMcus - 1) / kChunkMcus;
  for (int c = 0; c < out.count; ++c) {
    const Component &component = frame.component[c], &luma = frame.component[0];
    const bool halved_across = component.across < luma.across, halved_down = component.down < luma.down;
    const int pixels = (c == 0 ? most.brightness : most.colour) / (halved_across || halved_down ? 2 : 1);
    const int reduction =
        std::clamp(static_cast<int>(std::bit_width(static_cast<unsigned>(pixels))) - 1, 0, kMaxReduction);
    const int across = component.across * kBlockSide >> reduction, down = component.down * kBlockSide >> reduction;
    memory::Plane& plane = out.plane[c];
    if (!plane.samples.resize(chunks * kChunkMcus * across, (window.end_row - window.first_row) * down, 1))
      return false;
    plane.x = {window.first_column * across, c == 0 ? frame.width : frame.chroma_width(), halved_across, reduction};
    plane.y = {window.first_row * down, c == 0 ? frame.height : frame.chroma_height(), halved_down, reduction};
  }
  return true;
}

void BaselinePlanes::start(const Frame& frame, const Window& window, const Kernels& kernels) {
  frame_ = &frame, kernels_ = &kernels, window_ = window;
  const int chunks = (window.end_column - window.first_column + kChunkMcus - 1) / kChunkMcus;
  const auto plane_stride = [chunks](int across) {
    return aligned(static_cast<std::size_t>(chunks * kChunkMcus * across * kBlockSide) + 2 * kRowSlack);
  };
  const std::size_t widest = plane_stride(frame.component[0].across);
  const int mcu_rows = frame.component[0].down == 2 ? 2 : 1;  // a pixel depends on samples of at most two
  std::size_t bytes = 2 * widest + 3 * widest + kAlignment;
  for (int i = 0; i < frame.components; ++i)
    bytes += plane_stride(frame.component[i].across) * static_cast<std::size_t>(mcu_rows * frame.component[i].down * 8);

  void* at = memory_.resize(bytes).data();
  std::size_t left = bytes;
  auto* free = static_cast<std::uint8_t*>(std::align(kAlignment, bytes - kAlignment, at, left));
  for (int i = 0; i < frame.components; ++i) {
    const Component& component = frame.component[i];
    const int rows = mcu_rows * component.down * kBlockSide;
    planes_[i] = {.first = free + kRowSlack,
                  .stride = plane_stride(component.across),
                  .row_mask = rows - 1,
                  .first_sample = window.first_column * component.across * kBlockSide};
    free += planes_[i].stride * static_cast<std::size_t>(rows);
  }
  upsampled_ = {free, free + widest};
  rgb_ = free + 2 * widest;
}

// Pads the samples outside the image's first and last columns by repeating them.
void BaselinePlanes::end_mcu_row(int mcu_row) {
  if (frame_->components == 1 || frame_->component[0].across == 1) return;
  for (int c = 1; c < kMaxComponents; ++c) {
    const int end = frame_->chroma_width() - planes_[c].first_sample;
    const bool at_end = window_.end_column == frame_->mcus_across();
    for (int i = 0; i < kBlockSide; ++i) {
      std::uint8_t* const samples = row(c, mcu_row * kBlockSide + i);
      samples[-1] = samples[0];  // if the window begins further right, its first sample is not needed
      if (at_end) samples[end] = samples[end - 1];
    }
  }
}

// Returns a row of chroma samples that is as long as the luma row and starts at the region's left edge.
const std::uint8_t* BaselinePlanes::chroma_row(const Box& region, int component, int y) {
  const Component& luma = frame_->component[0];
  const int first = planes_[component].first_sample;
  if (luma.across == 1) return row(component, y) + region.left - first;
  std::uint8_t* const out = upsampled_[component - 1];
  const int left = region.left / 2, count = (region.left + region.width - 1) / 2 - left + 1;
  if (luma.down == 1)
    kernels_->upsample_across(row(component, y) + left - first, count, out);
  else
    kernels_->upsample_both(row(component, y / 2) + left - first, row(component, far_row(*frame_, y)) + left - first,
                            count, out);
  return out + region.left % 2;
}

void BaselinePlanes::write_colour(const Box& region, int y, std::uint8_t* out) {
  const std::uint8_t* const luma = row(0, y) + region.left - planes_[0].first_sample;
  const std::uint8_t* const blue = chroma_row(region, 1, y);
  const std::uint8_t* const red = chroma_row(region, 2, y);
  kernels_->ycc_to_rgb(luma, blue, red, region.width, out);
}

void BaselinePlanes::write_row(const Box& region, int y, ColorMode mode, std::uint8_t* out) {
  if (frame_->components == 3) {
    write_colour(region, y, mode == ColorMode::kRgb ? out : rgb_);
    if (mode == ColorMode::kL) rgb_to_l(rgb_, region.width, out);
    return;
  }
  const std::uint8_t* const luma = row(0, y) + region.left - planes_[0].first_sample;
  if (mode == ColorMode::kL) {
    std::memcpy(out, luma, static_cast<std::size_t>(region.width));
    return;
  }
  for (int i = 0; i < region.width; ++i) out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = luma[i];
}

}  // namespace feedline::decode::baseline
