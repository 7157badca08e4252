// SPDX-License-Identifier: Apache-2.0

// Writes rectangles over the image, by torchvision's or timm's rules. The operation types for the two rules use the
// same arguments struct.

#include <algorithm>
#include <cmath>

#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

using Noise = op::RandomErasing::Noise;

constexpr int kMostErased = 100;  // rectangles: each reads its own blocks of the stream

// Binds an argument to one end of a range or pair.
template <typename Whole, auto kAt>
struct EndOf;

template <auto kEnd>
struct EndOf<Range, kEnd> : KindOf<double> {
  static bool read(const ArgumentValue& value, Range& out) { return KindOf<double>::read(value, out.*kEnd); }
  static ArgumentValue show(const Range& range) { return range.*kEnd; }
};

template <std::size_t kIndex>
struct EndOf<IntegerPair, kIndex> : KindOf<int> {
  static bool read(const ArgumentValue& value, IntegerPair& out) { return KindOf<int>::read(value, out[kIndex]); }
  static ArgumentValue show(const IntegerPair& pair) { return std::int64_t{pair[kIndex]}; }
};

class AnyErasing : public OperationOf<op::RandomErasing> {
 public:
  using OperationOf::OperationOf;
  static Result<Operation> made(op::RandomErasing arguments) { return Operation(std::move(arguments)); }

  Properties properties() const override {
    return {.is_random = true,
            .erases = true,
            .erases_with_noise = args_.noise == Noise::kValues,
            .most_rectangles = args_.count[1]};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_probability(args_.p));
    FEEDLINE_CHECK_OK(check_between(args_.is_timms ? "min_area, max_area" : "scale", args_.scale, 0, 1));
    FEEDLINE_CHECK_OK(check_positive(args_.is_timms ? "min_aspect, max_aspect" : "ratio", args_.ratio));
    if (args_.count[0] < 1 || args_.count[0] > args_.count[1] || args_.count[1] > kMostErased)
      return config_error("min_count, max_count must be 1 <= min_count <= max_count <= " + number(kMostErased) +
                          ", got " + number(args_.count[0]) + " and " + number(args_.count[1]));
    if (args_.noise == Noise::kNone) FEEDLINE_CHECK_OK(image.check_per_channel("value", args_.value));
    return image.state.dtype == DType::kUint8 ? check_pixels() : Result<void>{};
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    if (!draw_coin(args_.p, random)) return {};
    const auto more = static_cast<std::uint32_t>(args_.count[1] - args_.count[0]);
    const int count = args_.count[0] + static_cast<int>(random.below(more + 1));
    for (int i = 0; i < count; ++i) {
      const std::optional<Box> box = draw_erased(drawer.size(), args_.scale, args_.ratio, count, random);
      if (box) erase(*box, i, drawer, random);
    }
    return {};
  }

 private:
  Result<void> check_pixels() const {
    if (args_.noise != Noise::kNone)
      return !args_.is_timms ? Result<void>{}
                             : config_error(
                                   "random values need float pixels: place it after normalize or to_dtype, or use "
                                   "mode=\"const\"");
    for (const float value : args_.value)
      if (!(value >= 0 && value <= 255 && value == std::floor(value)))
        return config_error("value must be a whole number from 0 to 255 on uint8 pixels, got " + shown(value) +
                            "; after normalize or to_dtype, it is in the units of their output");
    return {};
  }
  void erase(const Box& box, int rectangle, Drawer& drawer, base::Random& random) const {
    Erasure erasure{.box = box, .value = {}, .noise = {}, .operation = drawer.index()};
    for (std::size_t c = 0; c < 3; ++c) {
      erasure.value[c] = args_.value[std::min(c, args_.value.size() - 1)];
      if (args_.noise == Noise::kColour) erasure.value[c] = static_cast<float>(draw_normal(random));
    }
    // each rectangle's noise reads its own 2^24 blocks, after those used to draw the boxes
    if (args_.noise == Noise::kValues) erasure.noise = random.blocks(static_cast<std::uint32_t>(rectangle + 1) << 24);
    drawer.canvas().erase(erasure, drawer.is_output());
    Decision& decision = drawer.record(Decision::Kind::kBox);
    decision.label = "box";
    decision.box = box;
  }
};

class RandomErasing final : public AnyErasing {
 public:
  using AnyErasing::AnyErasing;
  static constexpr std::string_view kName = "random_erasing";
  static constexpr auto kArguments = std::to_array<Argument>(
      {argument<&op::RandomErasing::p>("p"), argument<&op::RandomErasing::scale>("scale"),
       argument<&op::RandomErasing::ratio>("ratio"), argument<&op::RandomErasing::value>("value"),
       argument<&op::RandomErasing::noise, FlagFor<Noise::kValues, Noise::kNone>>("noise")});
  static op::RandomErasing initial() { return {}; }

  const OperationType& type() const override { return kTypeOf<RandomErasing>; }
  std::string describe() const override {
    const std::string value = args_.value.size() == 1 ? number(args_.value[0]) : listed(args_.value);
    return "p=" + number(args_.p) + ", scale=" + in_brackets(args_.scale) + ", ratio=" + in_brackets(args_.ratio) +
           ", value=" + (args_.noise == Noise::kNone ? value : "random");
  }
};

class TimmRandomErasing final : public AnyErasing {
 public:
  using AnyErasing::AnyErasing;
  static constexpr std::string_view kName = "timm_random_erasing";
  static constexpr auto kArguments =
      std::to_array<Argument>({argument<&op::RandomErasing::p>("probability"),
                               argument<&op::RandomErasing::scale, EndOf<Range, &Range::low>>("min_area"),
                               argument<&op::RandomErasing::scale, EndOf<Range, &Range::high>>("max_area"),
                               argument<&op::RandomErasing::ratio, EndOf<Range, &Range::low>>("min_aspect"),
                               argument<&op::RandomErasing::ratio, EndOf<Range, &Range::high>>("max_aspect"),
                               argument<&op::RandomErasing::noise>("mode"),
                               argument<&op::RandomErasing::count, EndOf<IntegerPair, std::size_t{0}>>("min_count"),
                               argument<&op::RandomErasing::count, EndOf<IntegerPair, std::size_t{1}>>("max_count")});
  static op::RandomErasing initial() { return {.scale = {0.02, 1.0 / 3}, .ratio = {0.3, 1 / 0.3}, .is_timms = true}; }

  const OperationType& type() const override { return kTypeOf<TimmRandomErasing>; }
  std::string describe() const override {
    return "p=" + number(args_.p) + ", area=" + in_brackets(args_.scale) + ", aspect=" + in_brackets(args_.ratio) +
           ", mode=" + std::string(word_of(args_.noise)) + ", count=" + in_brackets(args_.count);
  }
};

std::shared_ptr<const ImageOperation> make_erasing(op::RandomErasing arguments) {
  if (arguments.is_timms) return std::make_shared<const TimmRandomErasing>(std::move(arguments));
  return std::make_shared<const RandomErasing>(std::move(arguments));
}

}  // namespace
}  // namespace feedline::transform

FEEDLINE_IMPLEMENTED(RandomErasing, transform::make_erasing(std::move(arguments)))

FEEDLINE_LISTED(random_erasing, &kTypeOf<RandomErasing>, &kTypeOf<TimmRandomErasing>)
