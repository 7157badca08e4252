// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "transform/augmentation_policy.h"
#include "transform/sampling.h"
#include "transform/steps.h"

namespace feedline::transform {

// Draws one operation after the other and records what each decided.
// Builder: what is made of it, as StepBuilder.
template <typename Builder>
class Drawer {
 public:
  // The random operations draw from streams that count from `first_stream`. All of it outlives the drawer.
  Drawer(std::uint32_t first_stream, const base::SampleKey& key, std::vector<Decision>& decisions, Builder& builder)
      : key_(key), first_stream_(first_stream), decisions_(decisions), builder_(builder) {}

  Result<void> draw(int index, const Operation& operation) {
    index_ = index;
    return std::visit(*this, operation);
  }
  Result<void> operator()(const op::Decode&) { return {}; }
  Result<void> operator()(const op::Skipped&) { return {}; }
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

  Result<void> operator()(const op::RandomChange& o) {
    base::Random random = stream();
    if (draw_coin(o.p, random)) augment({o.augmentation, o.amount}, Interpolation::kNearest, {});
    return {};
  }
  Result<void> operator()(const op::AutoAugment& o) {
    return augment_by(o, [&](base::Random& random, Augmentations& drawn) {
      draw_auto_augment(o.policy, builder_.size(), random, drawn);
    });
  }
  Result<void> operator()(const op::RandAugment& o) {
    return augment_by(o, [&](base::Random& random, Augmentations& drawn) {
      draw_rand_augment(o.num_ops, o.magnitude, o.num_magnitude_bins, builder_.size(), random, drawn);
    });
  }
  Result<void> operator()(const op::TrivialAugmentWide& o) {
    return augment_by(o, [&](base::Random& random, Augmentations& drawn) {
      draw_trivial_augment_wide(o.num_magnitude_bins, builder_.size(), random, drawn);
    });
  }

 private:
  void augment(const DrawnAugmentation& drawn, Interpolation interpolation, const std::array<std::uint8_t, 3>& fill) {
    builder_.augment(drawn, interpolation, fill);
    record(Decision::Kind::kAugmentation).augmentation = drawn;
  }
  // draw(random, drawn): the policy of an operation.
  template <typename Op, typename Draw>
  Result<void> augment_by(const Op& o, Draw draw) {
    base::Random random = stream();
    Augmentations drawn;
    draw(random, drawn);
    for (const DrawnAugmentation& one : drawn) augment(one, o.interpolation, o.fill);
    return {};
  }
  static std::string text(Size size) { return std::to_string(size.height) + " x " + std::to_string(size.width); }
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
  Builder& builder_;
  int index_ = 0;
};

}  // namespace feedline::transform
