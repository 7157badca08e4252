// SPDX-License-Identifier: Apache-2.0
#include "transform/steps.h"

#include <algorithm>
#include <utility>

namespace feedline::transform {
namespace {

// Converts `inner`, which is relative to `outer`, to the coordinates of `outer`.
Box compose(const Box& outer, const Box& inner) {
  return {outer.left + inner.left, outer.top + inner.top, inner.width, inner.height};
}

Box mirrored(Box box, Size size, bool x, bool y) {
  if (x) box.left = size.width - box.left - box.width;
  if (y) box.top = size.height - box.top - box.height;
  return box;
}

// How many samples of luma and chroma must remain per pixel in each direction; docs/fidelity.md lists the resulting
// error. Colour needs fewer.
constexpr double kLeastSamples = 1.25, kLeastColour = 1.0;
constexpr int kCoarsest = 16;  // an eighth of halved colour

}  // namespace

StepBuilder::StepBuilder(Size image, Drawing& drawing)
    : drawing_(drawing), list_(drawing.steps->list), region_{0, 0, image.width, image.height}, size_(image) {
  list_.clear();
  drawing.steps->decisions.clear();
  drawing.steps->erasures.clear();
}

// Cropping a mirrored image is equivalent to mirroring the image after a mirrored crop.
void StepBuilder::crop(const Box& drawn) {
  const bool whole = drawn.width == size_.width && drawn.height == size_.height;
  const Box box = mirrored(drawn, size_, flip_x_, flip_y_);
  size_ = {box.height, box.width};
  if (whole) return;
  if (list_.empty()) {
    region_ = compose(region_, box);
  } else if (auto* crop = std::get_if<CropStep>(&list_.back())) {
    crop->box = compose(crop->box, box);
  } else if (auto* resize = std::get_if<ResizeStep>(&list_.back())) {
    resize->window = compose(resize->window, box);
  } else if (auto* pad = std::get_if<PadStep>(&list_.back())) {
    pad->window = compose(pad->window, box);
  } else {
    list_.push_back(CropStep{box});
  }
}

// A flip cannot be moved past a resize, because mirrored weights may round differently.
void StepBuilder::resize(Size out, Interpolation interpolation) {
  if (out.width == size_.width && out.height == size_.height) return;
  flip_now();
  list_.push_back(ResizeStep{size_, out, {0, 0, out.width, out.height}, interpolation, false, 0, 0});
  size_ = out;
}

void StepBuilder::flip(bool x, bool y) {
  flip_x_ ^= x;
  flip_y_ ^= y;
  for (Erasure& erasure : drawing_.steps->erasures) erasure.box = mirrored(erasure.box, size_, x, y);
}

void StepBuilder::pad(const Padding& padding, PaddingMode mode, const std::array<std::uint8_t, 3>& fill) {
  if (!any(padding)) return;
  Padding mirrored = padding;
  if (flip_x_) std::swap(mirrored.left, mirrored.right);
  if (flip_y_) std::swap(mirrored.top, mirrored.bottom);
  size_ = padded(size_, padding);
  list_.push_back(PadStep{mirrored, mode, fill, {0, 0, size_.width, size_.height}});
}

void StepBuilder::grayscale(int channels) { list_.push_back(GrayscaleStep{channels}); }

void StepBuilder::jitter(const JitterDrawing& drawing) { list_.push_back(JitterStep{drawing}); }

void StepBuilder::run(const OwnKernel& kernel, const KernelValues& values, Size out) {
  if (kernel.moves_pixels) flip_now();
  list_.push_back(KernelStep{&kernel, values});
  size_ = out;
}

// A flip cannot be moved past operations that move pixels; other operations have the same effect on a mirrored image.
void StepBuilder::augment(const DrawnAugmentation& drawn, Interpolation interpolation, const Colour& fill) {
  if (drawn.augmentation == Augmentation::kGrayscale) return grayscale(0);
  if (moves_pixels(drawn.augmentation)) flip_now();
  list_.push_back(PixelStep{pixel_operation(drawn, size_, interpolation, fill)});
}

void StepBuilder::change(const PixelOperation& operation, bool moves) {
  if (moves) flip_now();
  list_.push_back(PixelStep{operation});
}

void StepBuilder::erase(const Erasure& erasure, bool of_output) {
  if (of_output) {
    drawing_.steps->erasures.push_back(erasure);
    return;
  }
  Erasure placed = erasure;
  placed.box = mirrored(erasure.box, size_, flip_x_, flip_y_);
  if (placed.noise) {
    list_.push_back(NoiseStep{placed});
    return;
  }
  pixel_op::Erase filled{.box = placed.box, .value = {}, .noise = {}};
  for (std::size_t c = 0; c < 3; ++c) filled.value[c] = static_cast<std::uint8_t>(placed.value[c]);
  list_.push_back(PixelStep{filled});
}

void StepBuilder::mix_begin(float weight, bool in_turn) {
  flip_now();
  list_.push_back(MixBeginStep{weight, in_turn});
}
void StepBuilder::mix_add(float weight) { list_.push_back(MixAddStep{weight}); }
void StepBuilder::mix_end(std::optional<float> blended) { list_.push_back(MixEndStep{blended}); }
void StepBuilder::warp(const Warp& warp) {
  flip_now();
  if (const auto* elastic = std::get_if<ElasticWarp>(&warp.parameters)) {
    list_.push_back(ElasticStep{*elastic, warp.interpolation, warp.fill});
  } else {
    list_.push_back(PixelStep{pixel_operation(warp, size_)});
  }
  size_ = size_after(warp, size_);
}

void StepBuilder::flip_now() {
  if (flip_x_ || flip_y_) list_.push_back(FlipStep{flip_x_, flip_y_});
  flip_x_ = flip_y_ = false;
}

void StepBuilder::finish() {
  drawing_.region = region_;
  if (!list_.empty()) {
    if (auto* resize = std::get_if<ResizeStep>(&list_.front())) {
      const AxisSpan columns = source_span(columns_of(*resize));
      const AxisSpan rows = source_span(rows_of(*resize));
      resize->left = columns.begin;
      resize->top = rows.begin;
      drawing_.region =
          compose(region_, {columns.begin, rows.begin, columns.end - columns.begin, rows.end - rows.begin});
    }
    if (auto* resize = std::get_if<ResizeStep>(&list_.back())) resize->flip_x = std::exchange(flip_x_, false);
  }
  drawing_.steps->flip_x = flip_x_;
  drawing_.steps->flip_y = flip_y_;
}

std::optional<memory::Coarseness> useful_planes(const Drawing::Steps& steps) {
  const auto* const resize = steps.list.empty() ? nullptr : std::get_if<ResizeStep>(&steps.list.front());
  if (!resize || resize->interpolation == Interpolation::kNearest) return std::nullopt;
  const double smaller = std::min(static_cast<double>(resize->in.width) / resize->out.width,
                                  static_cast<double>(resize->in.height) / resize->out.height);
  if (smaller < 2 * kLeastSamples) return std::nullopt;  // planes of full size are as slow as pixels
  const auto coarsest = [smaller](double least) {
    int pixels = 1;
    while (pixels < kCoarsest && smaller >= 2 * pixels * least) pixels *= 2;
    return pixels;
  };
  return memory::Coarseness{coarsest(kLeastSamples), coarsest(kLeastColour)};
}

AxisRequest columns_of(const ResizeStep& step) {
  return {step.in.width, step.out.width, step.window.left, step.window.width, step.interpolation, step.flip_x};
}

AxisRequest rows_of(const ResizeStep& step) {
  return {step.in.height, step.out.height, step.window.top, step.window.height, step.interpolation, false};
}

}  // namespace feedline::transform
