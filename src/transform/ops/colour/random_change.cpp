// SPDX-License-Identifier: Apache-2.0

// Applies one change with probability p. Defines a type for each change that torchvision provides as an operation.

#include <cmath>

#include "base/check.h"
#include "transform/augment/sampling.h"
#include "transform/drawer.h"
#include "transform/operation/argument_checks.h"
#include "transform/operation/description.h"
#include "transform/operation/inference.h"
#include "transform/operation/operation_definition.h"

namespace feedline::transform {
namespace {

struct Change {
  std::string_view name;
  std::string_view amount;  // the argument's name; empty for changes without an amount
};

constexpr Change change_of(Augmentation augmentation) {
  switch (augmentation) {
    case Augmentation::kInvert:
      return {"random_invert", ""};
    case Augmentation::kPosterize:
      return {"random_posterize", "bits"};
    case Augmentation::kSolarize:
      return {"random_solarize", "threshold"};
    case Augmentation::kSharpness:
      return {"random_adjust_sharpness", "sharpness_factor"};
    case Augmentation::kAutoContrast:
      return {"random_autocontrast", ""};
    case Augmentation::kEqualize:
      return {"random_equalize", ""};
    case Augmentation::kGrayscale:
      return {"random_grayscale", ""};
    default:
      return {};
  }
}

Result<void> check_amount(Augmentation augmentation, double amount) {
  if (augmentation == Augmentation::kPosterize && !(amount >= 0 && amount <= 8 && amount == std::floor(amount)))
    return config_error("bits must be an integer from 0 to 8, got " + shown(amount));
  if (augmentation == Augmentation::kSolarize && !(amount >= 0 && amount <= 256))
    return config_error("threshold must be from 0 to 256, got " + shown(amount));
  if (augmentation == Augmentation::kSharpness && !(amount >= 0 && std::isfinite(amount)))
    return config_error("sharpness_factor must not be negative, got " + shown(amount));
  return {};
}

// In the public interface, bits are integers.
struct Bits : KindOf<double> {
  static constexpr std::string_view kName = "integer";
};

template <Augmentation kAugmentation>
class RandomChange final : public OperationWith<RandomChange<kAugmentation>, op::RandomChange> {
  using Base = OperationWith<RandomChange<kAugmentation>, op::RandomChange>;
  using Base::args_;
  using Amount = std::conditional_t<kAugmentation == Augmentation::kPosterize, Bits, KindOf<double>>;
  static constexpr Change kChange = change_of(kAugmentation);
  static constexpr IntegerLimits kLimits =
      kAugmentation == Augmentation::kPosterize ? IntegerLimits{0, 8} : IntegerLimits{};

 public:
  using Base::Base;
  static constexpr std::string_view kName = kChange.name;
  static constexpr auto kBoth = std::to_array<Argument>(
      {argument<&op::RandomChange::amount, Amount>(kChange.amount, kLimits), argument<&op::RandomChange::p>("p")});
  static constexpr std::span kArguments = std::span(kBoth).subspan(kChange.amount.empty() ? 1 : 0);
  // The default of torchvision's RandomGrayscale differs.
  static op::RandomChange initial() {
    return {.augmentation = kAugmentation, .p = kAugmentation == Augmentation::kGrayscale ? 0.1 : 0.5};
  }

  std::string describe() const override {
    const std::string amount(kChange.amount);
    return (amount.empty() ? "" : amount + "=" + number(args_.amount) + ", ") + "p=" + number(args_.p);
  }
  Properties properties() const override {
    constexpr bool kOnDevice = kAugmentation == Augmentation::kGrayscale;
    return {.is_random = true, .runs_on_device = kOnDevice, .colour_changes = kOnDevice ? 1u : 0u};
  }

  Result<void> infer(Inference& image) const override {
    FEEDLINE_CHECK_OK(check_probability(args_.p));
    FEEDLINE_CHECK_OK(check_amount(kAugmentation, args_.amount));
    return image.needs_pixels();
  }
  Result<void> draw(Drawer& drawer) const override {
    base::Random random = drawer.random();
    if (draw_coin(args_.p, random)) drawer.augment({kAugmentation, args_.amount}, Interpolation::kNearest, {});
    return {};
  }
};

template <Augmentation... kAugmentations>
std::shared_ptr<const ImageOperation> make_one_of(const op::RandomChange& arguments) {
  std::shared_ptr<const ImageOperation> made;
  const bool is_known = ((arguments.augmentation == kAugmentations
                              ? (made = std::make_shared<const RandomChange<kAugmentations>>(arguments), true)
                              : false) ||
                         ...);
  FEEDLINE_CHECK(is_known);
  return made;
}

std::shared_ptr<const ImageOperation> make_change(const op::RandomChange& arguments) {
  using enum Augmentation;
  return make_one_of<kInvert, kPosterize, kSolarize, kSharpness, kAutoContrast, kEqualize, kGrayscale>(arguments);
}

}  // namespace
}  // namespace feedline::transform

FEEDLINE_IMPLEMENTED(RandomChange, transform::make_change(arguments))

FEEDLINE_LISTED(random_change, &kTypeOf<RandomChange<Augmentation::kInvert>>,
                &kTypeOf<RandomChange<Augmentation::kPosterize>>, &kTypeOf<RandomChange<Augmentation::kSolarize>>,
                &kTypeOf<RandomChange<Augmentation::kSharpness>>, &kTypeOf<RandomChange<Augmentation::kAutoContrast>>,
                &kTypeOf<RandomChange<Augmentation::kEqualize>>, &kTypeOf<RandomChange<Augmentation::kGrayscale>>)
