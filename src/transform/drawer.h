// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "memory/pixels.h"
#include "transform/augmentation_policy.h"
#include "transform/iou_crop.h"
#include "transform/sampling.h"
#include "transform/steps.h"
#include "transform/warp.h"

namespace feedline::transform {

// A builder of boxes or points, which may lie outside of the image.
template <typename Builder>
concept MovesNumbers = requires {
  typename Builder::Number;
};

// Draws one operation after the other and records what each decided.
// Builder: what is made of it, as StepBuilder.
template <typename Builder>
class Drawer {
 public:
  // The random operations draw from streams that count from `first_stream`. All of it outlives the drawer.
  // iou_crops: of the sample; nullptr: none is known. The builder of boxes puts them there.
  Drawer(std::uint32_t first_stream, const base::SampleKey& key, std::vector<Decision>& decisions, Builder& builder,
         IouCrops* iou_crops = nullptr)
      : key_(key), first_stream_(first_stream), decisions_(decisions), builder_(builder), iou_crops_(iou_crops) {}

  void count_from(std::uint32_t first_stream) { first_stream_ = first_stream; }
  Result<void> draw(int index, const Operation& operation) {
    index_ = index;
    stream_ = first_stream_ + static_cast<std::uint32_t>(index);
    name_ = name_of(operation);
    return std::visit(*this, operation);
  }
  Result<void> operator()(const op::Decode&) { return {}; }
  Result<void> operator()(const op::Skipped&) { return {}; }
  // Those two are part of the output's table. What is written over behind them is the output.
  Result<void> operator()(const op::Normalize&) {
    of_output_ = true;
    return {};
  }
  Result<void> operator()(const op::ToDtype& o) {
    of_output_ = of_output_ || o.dtype != DType::kUint8;
    return {};
  }
  Result<void> operator()(const op::Boxes&) { return {}; }  // what they are is known before

  Result<void> operator()(const op::Resize& o) {
    return resize("resize", resized_size(builder_.size(), o), chosen(o.interpolation));
  }
  Result<void> operator()(const op::CenterCrop& o) {
    const CenterCropPlan plan = plan_center_crop(builder_.size(), o.size, o.rounds_down);
    if constexpr (MovesNumbers<Builder>) {
      builder_.crop(central_box(builder_.size(), o));
    } else {
      builder_.pad(plan.padding, o.padding_mode, o.fill);
      builder_.crop(plan.box);
    }
    record(Decision::Kind::kCrop).box = plan.box;
    return {};
  }
  Result<void> operator()(const op::CornerCrop& o) {
    const Size whole = builder_.size();
    if (whole.height < o.size.height || whole.width < o.size.width)
      return data_error(
          "corner_crop: the crop of " + text(o.size) + " is larger than the image, which is " + text(whole) + " there",
          "transform");
    const Box box = plan_corner_crop(whole, o);
    builder_.crop(box);
    record(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::TrimBorder& o) {
    const std::optional<Box> box = trimmed_box(builder_.size(), o);
    if (!box)
      return data_error("trim_border: a border of " + std::to_string(o.border) +
                            " leaves nothing of the image, which is " + text(builder_.size()) + " there",
                        "transform");
    builder_.crop(*box);
    record(Decision::Kind::kCrop).box = *box;
    return {};
  }
  Result<void> operator()(const op::RandomCrop& o) {
    pad_before_crop(o);
    const Size whole = builder_.size();
    if (whole.height < o.size.height || whole.width < o.size.width)
      return data_error("random_crop: the crop of " + text(o.size) + " is larger than the image, which is " +
                            text(whole) + " there; pad_if_needed would help",
                        "transform");
    base::Random random = stream();
    const Box box = draw_crop(whole, o.size, random);
    if (box.width != whole.width || box.height != whole.height) builder_.crop(box);
    record(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::RandomCropOrPad& o) {
    base::Random random = stream();
    const Size whole = builder_.size();
    Box box = draw_crop_or_pad(whole, o.size, random);
    if constexpr (MovesNumbers<Builder>) {
      builder_.crop(box);
    } else {
      const Padding padding{std::max(-box.left, 0), std::max(-box.top, 0),
                            std::max(box.left + box.width - whole.width, 0),
                            std::max(box.top + box.height - whole.height, 0)};
      FEEDLINE_CHECK_OK(pad_around(padding, o.padding_mode, o.fill));
      box.left = std::max(box.left, 0);
      box.top = std::max(box.top, 0);
      builder_.crop(box);
    }
    record(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::RandomResizedCrop& o) {
    base::Random random = stream();
    const Box box = draw_resized_crop(builder_.size(), o.scale, o.ratio, random);
    builder_.crop(box);
    builder_.resize(o.size, chosen(o.interpolation, random));
    record(Decision::Kind::kCrop).box = box;
    return {};
  }
  Result<void> operator()(const op::RandomHorizontalFlip& o) { return flip(o.p, true); }
  Result<void> operator()(const op::RandomVerticalFlip& o) { return flip(o.p, false); }
  Result<void> operator()(const op::Pad& o) { return pad_around(o.padding, o.padding_mode, o.fill); }
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

  Result<void> operator()(const op::SanitizeBoundingBoxes& o) {
    if constexpr (requires { builder_.sanitize(o); }) builder_.sanitize(o);
    return {};
  }
  Result<void> operator()(const op::RandomIouCrop& o) {
    if constexpr (requires(base::Random random) { builder_.draw_iou_crop(o, random); }) {
      base::Random random = stream();
      iou_crops_->note(stream_, builder_.draw_iou_crop(o, random));
    }
    const auto* const drawn = iou_crops_ == nullptr ? nullptr : iou_crops_->find(stream_);
    if (drawn == nullptr)
      return data_error("random_iou_crop: what it draws follows from the boxes of a sample, and there are none here",
                        "transform");
    if (!*drawn) return {};
    builder_.crop(**drawn);
    if constexpr (requires { builder_.clear_outside(); }) builder_.clear_outside();
    record(Decision::Kind::kCrop).box = **drawn;
    return {};
  }
  Result<void> operator()(const op::RandomZoomOut& o) {
    base::Random random = stream();
    const std::optional<Padding> padding = draw_zoom_out(o, builder_.size(), random);
    if (!padding) return {};
    const Size size = padded(builder_.size(), *padding);
    if (std::int64_t{size.width} * size.height > memory::PixelBuffer::kMaxPixels)
      return data_error("random_zoom_out: an image of " + text(builder_.size()) + " would become " + text(size),
                        "transform");
    builder_.pad(*padding, PaddingMode::kConstant, o.fill);
    record(Decision::Kind::kPadding).padding = *padding;
    return {};
  }
  Result<void> operator()(const op::RandomPhotometricDistort& o) {
    base::Random random = stream();
    const DistortDrawing drawn = draw_distortion(o, random);
    if (drawn.changes) {
      builder_.jitter(drawn.jitter);
      record(Decision::Kind::kJitter).jitter = drawn.jitter;
    }
    if (drawn.channels) {
      if constexpr (requires { builder_.permute_channels(*drawn.channels); })
        builder_.permute_channels(*drawn.channels);
      record(Decision::Kind::kPermutation).channels = *drawn.channels;
    }
    return {};
  }

  Result<void> operator()(const op::RandomChange& o) {
    base::Random random = stream();
    if (draw_coin(o.p, random)) augment({o.augmentation, o.amount}, Interpolation::kNearest, {});
    return {};
  }
  Result<void> operator()(const op::AutoAugment& o) {
    return augment_by(o, [&](base::Random& random, Augmentations& drawn) {
      draw_auto_augment(o.policy, builder_.size(), random, drawn, o.version);
    });
  }
  Result<void> operator()(const op::RandAugment& o) {
    return augment_by(o, [&](base::Random& random, Augmentations& drawn) {
      draw_rand_augment(o.num_ops, o.magnitude, o.num_magnitude_bins, builder_.size(), random, drawn, o.version);
    });
  }
  Result<void> operator()(const op::TrivialAugmentWide& o) {
    return augment_by(o, [&](base::Random& random, Augmentations& drawn) {
      draw_trivial_augment_wide(o.num_magnitude_bins, builder_.size(), random, drawn, o.version);
    });
  }
  Result<void> operator()(const op::AugMix& o) {
    base::Random random = stream();
    const MixDrawing drawn = draw_mix(o.mixture_width, o.alpha, random);
    record_mix(drawn);
    builder_.mix_begin(drawn.image);
    for (int chain = 0; chain < o.mixture_width; ++chain) {
      record_number("chain", chain);
      Augmentations changes;
      draw_aug_mix_chain(o.severity, draw_depth(o.chain_depth, random), o.all_ops, builder_.size(), random, changes);
      augment_each(changes, o, random);
      builder_.mix_add(drawn.chains[static_cast<std::size_t>(chain)]);
    }
    builder_.mix_end(std::nullopt);
    return {};
  }
  Result<void> operator()(const op::TimmAugment& o) {
    base::Random random = stream();
    const std::optional<TimmPolicy::Mix>& mix = o.policy->mix();
    if (!mix) {
      Augmentations drawn;
      o.policy->draw(builder_.size(), random, drawn);
      augment_as_timm(o, drawn, random);
      return {};
    }
    const MixDrawing drawn = draw_timm_mix(mix->width, mix->alpha, mix->in_turn, random);
    record_mix(drawn);
    builder_.mix_begin(0, mix->in_turn);
    for (int chain = 0; chain < mix->width; ++chain) {
      record_number("chain", chain);
      Augmentations changes;
      o.policy->draw_chain(draw_depth(mix->depth, random), builder_.size(), random, changes);
      augment_as_timm(o, changes, random);
      builder_.mix_add(drawn.chains[static_cast<std::size_t>(chain)]);
    }
    builder_.mix_end(drawn.blended);
    return {};
  }

  Result<void> operator()(const op::GaussianBlur& o) {
    base::Random random = stream();
    const double sigma = random.uniform(o.sigma.low, o.sigma.high);
    builder_.change(pixel_op::GaussianBlur{o.kernel_size, {sigma, sigma}}, false);
    record_number("sigma", sigma);
    return {};
  }
  Result<void> operator()(const op::RandomErasing& o) {
    base::Random random = stream();
    if (!draw_coin(o.p, random)) return {};
    const int count =
        o.count[0] + static_cast<int>(random.below(static_cast<std::uint32_t>(o.count[1] - o.count[0] + 1)));
    for (int i = 0; i < count; ++i) {
      const std::optional<Box> box = draw_erased(builder_.size(), o.scale, o.ratio, count, random);
      if (!box) continue;
      Erasure erasure{.box = *box, .value = {}, .noise = {}, .operation = index_};
      for (std::size_t c = 0; c < 3; ++c) {
        erasure.value[c] = o.value[std::min(c, o.value.size() - 1)];
        if (o.noise == op::RandomErasing::Noise::kColour) erasure.value[c] = static_cast<float>(draw_normal(random));
      }
      // each rectangle has 2^24 blocks of its own, behind those that are drawn from above
      if (o.noise == op::RandomErasing::Noise::kValues)
        erasure.noise = random.blocks(static_cast<std::uint32_t>(i + 1) << 24);
      builder_.erase(erasure, of_output_);
      Decision& decision = record(Decision::Kind::kBox);
      decision.label = "box";
      decision.box = *box;
    }
    return {};
  }

  Result<void> operator()(const op::RandomApply& o) {
    base::Random random = stream();
    const bool applies = draw_coin(o.p, random);
    record_number("applied", applies ? 1 : 0);
    return applies ? draw_nested(o.operations) : Result<void>{};
  }
  Result<void> operator()(const op::RandomChoice& o) {
    base::Random random = stream();
    const std::size_t chosen = draw_choice(o.chains.size(), o.p, random);
    record_number("choice", static_cast<double>(chosen));
    return draw_nested(o.chains[chosen]);
  }
  Result<void> operator()(const op::RandomOrder& o) {
    base::Random random = stream();
    const Order order = draw_order(o.operations.size(), random);
    for (std::size_t i = 0; i < o.operations.size(); ++i) record_number("order", order[i], i > 0);
    for (std::size_t i = 0; i < o.operations.size(); ++i)
      FEEDLINE_CHECK_OK(draw_nested(order[i], o.operations[order[i]]));
    return {};
  }

  Result<void> operator()(const op::RandomRotation& o) {
    base::Random random = stream();
    const RotationWarp drawn = draw_rotation(o, random);
    return warp("random_rotation", {drawn, chosen(o.interpolation, random), o.fill});
  }
  Result<void> operator()(const op::RandomAffine& o) {
    base::Random random = stream();
    const AffineWarp drawn = draw_affine(o, builder_.size(), random);
    return warp("random_affine", {drawn, chosen(o.interpolation, random), o.fill});
  }
  Result<void> operator()(const op::RandomPerspective& o) {
    base::Random random = stream();
    if (!draw_coin(o.p, random)) return {};
    const PerspectiveWarp drawn = draw_perspective(o.distortion_scale, builder_.size(), random);
    return warp("random_perspective", {drawn, chosen(o.interpolation, random), o.fill});
  }
  Result<void> operator()(const op::ElasticTransform& o) {
    const ElasticWarp drawn{o.alpha, o.sigma, key_, stream_};
    return warp("elastic_transform", {drawn, chosen_beside_noise(o.interpolation), o.fill});
  }

  Result<void> operator()(const op::RandomResize& o) {
    base::Random random = stream();
    const int edge = draw_edge(o, random);
    return resize("random_resize", resized_size(builder_.size(), op::Resize{{edge, 0}, {}}),
                  chosen(o.interpolation, random));
  }
  Result<void> operator()(const op::RandomShortSide& o) {
    base::Random random = stream();
    const Size size = draw_short_side(o, builder_.size(), random);
    return resize("random_short_side", size, chosen(o.interpolation, random));
  }
  Result<void> operator()(const op::ScaleJitter& o) {
    base::Random random = stream();
    const float scale = draw_scale(o.scale_range, random);
    record(Decision::Kind::kScale).scale = scale;
    return resize("scale_jitter", jittered_size(o, builder_.size(), scale), chosen(o.interpolation, random));
  }
  Result<void> operator()(const op::ResizeKeepRatio& o) {
    base::Random random = stream();
    const RatioDrawing drawn = draw_ratio(o, random);
    if (o.scale_p > 0) record_number("scale", drawn.scale);
    if (o.aspect_p > 0) record_number("aspect", drawn.aspect);
    return resize("resize_keep_ratio", kept_ratio_size(o, builder_.size(), drawn), chosen(o.interpolation, random));
  }
  Result<void> operator()(const op::PadTo& o) {
    const Size whole = builder_.size();
    if (whole.height > o.size.height || whole.width > o.size.width)
      return data_error("pad_to: the image, which is " + text(whole) + " there, is larger than " + text(o.size) +
                            "; letterbox or a crop before it would help",
                        "transform");
    return pad_around(plan_pad_to(whole, o.size, o.position), o.padding_mode, o.fill);
  }
  Result<void> operator()(const op::Letterbox& o) {
    FEEDLINE_CHECK_OK(resize("letterbox", letterboxed_size(builder_.size(), o), chosen(o.interpolation)));
    return pad_around(plan_pad_to(builder_.size(), o.size, o.position), PaddingMode::kConstant, o.fill);
  }

 private:
  Result<void> draw_nested(std::span<const Operation> operations) {
    for (std::size_t i = 0; i < operations.size(); ++i) FEEDLINE_CHECK_OK(draw_nested(i, operations[i]));
    return {};
  }
  // Each level has its own eight bits of a stream's number.
  Result<void> draw_nested(std::size_t index, const Operation& operation) {
    const std::uint32_t stream = stream_;
    const std::string_view name = name_;
    stream_ += static_cast<std::uint32_t>(index + 1) << (8 * ++level_);
    name_ = name_of(operation);
    const Result<void> drawn = std::visit(*this, operation);
    --level_;
    stream_ = stream;
    name_ = name;
    return drawn;
  }
  void augment_as_timm(const op::TimmAugment& o, const Augmentations& changes, base::Random& random) {
    for (const DrawnAugmentation& one : changes) {
      const bool moves = moves_pixels(one.augmentation);
      const Interpolation interpolation = moves ? chosen(o.interpolation, random) : Interpolation::kNearest;
      builder_.change(timm_operation(one, builder_.size(), interpolation, o.fill), moves);
      record(Decision::Kind::kAugmentation).augmentation = one;
    }
  }
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
    augment_each(drawn, o, random);
    return {};
  }
  template <typename Op>
  void augment_each(const Augmentations& drawn, const Op& o, base::Random& random) {
    for (const DrawnAugmentation& one : drawn)
      augment(one, moves_pixels(one.augmentation) ? chosen(o.interpolation, random) : Interpolation::kNearest, o.fill);
  }
  // torchvision moves boxes and points by the sum of all borders.
  void pad_before_crop(const op::RandomCrop& o) {
    const RandomCropPadding padding = plan_random_crop_padding(builder_.size(), o);
    if constexpr (MovesNumbers<Builder>) {
      const Padding all = padding.sum();
      if (any(all)) builder_.pad(all, o.padding_mode, o.fill);
    } else {
      builder_.pad(padding.always, o.padding_mode, o.fill);
      builder_.pad(padding.width_needed, o.padding_mode, o.fill);
      builder_.pad(padding.height_needed, o.padding_mode, o.fill);
    }
  }
  Result<void> resize(const char* name, Size size, Interpolation interpolation) {
    FEEDLINE_CHECK_OK(check_outcome(name, size));
    builder_.resize(size, interpolation);
    record(Decision::Kind::kSize).size = size;
    return {};
  }
  Result<void> pad_around(const Padding& padding, PaddingMode mode, const Colour& fill) {
    builder_.pad(padding, mode, fill);
    record(Decision::Kind::kPadding).padding = padding;
    return {};
  }
  Result<void> warp(const char* name, const Warp& drawn) {
    FEEDLINE_CHECK_OK(check_outcome(name, size_after(drawn, builder_.size())));
    builder_.warp(drawn);
    record(Decision::Kind::kWarp).warp = drawn;
    return {};
  }
  Result<void> check_outcome(const char* name, Size size) const {
    if (size.width >= 1 && size.height >= 1 &&
        std::int64_t{size.width} * size.height <= memory::PixelBuffer::kMaxPixels)
      return {};
    return data_error(std::string(name) + ": an image of " + text(builder_.size()) + " would become " + text(size),
                      "transform");
  }
  // kRandom is bilinear or bicubic, as timm has it.
  Interpolation chosen(Interpolation interpolation, base::Random& random) {
    if (interpolation != Interpolation::kRandom) return interpolation;
    return record_chosen(draw_coin(0.5, random));
  }
  // Noise takes the stream's blocks from the first one on, fewer than an image may have pixels: the last one is free.
  Interpolation chosen_beside_noise(Interpolation interpolation) {
    if (interpolation != Interpolation::kRandom) return interpolation;
    const base::Random::Blocks last = stream().blocks(~std::uint32_t{0});
    return record_chosen((base::philox4x32(last.counter, last.key)[0] & 1) != 0);
  }
  Interpolation record_chosen(bool is_bilinear) {
    const Interpolation interpolation = is_bilinear ? Interpolation::kBilinear : Interpolation::kBicubic;
    record(Decision::Kind::kInterpolation).interpolation = interpolation;
    return interpolation;
  }
  Interpolation chosen(Interpolation interpolation) {
    if (interpolation != Interpolation::kRandom) return interpolation;
    base::Random random = stream();
    return chosen(interpolation, random);
  }
  static std::string text(Size size) { return std::to_string(size.height) + " x " + std::to_string(size.width); }
  base::Random stream() const { return base::Random(key_, stream_); }
  Decision& record(Decision::Kind kind) {
    Decision& decision = decisions_.emplace_back();
    decision.operation = index_;
    decision.name = name_;
    decision.kind = kind;
    return decision;
  }
  void record_number(std::string_view label, double number, bool continues = false) {
    Decision& decision = record(Decision::Kind::kNumber);
    decision.label = label;
    decision.number = number;
    decision.continues = continues;
  }
  void record_mix(const MixDrawing& drawn) {
    if (!drawn.in_turn) record_number(drawn.blended ? "blended" : "weights", drawn.blended.value_or(drawn.image));
    for (std::size_t i = 0; i < static_cast<std::size_t>(drawn.width); ++i)
      record_number("weights", drawn.chains[i], i > 0 || !(drawn.blended || drawn.in_turn));
  }
  Result<void> flip(double p, bool horizontal) {
    base::Random random = stream();
    const bool flips = draw_coin(p, random);
    builder_.flip(flips && horizontal, flips && !horizontal);
    record(Decision::Kind::kFlip).flip = flips;
    return {};
  }

  const base::SampleKey& key_;
  std::uint32_t first_stream_;
  std::vector<Decision>& decisions_;
  Builder& builder_;
  IouCrops* const iou_crops_;
  int index_ = 0;
  std::uint32_t stream_ = 0;
  std::string_view name_;
  int level_ = 0;  // of operations in operations
  bool of_output_ = false;
};

}  // namespace feedline::transform
