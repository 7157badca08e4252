// SPDX-License-Identifier: Apache-2.0
#include "transform/compiled_chain.h"

#include <utility>

#include "base/check.h"
#include "transform/runner.h"
#include "transform/variants.h"

namespace feedline::transform {
namespace {

std::string text(Size size) { return std::to_string(size.height) + " x " + std::to_string(size.width); }

// Draws one operation after the other and records what each decided.
class Drawer {
 public:
  Drawer(Size image, std::uint32_t first_stream, const base::SampleKey& key, Drawing& drawing)
      : key_(key), first_stream_(first_stream), decisions_(drawing.steps->decisions), builder_(image, drawing) {}

  Result<void> draw(int index, const Operation& operation) {
    index_ = index;
    return std::visit(*this, operation);
  }
  Size finish() {
    builder_.finish();
    return builder_.size();
  }

  Result<void> operator()(const op::Decode&) { return {}; }
  Result<void> operator()(const op::Normalize&) { return {}; }  // part of the output's table
  Result<void> operator()(const op::ToDtype&) { return {}; }

  Result<void> operator()(const op::Resize& o) {
    const Size size = resized_size(builder_.size(), o);
    if (size.width < 1 || size.height < 1 || std::int64_t{size.width} * size.height > memory::PixelBuffer::kMaxPixels)
      return data_error("resize: an image of " + text(builder_.size()) + " would become " + text(size), "transform");
    builder_.resize(size, o.interpolation);
    record(Decision::Kind::kSize).size = size;
    return {};
  }
  Result<void> operator()(const op::CenterCrop& o) {
    const CenterCropPlan plan = plan_center_crop(builder_.size(), o.size);
    builder_.pad(plan.padding, PaddingMode::kConstant, {});
    builder_.crop(plan.box);
    record(Decision::Kind::kCrop).box = plan.box;
    return {};
  }
  Result<void> operator()(const op::RandomCrop& o) {
    const RandomCropPadding padding = plan_random_crop_padding(builder_.size(), o);
    builder_.pad(padding.always, o.padding_mode, o.fill);
    builder_.pad(padding.width_needed, o.padding_mode, o.fill);
    builder_.pad(padding.height_needed, o.padding_mode, o.fill);
    const Size whole = builder_.size();
    if (whole.height < o.size.height || whole.width < o.size.width)
      return data_error("random_crop: the crop of " + text(o.size) + " is larger than the image, which is " +
                            text(whole) + " there; pad_if_needed would help",
                        "transform");
    base::Random random = stream();
    const Box box = draw_crop(whole, o.size, random);
    builder_.crop(box);
    record(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::RandomResizedCrop& o) {
    base::Random random = stream();
    const Box box = draw_resized_crop(builder_.size(), o.scale, o.ratio, random);
    builder_.crop(box);
    builder_.resize(o.size, o.interpolation);
    record(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::RandomHorizontalFlip& o) { return flip(o.p, true); }
  Result<void> operator()(const op::RandomVerticalFlip& o) { return flip(o.p, false); }
  Result<void> operator()(const op::Pad& o) {
    builder_.pad(o.padding, o.padding_mode, o.fill);
    record(Decision::Kind::kPadding).padding = o.padding;
    return {};
  }
  Result<void> operator()(const op::Grayscale& o) {
    builder_.grayscale(o.num_output_channels);
    return {};
  }
  Result<void> operator()(const op::ColorJitter& o) {
    base::Random random = stream();
    const JitterDrawing drawn = draw_jitter(o, random);
    builder_.jitter(drawn);
    record(Decision::Kind::kJitter).jitter = drawn;
    return {};
  }

 private:
  base::Random stream() const { return base::Random(key_, first_stream_ + static_cast<std::uint32_t>(index_)); }
  Decision& record(Decision::Kind kind) {
    Decision& decision = decisions_.emplace_back();
    decision.operation = index_;
    decision.kind = kind;
    return decision;
  }
  Result<void> flip(double p, bool horizontal) {
    base::Random random = stream();
    const bool flips = draw_coin(p, random);
    builder_.flip(flips && horizontal, flips && !horizontal);
    record(Decision::Kind::kFlip).flip = flips;
    return {};
  }

  const base::SampleKey& key_;
  const std::uint32_t first_stream_;
  std::vector<Decision>& decisions_;
  StepBuilder builder_;
  int index_ = 0;
};

void append_jitter(std::string_view operation, const JitterDrawing& drawn, std::vector<DrawnValue>& values) {
  std::vector<double> order(drawn.order.begin(), drawn.order.end());
  values.push_back({std::string(operation), "order", std::move(order)});
  const auto add = [&](const char* name, const std::optional<double>& factor) {
    if (factor) values.push_back({std::string(operation), name, {*factor}});
  };
  add("brightness", drawn.brightness);
  add("contrast", drawn.contrast);
  add("saturation", drawn.saturation);
  add("hue", drawn.hue);
}

}  // namespace

Result<Size> draw_operations(std::span<const Operation> operations, std::uint32_t first_stream, Size image,
                             const base::SampleKey& key, Drawing& drawing) {
  FEEDLINE_CHECK(image.width > 0 && image.height > 0);
  Drawer drawer(image, first_stream, key, drawing);
  for (std::size_t i = 0; i < operations.size(); ++i)
    FEEDLINE_CHECK_OK(drawer.draw(static_cast<int>(i), operations[i]));
  return drawer.finish();
}

CompiledChain::CompiledChain(std::vector<Operation> operations, Input input, Emitter emitter)
    : operations_(std::move(operations)), input_(input), emitter_(std::move(emitter)) {}

Result<void> CompiledChain::draw(Size image, const base::SampleKey& key, Drawing& drawing) const {
  FEEDLINE_CHECK_OK(draw_operations(operations_, input_.first_stream, image, key, drawing));
  drawing.planes = input_.fidelity == Fidelity::kFast ? useful_planes(*drawing.steps) : std::nullopt;
  return {};
}

Result<void> CompiledChain::apply(const Drawing& drawing, memory::PixelView decoded, Workspace& workspace,
                                  ArrayView out) const {
  FEEDLINE_CHECK(out.spec == output());
  FEEDLINE_CHECK(decoded.width == drawing.region.width && decoded.height == drawing.region.height);
  FEEDLINE_CHECK(decoded.channels == (input_.mode == ColorMode::kRgb ? 3 : 1));
  return run_steps(*drawing.steps, decoded, emitter_, active_kernels(), *workspace.impl, out.data);
}

Result<void> CompiledChain::apply(const Drawing& drawing, const memory::Planes& decoded, Workspace& workspace,
                                  ArrayView out) const {
  FEEDLINE_CHECK(out.spec == output());
  FEEDLINE_CHECK(drawing.planes.has_value());
  FEEDLINE_CHECK(decoded.count == 1 || (decoded.count == 3 && input_.mode == ColorMode::kRgb));
  const PlanarImage image{decoded, drawing.region, input_.mode == ColorMode::kRgb ? 3 : 1};
  return run_steps(*drawing.steps, image, emitter_, active_kernels(), *workspace.impl, out.data);
}

std::vector<DrawnValue> CompiledChain::values(const Drawing& drawing) const {
  std::vector<DrawnValue> values;
  for (const Decision& d : drawing.steps->decisions) {
    const std::string operation(name_of(operations_[static_cast<std::size_t>(d.operation)]));
    const auto add = [&](const char* name, std::initializer_list<int> numbers) {
      values.push_back({operation, name, std::vector<double>(numbers.begin(), numbers.end())});
    };
    switch (d.kind) {
      case Decision::Kind::kCrop:
        add("crop", {d.box.left, d.box.top, d.box.width, d.box.height});
        break;
      case Decision::Kind::kFlip:
        add("flip", {d.flip ? 1 : 0});
        break;
      case Decision::Kind::kSize:
        add("size", {d.size.height, d.size.width});
        break;
      case Decision::Kind::kPadding:
        add("padding", {d.padding.left, d.padding.top, d.padding.right, d.padding.bottom});
        break;
      case Decision::Kind::kJitter:
        append_jitter(operation, d.jitter, values);
        break;
    }
  }
  return values;
}

}  // namespace feedline::transform
