// SPDX-License-Identifier: Apache-2.0
#include "transform/planar_resizer.h"

namespace feedline::transform {

void PlanarResizer::begin(const ResizeStep& step, int left, int top, int channels, const memory::Planes& planes,
                          const Kernels& kernels) {
  constexpr std::uint8_t kNoColour = 128;
  kernels_ = &kernels;
  channels_ = channels;
  planes_ = channels == 1 ? 1 : planes.count;
  width_ = step.window.width;
  columns_.compute(columns_of(step), 0);
  rows_.compute(rows_of(step), 0);
  for (int i = 0; i < planes_; ++i) resizers_[i].begin(columns_, rows_, left, top, planes.plane[i], kernels);
  const auto width = static_cast<std::size_t>(width_);
  row_.resize(3 * width + kReadSlack);
  if (colourless_.size() < width + kReadSlack) colourless_.assign(width + kReadSlack, kNoColour);
}

const std::uint8_t* PlanarResizer::next_row() {
  const std::uint8_t* rows[] = {nullptr, colourless_.data(), colourless_.data()};
  for (int i = 0; i < planes_; ++i) rows[i] = resizers_[i].next_row();
  if (channels_ == 1) return rows[0];
  kernels_->ycc_to_rgb(rows[0], rows[1], rows[2], width_, row_.data());
  return row_.data();
}

}  // namespace feedline::transform
