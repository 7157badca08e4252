// SPDX-License-Identifier: Apache-2.0
#include "transform/preparation.h"

#include <utility>

#include "base/check.h"
#include "transform/compiled_chain.h"
#include "transform/kernels/variants.h"
#include "transform/operation/image_operation.h"
#include "transform/operation/inference.h"
#include "transform/runner.h"

namespace feedline::transform {

Preparation::Preparation(std::vector<Operation> operations, ColorMode mode, bool applies_exif, int channels)
    : operations_(std::move(operations)), mode_(mode), applies_exif_(applies_exif), channels_(channels) {}

Result<std::shared_ptr<const Preparation>> Preparation::compile(std::span<const Operation> operations) {
  FEEDLINE_TRY(const Inferred inferred, infer(operations));
  if (inferred.values != PixelValues::kBytes)
    return config_error("cache: a cache stores 8-bit pixels; omit dtype= in decode, or the cache");
  if (inferred.fidelity == Fidelity::kNvjpeg)
    return config_error("cache: a cache stores pixels that the CPU decodes; omit device= in decode");
  if (inferred.fidelity != Fidelity::kExact)
    return config_error("cache: a cache stores exact pixels; omit fidelity=\"fast\" in decode");
  for (const Operation& operation : operations) {
    const std::string name(name_of(operation));
    const Properties properties = operation->properties();
    if (properties.is_random)
      return config_error("cache: " + name +
                          " before cache would draw only once, so its result would be the same in every epoch; place " +
                          name + " after cache");
    if (properties.stage == Stage::kValues)
      return config_error("cache: a cache stores 8-bit pixels, and " + name +
                          " runs when pixels are written to the batch; place " + name + " after cache");
  }
  return std::shared_ptr<const Preparation>(
      new Preparation({operations.begin(), operations.end()}, inferred.mode, inferred.applies_exif, inferred.channels));
}

Result<Size> Preparation::draw(Size image, Drawing& drawing) const {
  return draw_operations(operations_, 0, image, {}, drawing);  // no operation uses the key
}

Result<void> Preparation::apply(const Drawing& drawing, memory::PixelView decoded, Size size, Workspace& workspace,
                                std::span<std::byte> out) const {
  Pointwise as_they_are(channels_);
  as_they_are.finish();
  const Emitter emitter(std::move(as_they_are), channels_, size, Layout::kNhwc);
  FEEDLINE_CHECK(out.size() == emitter.spec().bytes());
  FEEDLINE_CHECK(decoded.width == drawing.region.width && decoded.height == drawing.region.height);
  return run_steps(*drawing.steps, decoded, emitter, active_kernels(), *workspace.impl, out.data());
}

std::string Preparation::description() const {
  std::string text = mode_ == ColorMode::kRgb ? "RGB" : "L";
  if (applies_exif_) text += ", turned by EXIF";
  bool pillow = false;
  for (const Operation& operation : operations_) {
    const Properties properties = operation->properties();
    if (properties.stage != Stage::kDecode) text += ", " + describe(operation);
    pillow = pillow || properties.depends_on_pillow;
  }
  return pillow ? text + ", as Pillow " + std::to_string(followed_pillow()) : text;
}

std::vector<std::string> Preparation::explain() const {
  std::vector<std::string> lines = explain_operations(operations_, "only the pixels it needs are decoded");
  lines.insert(lines.begin(), std::string("decode to ") + (mode_ == ColorMode::kRgb ? "RGB" : "L") +
                                  (applies_exif_ ? ", turned as its EXIF orientation says" : ""));
  return lines;
}

}  // namespace feedline::transform
