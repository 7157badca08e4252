// SPDX-License-Identifier: Apache-2.0
#include "transform/shared_steps.h"

#include <utility>

#include "base/check.h"
#include "transform/compiled_chain.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/variants.h"
#include "transform/operation/image_operation.h"
#include "transform/operation/inference.h"
#include "transform/runner.h"

namespace feedline::transform {
namespace {

int channels_of(ColorMode mode) { return mode == ColorMode::kRgb ? 3 : 1; }

Emitter pixels_of(int channels) {
  Pointwise as_they_are(channels);
  as_they_are.finish();
  return {std::move(as_they_are), channels, Size{}, Layout::kNhwc};
}

}  // namespace

SharedSteps::SharedSteps(std::vector<Operation> operations, std::size_t first, ColorMode mode, bool applies_exif,
                         Fidelity fidelity, Emitter as_pixels)
    : operations_(std::move(operations)),
      first_(first),
      mode_(mode),
      applies_exif_(applies_exif),
      fidelity_(fidelity),
      as_pixels_(std::move(as_pixels)) {}

Result<std::shared_ptr<const SharedSteps>> SharedSteps::compile(std::span<const Operation> operations,
                                                                std::size_t first) {
  FEEDLINE_CHECK(first <= operations.size());
  FEEDLINE_TRY(const Inferred given, infer(operations.first(first)));
  FEEDLINE_TRY(const Inferred made, infer(operations));
  if (made.values != PixelValues::kBytes)
    return config_error("views: views are made from 8-bit pixels; omit dtype= in decode, or the views");
  for (const Operation& operation : operations)
    if (operation->properties().stage == Stage::kValues)
      return config_error("views: views are made from 8-bit pixels, and " + std::string(name_of(operation)) +
                          " runs when pixels are written to the batch; place it after views");
  const ColorMode mode = first == 0 ? made.mode : given.channels == 3 ? ColorMode::kRgb : ColorMode::kL;
  const auto rest = operations.subspan(first);
  return std::shared_ptr<const SharedSteps>(new SharedSteps({rest.begin(), rest.end()}, first, mode,
                                                            first == 0 && made.applies_exif, made.fidelity,
                                                            pixels_of(made.channels)));
}

Result<void> SharedSteps::draw(Size image, const base::SampleKey& key, const Box* part, Drawing& drawing) const {
  FEEDLINE_TRY(drawing.size,
               draw_operations(operations_, static_cast<std::uint32_t>(first_), image, key, drawing, part));
  drawing.planes = fidelity_ == Fidelity::kFast ? useful_planes(*drawing.steps) : std::nullopt;
  return {};
}

bool SharedSteps::is_nothing(const Drawing& drawing) {
  const Drawing::Steps& steps = *drawing.steps;
  return steps.list.empty() && !steps.flip_x && !steps.flip_y;
}

Result<memory::PixelView> SharedSteps::apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                                             AlignedVector<std::uint8_t>& out) const {
  FEEDLINE_CHECK(decoded.width == drawing.region.width && decoded.height == drawing.region.height);
  FEEDLINE_CHECK(decoded.channels == channels_of(mode_));
  if (is_nothing(drawing)) return decoded;
  return run(drawing, decoded, workspace, out);
}

Result<memory::PixelView> SharedSteps::apply(const Drawing& drawing, const memory::Planes& decoded,
                                             Workspace& workspace, AlignedVector<std::uint8_t>& out) const {
  FEEDLINE_CHECK(drawing.planes.has_value());
  return run(drawing, PlanarImage{decoded, drawing.region, channels_of(mode_)}, workspace, out);
}

template <typename Decoded>
Result<memory::PixelView> SharedSteps::run(const Drawing& drawing, const Decoded& decoded, Workspace& workspace,
                                           AlignedVector<std::uint8_t>& out) const {
  const Emitter emitter = as_pixels_.of_size(drawing.size);
  const std::size_t bytes = emitter.spec().bytes() + kReadSlack;
  if (out.size() < bytes) out.resize(bytes);
  FEEDLINE_CHECK_OK(run_steps(*drawing.steps, decoded, emitter, active_kernels(), *workspace.impl,
                              reinterpret_cast<std::byte*>(out.data())));
  const int channels = static_cast<int>(emitter.spec().shape[2]);
  const auto stride = static_cast<std::size_t>(drawing.size.width) * static_cast<std::size_t>(channels);
  return memory::PixelView{out.data(), drawing.size.width, drawing.size.height, channels, stride};
}

std::vector<DrawnValue> SharedSteps::values(const Drawing& drawing) const { return values_of(drawing); }

std::vector<std::string> SharedSteps::explain() const {
  std::vector<std::string> lines = explain_operations(operations_, "only the pixels that the views need");
  if (first_ == 0)
    lines.insert(lines.begin(), std::string("decode to ") + (mode_ == ColorMode::kRgb ? "RGB" : "L") +
                                    (applies_exif_ ? ", turned as its EXIF orientation says" : ""));
  return lines;
}

}  // namespace feedline::transform
