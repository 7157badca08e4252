// SPDX-License-Identifier: Apache-2.0
#include "transform/chain.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "transform/border.h"
#include "transform/colour.h"
#include "transform/emitter.h"
#include "transform/inference.h"
#include "transform/resizer.h"
#include "transform/steps.h"
#include "transform/variants.h"

namespace feedline::transform {

Drawing::Drawing() : steps(std::make_unique<Steps>()) {}
Drawing::~Drawing() = default;
Drawing::Drawing(Drawing&&) noexcept = default;
Drawing& Drawing::operator=(Drawing&&) noexcept = default;

struct Workspace::Impl {
  Resizer resizer;
  std::array<memory::PixelBuffer, 2> images;  // the steps' results, in turn
  std::size_t next = 0;
  std::vector<int> border_map;
  std::vector<std::uint8_t> row;  // of the emitter

  memory::PixelBuffer& take() { return images[next ^= 1]; }
};

Workspace::Workspace() : impl(std::make_unique<Impl>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

namespace {

// Draws the operations one after the other. One object per draw.
class Draw {
 public:
  Draw(Size image, const base::SampleKey& key, Drawing& drawing, int channels)
      : builder_(image, drawing), key_(key), decisions_(drawing.steps->decisions), channels_(channels) {}

  Result<void> apply(const Operation& operation, int index) {
    index_ = index;
    return std::visit(*this, operation);
  }
  void finish() { builder_.finish(); }

  Result<void> operator()(const op::Decode&) { return {}; }
  Result<void> operator()(const op::Resize& o) {
    const Size out = resized_size(builder_.size(), o);
    if (out.width < 1 || out.height < 1) return fail("resize: max_size leaves no pixel of an image of ");
    builder_.resize(out, o.interpolation);
    decide(Decision::Kind::kSize).size = out;
    return {};
  }
  Result<void> operator()(const op::CenterCrop& o) {
    const CenterCropPlan plan = plan_center_crop(builder_.size(), o.size);
    builder_.pad(plan.padding, PaddingMode::kConstant, {});
    builder_.crop(plan.box);
    decide(Decision::Kind::kCrop).box = plan.box;
    return {};
  }
  Result<void> operator()(const op::RandomCrop& o) {
    const RandomCropPadding padding = plan_random_crop_padding(builder_.size(), o);
    for (const Padding& one : {padding.always, padding.width_needed, padding.height_needed})
      builder_.pad(one, o.padding_mode, o.fill);
    const Size whole = builder_.size();
    if (whole.height < o.size.height || whole.width < o.size.width)
      return fail("random_crop: the crop of " + std::to_string(o.size.height) + " x " + std::to_string(o.size.width) +
                  " is larger than an image of ");
    base::Random random(key_, static_cast<std::uint32_t>(index_));
    const Box box = draw_crop(whole, o.size, random);
    builder_.crop(box);
    decide(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::RandomResizedCrop& o) {
    base::Random random(key_, static_cast<std::uint32_t>(index_));
    const Box box = draw_resized_crop(builder_.size(), o.scale, o.ratio, random);
    builder_.crop(box);
    builder_.resize(o.size, o.interpolation);
    decide(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::RandomHorizontalFlip& o) {
    const bool flip = coin(o.p);
    builder_.flip(flip, false);
    return {};
  }
  Result<void> operator()(const op::RandomVerticalFlip& o) {
    const bool flip = coin(o.p);
    builder_.flip(false, flip);
    return {};
  }
  Result<void> operator()(const op::Pad& o) {
    builder_.pad(o.padding, o.padding_mode, o.fill);
    decide(Decision::Kind::kPadding).padding = o.padding;
    return {};
  }
  Result<void> operator()(const op::Grayscale& o) {
    if (channels_ == 3 || o.num_output_channels == 3) builder_.grayscale(o.num_output_channels);
    channels_ = o.num_output_channels;
    return {};
  }
  Result<void> operator()(const op::ColorJitter& o) {
    base::Random random(key_, static_cast<std::uint32_t>(index_));
    const JitterDrawing jitter = draw_jitter(o, random);
    builder_.jitter(jitter);
    decide(Decision::Kind::kJitter).jitter = jitter;
    return {};
  }
  Result<void> operator()(const op::Normalize&) { return {}; }
  Result<void> operator()(const op::ToDtype&) { return {}; }

 private:
  Decision& decide(Decision::Kind kind) {
    Decision& decision = decisions_.emplace_back();
    decision.operation = index_;
    decision.kind = kind;
    return decision;
  }
  bool coin(double p) {
    base::Random random(key_, static_cast<std::uint32_t>(index_));
    return decide(Decision::Kind::kFlip).flip = draw_coin(p, random);
  }
  Result<void> fail(const std::string& what) const {
    const Size size = builder_.size();
    return data_error(what + std::to_string(size.height) + " x " + std::to_string(size.width) + " pixels", "transform");
  }

  StepBuilder builder_;
  const base::SampleKey& key_;
  std::vector<Decision>& decisions_;
  int channels_;
  int index_ = 0;
};

Result<memory::PixelView> copied(memory::PixelView in, bool flip_x, bool flip_y, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  const auto channels = static_cast<std::size_t>(in.channels);
  const auto width = static_cast<std::size_t>(in.width);
  for (int y = 0; y < in.height; ++y) {
    const std::uint8_t* from = in.row(flip_y ? in.height - 1 - y : y);
    std::uint8_t* to = out.row(y);
    if (!flip_x) {
      std::memcpy(to, from, width * channels);
      continue;
    }
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c) to[x * channels + c] = from[(width - 1 - x) * channels + c];
  }
  return out.view();
}

Result<memory::PixelView> resized(const ResizeStep& step, memory::PixelView in, Resizer& resizer,
                                  memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(step.window.width, step.window.height, in.channels));
  resizer.begin(step, in, active_kernels());
  const std::size_t row_bytes = static_cast<std::size_t>(step.window.width) * static_cast<std::size_t>(in.channels);
  for (int y = 0; y < step.window.height; ++y) std::memcpy(out.row(y), resizer.next_row(), row_bytes);
  return out.view();
}

// Runs one step and returns its result, in one of the workspace's images or still in `in`'s memory.
class StepRunner {
 public:
  StepRunner(memory::PixelView in, Workspace::Impl& workspace) : in_(in), workspace_(workspace) {}

  Result<memory::PixelView> operator()(const CropStep& step) {
    const std::size_t offset = static_cast<std::size_t>(step.box.left) * static_cast<std::size_t>(in_.channels);
    return memory::PixelView{in_.row(step.box.top) + offset, step.box.width, step.box.height, in_.channels, in_.stride};
  }
  Result<memory::PixelView> operator()(const ResizeStep& step) {
    return resized(step, in_, workspace_.resizer, workspace_.take());
  }
  Result<memory::PixelView> operator()(const FlipStep& step) { return copied(in_, step.x, step.y, workspace_.take()); }
  Result<memory::PixelView> operator()(const PadStep& step) {
    memory::PixelBuffer& out = workspace_.take();
    FEEDLINE_CHECK_OK(pad(in_, step, workspace_.border_map, out));
    return out.view();
  }
  Result<memory::PixelView> operator()(const GrayscaleStep& step) {
    memory::PixelBuffer& out = workspace_.take();
    FEEDLINE_CHECK_OK(grayscale(in_, step.channels, out));
    return out.view();
  }
  Result<memory::PixelView> operator()(const JitterStep& step) {
    memory::PixelBuffer& out = workspace_.take();
    FEEDLINE_CHECK_OK(copied(in_, false, false, out));
    jitter(out, step.drawing);
    return out.view();
  }

 private:
  memory::PixelView in_;
  Workspace::Impl& workspace_;
};

std::vector<double> numbers(const Box& box) {
  return {double(box.left), double(box.top), double(box.width), double(box.height)};
}

void add_values(const std::string& operation, const Decision& decision, std::vector<DrawnValue>& values) {
  switch (decision.kind) {
    case Decision::Kind::kCrop:
      values.push_back({operation, "crop", numbers(decision.box)});
      return;
    case Decision::Kind::kFlip:
      values.push_back({operation, "flip", {decision.flip ? 1.0 : 0.0}});
      return;
    case Decision::Kind::kSize:
      values.push_back({operation, "size", {double(decision.size.height), double(decision.size.width)}});
      return;
    case Decision::Kind::kPadding: {
      const Padding& p = decision.padding;
      values.push_back({operation, "padding", {double(p.left), double(p.top), double(p.right), double(p.bottom)}});
      return;
    }
    case Decision::Kind::kJitter: {
      const JitterDrawing& j = decision.jitter;
      values.push_back({operation, "order", {j.order.begin(), j.order.end()}});
      const std::pair<const char*, std::optional<double>> factors[] = {
          {"brightness", j.brightness}, {"contrast", j.contrast}, {"saturation", j.saturation}, {"hue", j.hue}};
      for (const auto& [name, factor] : factors)
        if (factor) values.push_back({operation, name, {*factor}});
      return;
    }
  }
}

class CompiledChain final : public Chain {
 public:
  CompiledChain(std::vector<Operation> operations, const Inferred& inferred, Emitter emitter)
      : operations_(std::move(operations)), mode_(inferred.mode), emitter_(std::move(emitter)) {}

  ColorMode color_mode() const override { return mode_; }
  const ArraySpec& output() const override { return emitter_.spec(); }

  Result<void> draw(Size image, const base::SampleKey& key, Drawing& drawing) const override {
    Draw draw(image, key, drawing, mode_ == ColorMode::kRgb ? 3 : 1);
    for (std::size_t i = 0; i < operations_.size(); ++i)
      FEEDLINE_CHECK_OK(draw.apply(operations_[i], static_cast<int>(i)));
    draw.finish();
    return {};
  }

  Result<void> apply(const Drawing& drawing, memory::PixelView view, Workspace& workspace,
                     ArrayView out) const override {
    const Drawing::Steps& steps = *drawing.steps;
    Workspace::Impl& scratch = *workspace.impl;
    // a resize at the end goes row by row from the first-level cache into the output
    const ResizeStep* last = steps.list.empty() ? nullptr : std::get_if<ResizeStep>(&steps.list.back());
    const std::size_t count = steps.list.size() - (last ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) {
      FEEDLINE_TRY(view, std::visit(StepRunner(view, scratch), steps.list[i]));
    }
    const Kernels& kernels = active_kernels();
    const int height = last ? last->window.height : view.height;
    if (last) scratch.resizer.begin(*last, view, kernels);
    for (int y = 0; y < height; ++y) {
      const std::uint8_t* row = last ? scratch.resizer.next_row() : view.row(y);
      emitter_.emit(row, steps.flip_y ? height - 1 - y : y, steps.flip_x, kernels, scratch.row, out.data);
    }
    return {};
  }

  std::vector<DrawnValue> values(const Drawing& drawing) const override {
    std::vector<DrawnValue> values;
    for (const Decision& decision : drawing.steps->decisions)
      add_values(std::string(name_of(operations_[static_cast<std::size_t>(decision.operation)])), decision, values);
    return values;
  }

  std::vector<std::string> explain() const override {
    std::vector<std::string> lines{"decode: the needed region only"};
    for (const Operation& operation : operations_) lines.push_back(describe(operation));
    const ArraySpec& spec = emitter_.spec();
    lines.push_back("into " + std::string(name_of(spec.dtype)) + " " + spec.shape.to_string() + ", " +
                    active_kernels().name + " kernels");
    return lines;
  }

 private:
  std::vector<Operation> operations_;
  ColorMode mode_;
  Emitter emitter_;
};

Pointwise pointwise_of(std::span<const Operation> operations, const Inferred& inferred, std::optional<DType> dtype) {
  Pointwise pointwise(inferred.channels);
  for (const Operation& operation : operations) {
    if (const auto* normalize = std::get_if<op::Normalize>(&operation)) pointwise.normalize(*normalize);
    if (const auto* to = std::get_if<op::ToDtype>(&operation)) pointwise.convert(to->dtype, to->scale);
  }
  if (dtype) pointwise.convert(*dtype, true);
  pointwise.finish();
  return pointwise;
}

}  // namespace

Result<std::shared_ptr<const Chain>> Chain::compile(std::span<const Operation> operations, std::optional<DType> dtype,
                                                    Layout layout) {
  FEEDLINE_TRY(const Inferred inferred, infer(operations));
  if (!inferred.size)
    return config_error(
        "the images have no fixed size: end the chain with resize((height, width)), center_crop or a random crop");
  if (dtype && (*dtype == DType::kInt64 || (*dtype == DType::kUint8 && inferred.dtype != DType::kUint8)))
    return config_error("dtype: images that are " + std::string(name_of(inferred.dtype)) + " cannot become " +
                        std::string(name_of(*dtype)));
  Emitter emitter(pointwise_of(operations, inferred, dtype), inferred.channels, *inferred.size, layout);
  return std::make_shared<CompiledChain>(std::vector<Operation>(operations.begin(), operations.end()), inferred,
                                         std::move(emitter));
}

Result<void> Chain::check(std::span<const Operation> operations) {
  FEEDLINE_CHECK_OK(infer(operations));
  return {};
}

Result<void> resize(memory::PixelView in, Size out_size, Interpolation interpolation, Workspace& workspace,
                    memory::PixelBuffer& out) {
  if (out_size.width < 1 || out_size.height < 1) return config_error("resize: every side must be at least 1");
  if (out_size.width == in.width && out_size.height == in.height) {
    FEEDLINE_CHECK_OK(copied(in, false, false, out));
    return {};
  }
  const ResizeStep step{{in.height, in.width}, out_size, {0, 0, out_size.width, out_size.height}, interpolation, false, 0, 0};
  FEEDLINE_CHECK_OK(resized(step, in, workspace.impl->resizer, out));
  return {};
}

}  // namespace feedline::transform
