// SPDX-License-Identifier: Apache-2.0
#include "transform/runner.h"

#include <cstring>
#include <span>

#include "base/check.h"
#include "transform/border.h"
#include "transform/kernels/colour.h"
#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"

namespace feedline::transform {
namespace {

memory::PixelView cropped(memory::PixelView in, const Box& box) {
  return {in.row(box.top) + box.left * in.channels, box.width, box.height, in.channels, in.stride};
}

void mirror_row(const std::uint8_t* from, int width, int channels, std::uint8_t* to) {
  for (int x = width - 1; x >= 0; --x)
    for (int c = 0; c < channels; ++c) *to++ = from[x * channels + c];
}

// The image on which the steps operate. The image starts as the decoded pixels, and then alternates between the
// workspace's buffers. Crops only change the view.
class WorkingImage {
 public:
  WorkingImage(memory::PixelView decoded, const Kernels& kernels, Workspace::Impl& workspace)
      : view_(decoded), kernels_(kernels), workspace_(workspace) {}

  memory::PixelView view() const { return view_; }

  Result<void> operator()(const CropStep& step) {
    view_ = cropped(view_, step.box);
    owned_ = nullptr;  // the view no longer shows the whole buffer
    return {};
  }
  Result<void> operator()(const ResizeStep& step) {
    memory::PixelBuffer& out = other();
    FEEDLINE_CHECK_OK(resize_into(step, view_, kernels_, workspace_.resizer, out));
    return show(out);
  }
  Result<void> operator()(const FlipStep& step) {
    memory::PixelBuffer& out = other();
    FEEDLINE_CHECK_OK(out.resize(view_.width, view_.height, view_.channels));
    for (int y = 0; y < view_.height; ++y) {
      const std::uint8_t* from = view_.row(step.y ? view_.height - 1 - y : y);
      if (step.x) {
        mirror_row(from, view_.width, view_.channels, out.row(y));
      } else {
        std::memcpy(out.row(y), from, row_bytes());
      }
    }
    return show(out);
  }
  Result<void> operator()(const PadStep& step) {
    memory::PixelBuffer& out = other();
    FEEDLINE_CHECK_OK(pad(view_, step, workspace_.border_map, out));
    return show(out);
  }
  Result<void> operator()(const GrayscaleStep& step) {
    const int channels = step.channels == 0 ? view_.channels : step.channels;
    if (channels == 1 && view_.channels == 1) return {};
    memory::PixelBuffer& out = other();
    FEEDLINE_CHECK_OK(grayscale(view_, channels, out));
    return show(out);
  }
  Result<void> operator()(const JitterStep& step) {
    if (!owned_) FEEDLINE_CHECK_OK((*this)(FlipStep{}));  // a writable copy
    return jitter(*owned_, step.drawing);
  }
  Result<void> operator()(const PixelStep& step) {
    memory::PixelBuffer& out = owned_ && works_in_place(step.operation) ? *owned_ : other();
    FEEDLINE_CHECK_OK(apply(step.operation, view_, workspace_.pixel_scratch, out));
    return show(out);
  }
  Result<void> operator()(const KernelStep& step) {
    memory::PixelBuffer& out = owned_ && step.kernel->works_in_place ? *owned_ : other();
    FEEDLINE_CHECK_OK(step.kernel->run(*step.kernel, view_, step.values, out));
    return show(out);
  }
  Result<void> operator()(const NoiseStep& step) {
    if (!owned_) FEEDLINE_CHECK_OK((*this)(FlipStep{}));
    erase_pixels(step.erasure, kernels_, workspace_.noise, *owned_);
    return {};
  }
  Result<void> operator()(const MixBeginStep& step) {
    FEEDLINE_CHECK_OK(copy(view_, workspace_.mixed));
    view_ = workspace_.mixed.view();
    owned_ = nullptr;
    mixes_in_turn_ = step.in_turn;
    if (step.in_turn) return copy(view_, workspace_.blended);
    workspace_.mixing.resize(row_bytes() * static_cast<std::size_t>(view_.height));
    for (int y = 0; y < view_.height; ++y)
      kernels_.pixels->weigh(view_.row(y), row_bytes(), step.weight, mixing_row(y));
    return {};
  }
  Result<void> operator()(const MixAddStep& step) {
    for (int y = 0; y < view_.height; ++y) {
      std::uint8_t* const blended = mixes_in_turn_ ? workspace_.blended.row(y) : nullptr;
      if (mixes_in_turn_)
        kernels_.pixels->blend(blended, view_.row(y), row_bytes(), step.weight, blended);
      else
        kernels_.pixels->add_weighed(view_.row(y), row_bytes(), step.weight, mixing_row(y));
    }
    view_ = workspace_.mixed.view();
    owned_ = nullptr;
    return {};
  }
  Result<void> operator()(const MixEndStep& step) {
    if (mixes_in_turn_) {
      memory::PixelBuffer& made = other();
      FEEDLINE_CHECK_OK(copy(workspace_.blended.view(), made));
      return show(made);
    }
    memory::PixelBuffer& out = other();
    FEEDLINE_CHECK_OK(out.resize(view_.width, view_.height, view_.channels));
    for (int y = 0; y < view_.height; ++y) {
      kernels_.pixels->truncate(mixing_row(y), row_bytes(), out.row(y));
      if (step.blended) kernels_.pixels->blend(view_.row(y), out.row(y), row_bytes(), *step.blended, out.row(y));
    }
    return show(out);
  }
  Result<void> operator()(const ElasticStep& step) {
    const auto displacement = elastic_displacement(step.warp, {view_.height, view_.width}, workspace_.elastic_scratch);
    return (*this)(PixelStep{pixel_op::Elastic{displacement, step.interpolation, step.fill}});
  }

 private:
  float* mixing_row(int y) { return workspace_.mixing.data() + row_bytes() * static_cast<std::size_t>(y); }
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(view_.width) * static_cast<std::size_t>(view_.channels);
  }
  memory::PixelBuffer& other() { return workspace_.images[current_ == 0 ? 1 : 0]; }
  Result<void> show(memory::PixelBuffer& out) {
    current_ = &out == &workspace_.images[0] ? 0 : 1;
    owned_ = &out;
    view_ = out.view();
    return {};
  }

  memory::PixelView view_;
  const Kernels& kernels_;
  Workspace::Impl& workspace_;
  bool mixes_in_turn_ = false;
  int current_ = -1;                      // index of the viewed buffer; -1: the caller's
  memory::PixelBuffer* owned_ = nullptr;  // the buffer, if the view shows all of it
};

// Writes the output rows, which `next_row` returns from top to bottom.
template <typename NextRow>
Result<void> emit_rows(const Drawing::Steps& steps, Size size, int channels, const Emitter& emitter,
                       const Kernels& kernels, Workspace::Impl& workspace, std::byte* out, NextRow next_row) {
  FEEDLINE_CHECK(emitter.accepts(size.width, size.height, channels));
  for (int y = 0; y < size.height; ++y)
    emitter.emit(next_row(y), steps.flip_y ? size.height - 1 - y : y, steps.flip_x, kernels, workspace.row_scratch,
                 out);
  return {};
}

Result<void> run_steps(const Drawing::Steps& steps, std::span<const Step> list, memory::PixelView decoded,
                       const Emitter& emitter, const Kernels& kernels, Workspace::Impl& workspace, std::byte* out) {
  const ResizeStep* last_resize = list.empty() ? nullptr : std::get_if<ResizeStep>(&list.back());
  if (last_resize) list = list.first(list.size() - 1);
  WorkingImage image(decoded, kernels, workspace);
  for (const Step& step : list) FEEDLINE_CHECK_OK(std::visit(image, step));

  const memory::PixelView view = image.view();
  if (!last_resize)
    return emit_rows(steps, {view.height, view.width}, view.channels, emitter, kernels, workspace, out,
                     [&view](int y) { return view.row(y); });
  workspace.resizer.begin(*last_resize, view, kernels);
  return emit_rows(steps, {last_resize->window.height, last_resize->window.width}, view.channels, emitter, kernels,
                   workspace, out, [&workspace](int) { return workspace.resizer.next_row(); });
}

}  // namespace

Result<void> run_steps(const Drawing::Steps& steps, memory::PixelView decoded, const Emitter& emitter,
                       const Kernels& kernels, Workspace::Impl& workspace, std::byte* out) {
  return run_steps(steps, steps.list, decoded, emitter, kernels, workspace, out);
}

Result<void> run_steps(const Drawing::Steps& steps, const PlanarImage& decoded, const Emitter& emitter,
                       const Kernels& kernels, Workspace::Impl& workspace, std::byte* out) {
  const ResizeStep* const resize = steps.list.empty() ? nullptr : std::get_if<ResizeStep>(&steps.list.front());
  FEEDLINE_CHECK(resize != nullptr);
  PlanarResizer& resizer = workspace.planar_resizer;
  resizer.begin(*resize, decoded.region.left - resize->left, decoded.region.top - resize->top, decoded.channels,
                decoded.planes, kernels);
  const Size size{resize->window.height, resize->window.width};
  if (steps.list.size() == 1)
    return emit_rows(steps, size, decoded.channels, emitter, kernels, workspace, out,
                     [&resizer](int) { return resizer.next_row(); });
  // the steps first write to the other image
  memory::PixelBuffer& resized = workspace.images[1];
  FEEDLINE_CHECK_OK(resized.resize(size.width, size.height, decoded.channels));
  const auto row_bytes = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(decoded.channels);
  for (int y = 0; y < size.height; ++y) std::memcpy(resized.row(y), resizer.next_row(), row_bytes);
  return run_steps(steps, std::span<const Step>(steps.list).subspan(1), resized.view(), emitter, kernels, workspace,
                   out);
}

Result<void> resize_into(const ResizeStep& step, memory::PixelView in, const Kernels& kernels, Resizer& resizer,
                         memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(step.window.width, step.window.height, in.channels));
  resizer.begin(step, in, kernels);
  const auto row_bytes = static_cast<std::size_t>(step.window.width) * static_cast<std::size_t>(in.channels);
  for (int y = 0; y < step.window.height; ++y) std::memcpy(out.row(y), resizer.next_row(), row_bytes);
  return {};
}

}  // namespace feedline::transform
