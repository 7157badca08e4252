// SPDX-License-Identifier: Apache-2.0
#include "transform/augment/augmentation_policy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/check.h"
#include "transform/augment/policy_tables.h"
#include "transform/augment/sampling.h"

namespace feedline::transform {
namespace {

using enum Augmentation;

// In torchvision's order. AugMix does not have kIdentity, and its brightness, colour, contrast and sharpness are last
// because `all_ops` appends them.
constexpr Augmentation kChoices[] = {kIdentity,  kShearX,     kShearY,       kTranslateX, kTranslateY,
                                     kRotate,    kBrightness, kColor,        kContrast,   kSharpness,
                                     kPosterize, kSolarize,   kAutoContrast, kEqualize};
constexpr Augmentation kMixChoices[] = {kShearX,    kShearY,   kTranslateX,   kTranslateY, kRotate,
                                        kPosterize, kSolarize, kAutoContrast, kEqualize,   kBrightness,
                                        kColor,     kContrast, kSharpness};
constexpr std::size_t kMixEnhancers = 4;
constexpr int kAutoAugmentBins = 10, kMixBins = 10;

std::size_t below(std::size_t count, base::Random& random) { return random.below(static_cast<std::uint32_t>(count)); }

// Draws a sign for every augmentation, so that later draws do not depend on the chosen augmentation.
void append(Augmentation augmentation, const Bins& bins, int bin, Size image, base::Random& random,
            Augmentations& drawn) {
  const bool negative = draw_coin(0.5, random);
  if (augmentation == kIdentity) return;
  drawn.push_back({augmentation, amount_at(augmentation, bins, bin, negative, image)});
}

std::span<const SubPolicy> table_of(AutoAugmentPolicy policy) {
  switch (policy) {
    case AutoAugmentPolicy::kImageNet:
      return policy_tables::kImageNet;
    case AutoAugmentPolicy::kCifar10:
      return policy_tables::kCifar10;
    case AutoAugmentPolicy::kSvhn:
      return policy_tables::kSvhn;
  }
  return {};
}

}  // namespace

void draw_auto_augment(AutoAugmentPolicy policy, Size image, base::Random& random, Augmentations& drawn,
                       TorchvisionVersion version) {
  const std::span<const SubPolicy> table = table_of(policy);
  for (const PolicyStep& step : table[below(table.size(), random)].steps) {
    const bool does = draw_coin(step.probability, random);
    const bool negative = draw_coin(0.5, random);
    if (!does) continue;
    const Bins bins{AugmentationSpace::kStandard, kAutoAugmentBins, version};
    drawn.push_back({step.augmentation, amount_at(step.augmentation, bins, step.magnitude, negative, image)});
  }
}

void draw_rand_augment(int num_ops, int magnitude, int bins, Size image, base::Random& random, Augmentations& drawn,
                       TorchvisionVersion version) {
  for (int i = 0; i < num_ops; ++i)
    append(kChoices[below(std::size(kChoices), random)], {AugmentationSpace::kStandard, bins, version}, magnitude,
           image, random, drawn);
}

void draw_trivial_augment_wide(int bins, Size image, base::Random& random, Augmentations& drawn,
                               TorchvisionVersion version) {
  const Augmentation chosen = kChoices[below(std::size(kChoices), random)];
  const int bin = static_cast<int>(below(static_cast<std::size_t>(bins), random));
  append(chosen, {AugmentationSpace::kWide, bins, version}, bin, image, random, drawn);
}

void draw_aug_mix_chain(int severity, int depth, bool all_ops, Size image, base::Random& random, Augmentations& drawn) {
  const std::size_t choices = std::size(kMixChoices) - (all_ops ? 0 : kMixEnhancers);
  for (int i = 0; i < depth; ++i) {
    const Augmentation chosen = kMixChoices[below(choices, random)];
    const int bin = static_cast<int>(below(static_cast<std::size_t>(severity), random));
    append(chosen, {AugmentationSpace::kMix, kMixBins}, bin, image, random, drawn);
  }
}

namespace {

constexpr double kUniformNoise = 100;  // timm's RandAugment draws uniform levels if the deviation is larger

using Entry = TimmPolicy::Entry;

std::vector<Entry> choices_of_rand_augment(bool increasing) {
  constexpr Augmentation kAll[] = {kAutoContrast, kEqualize,    kInvert, kRotate,     kPosterize,
                                   kSolarize,     kSolarizeAdd, kColor,  kContrast,   kBrightness,
                                   kSharpness,    kShearX,      kShearY, kTranslateX, kTranslateY};
  std::vector<Entry> entries;
  for (const Augmentation augmentation : kAll)
    entries.push_back({.augmentation = augmentation, .scale = increasing ? TimmScale::kIncreasing : TimmScale::kPlain});
  return entries;
}

// timm's "tweights": chooses the most useful augmentations most often.
std::vector<Entry> weighted_choices() {
  constexpr struct {
    Augmentation augmentation;
    double weight;
  } kWeights[] = {{kRotate, 3},      {kShearX, 2},         {kShearY, 2},       {kTranslateX, 1},
                  {kTranslateY, 1},  {kColor, 0.25},       {kSharpness, 0.25}, {kAutoContrast, 0.25},
                  {kSolarize, 0.05}, {kSolarizeAdd, 0.05}, {kContrast, 0.05},  {kBrightness, 0.05},
                  {kEqualize, 0.05}, {kPosterize, 0.05},   {kInvert, 0.05}};
  std::vector<Entry> entries;
  for (const auto& [augmentation, weight] : kWeights)
    entries.push_back({.augmentation = augmentation, .scale = TimmScale::kIncreasing, .weight = weight});
  return entries;
}

// timm's "t3a", which is 3-Augment (Touvron et al., "DeiT III: Revenge of the ViT", ECCV 2022).
std::vector<Entry> choices_of_three() {
  return {{.augmentation = kSolarize, .scale = TimmScale::kIncreasing},
          {.augmentation = kColor, .scale = TimmScale::kDesaturating},
          {.augmentation = kGaussianBlur}};
}

// timm's "t3aw": chooses the three augmentations of "t3a" most often.
std::vector<Entry> weighted_choices_of_three() {
  std::vector<Entry> entries = choices_of_three();
  for (Entry& entry : entries) entry.weight = 6;
  constexpr struct {
    Augmentation augmentation;
    double weight;
  } kOthers[] = {{kRotate, 3},    {kShearX, 2},   {kShearY, 2},     {kPosterize, 1}, {kAutoContrast, 1}, {kColor, 1},
                 {kSharpness, 1}, {kContrast, 1}, {kBrightness, 1}, {kEqualize, 1},  {kInvert, 1}};
  for (const auto& [augmentation, weight] : kOthers)
    entries.push_back({.augmentation = augmentation, .scale = TimmScale::kIncreasing, .weight = weight});
  return entries;
}

// timm's "3a": always applies one of the three augmentations of "t3a".
std::vector<Entry> one_of_three() {
  return {{.augmentation = kSolarize, .probability = 1, .magnitude = 5},
          {.augmentation = kColor, .scale = TimmScale::kDesaturating, .probability = 1},
          {.augmentation = kGaussianBlur, .scale = TimmScale::kDrawn, .probability = 1}};
}

// All are applied.
std::vector<Entry> choices_of_mix() {
  constexpr Augmentation kAll[] = {kAutoContrast, kColor,    kContrast, kBrightness, kSharpness,  kEqualize,  kRotate,
                                   kPosterize,    kSolarize, kShearX,   kShearY,     kTranslateX, kTranslateY};
  std::vector<Entry> entries;
  for (const Augmentation augmentation : kAll)
    entries.push_back({.augmentation = augmentation, .scale = TimmScale::kIncreasing, .probability = 1});
  return entries;
}

std::vector<Entry> pairs_of(std::span<const SubPolicy> table, TimmScale posterize) {
  std::vector<Entry> entries;
  for (const SubPolicy& pair : table)
    for (const PolicyStep& step : pair.steps)
      entries.push_back({.augmentation = step.augmentation,
                         .scale = step.augmentation == kPosterize ? posterize : TimmScale::kPlain,
                         .probability = step.probability,
                         .magnitude = 1.0 * step.magnitude});
  return entries;
}

std::optional<std::vector<Entry>> auto_augment_entries(std::string_view name) {
  if (name == "original") return pairs_of(policy_tables::kTimmOriginal, TimmScale::kOriginal);
  if (name == "originalr") return pairs_of(policy_tables::kTimmOriginal, TimmScale::kIncreasing);
  if (name == "v0") return pairs_of(policy_tables::kTimmV0, TimmScale::kPlain);
  if (name == "v0r") return pairs_of(policy_tables::kTimmV0, TimmScale::kIncreasing);
  return std::nullopt;
}

struct Section {
  std::string_view key;
  double value = 0;
};

// Parses a section such as "mstd0.5": letters, then a number. timm skips sections without a number; here, their key is
// empty.
Result<Section> section_of(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return Section{};
  Section section{text.substr(0, digit)};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + digit, end, section.value);
  if (error != std::errc() || stop != end) return config_error("'" + std::string(text) + "' does not end in a number");
  return section;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t dash = std::min(text.find('-', from), text.size());
    parts.push_back(text.substr(from, dash - from));
    from = dash + 1;
  }
  return parts;
}

Result<double> in_range(const Section& section, double low, double high) {
  if (section.value >= low && section.value <= high) return section.value;
  return config_error("'" + std::string(section.key) + "' must be from " + std::to_string(static_cast<int>(low)) +
                      " to " + std::to_string(static_cast<int>(high)));
}

double noise_of(double value) { return value > kUniformNoise ? std::numeric_limits<double>::infinity() : value; }

constexpr std::size_t kMostWeighted = 16;
constexpr int kMostLayers = static_cast<int>(Augmentations::kMost);
constexpr double kMostMagnitude = 1000;

}  // namespace

Result<TimmPolicy> TimmPolicy::parse(std::string_view config, double translate) {
  FEEDLINE_TRY(TimmPolicy policy, split(config).front() == "augmix" ? parse_mix(config) : parse_choice(config));
  policy.level_.translate = translate;
  return policy;
}

Result<TimmPolicy> TimmPolicy::parse_mix(std::string_view config) {
  const auto fail = [config](const std::string& why) {
    return config_error("'" + std::string(config) + "' is not a policy of timm: " + why);
  };
  TimmPolicy policy;
  policy.mix_ = Mix{};
  policy.level_.noise = std::numeric_limits<double>::infinity();
  const std::vector<std::string_view> parts = split(config);
  double magnitude = 3;
  for (const std::string_view part : std::span(parts).subspan(1)) {
    const Result<Section> section = section_of(part);
    if (!section) return fail(section.error().what);
    Result<double> value = section->value;
    if (section->key.empty()) {
      continue;
    } else if (section->key == "mstd") {
      policy.level_.noise = section->value;
    } else if (section->key == "m") {
      value = in_range(*section, 0, kMostMagnitude);
      magnitude = std::floor(section->value);
    } else if (section->key == "w") {
      value = in_range(*section, 1, MixDrawing::kMost);
      policy.mix_->width = static_cast<int>(value.value_or(1));
    } else if (section->key == "d") {
      value = in_range(*section, 0, kMostLayers);
      policy.mix_->depth = static_cast<int>(value.value_or(0));
    } else if (section->key == "a") {
      if (!(section->value > 0)) return fail("'a' must be above 0");
      policy.mix_->alpha = section->value;
    } else if (section->key == "b") {
      policy.mix_->in_turn = section->value >= 1;
    } else {
      return fail("AugMix has no section '" + std::string(section->key) + "'");
    }
    if (!value) return fail(value.error().what);
  }
  policy.entries_ = choices_of_mix();
  for (Entry& entry : policy.entries_) entry.magnitude = magnitude;
  return policy;
}

Result<TimmPolicy> TimmPolicy::parse_choice(std::string_view config) {
  const auto fail = [config](const std::string& why) {
    return config_error("'" + std::string(config) + "' is not a policy of timm: " + why);
  };
  const std::vector<std::string_view> parts = split(config);
  TimmPolicy policy;
  const bool is_rand = parts.front() == "rand";
  if (parts.front() == "3a") {
    policy.entries_ = one_of_three();
    policy.layers_ = 1;
  } else if (!is_rand) {
    auto entries = auto_augment_entries(parts.front());
    if (!entries)
      return fail("the policy must begin with 'rand', 'original', 'originalr', 'v0', 'v0r', '3a' or 'augmix'");
    policy.entries_ = *std::move(entries);
    policy.choice_ = Choice::kPairs;
  }

  bool increasing = false;
  std::string_view set;
  double magnitude = 10, probability = 0.5;
  for (const std::string_view part : std::span(parts).subspan(1)) {
    if (is_rand && part.starts_with('t')) {
      set = part.substr(1);
      if (set != "weights" && set != "3a" && set != "3aw")
        return fail("'" + std::string(part) + "' must be 'tweights', 't3a' or 't3aw'");
      if (set != "3a") policy.choice_ = Choice::kWeighted;
      continue;
    }
    const Result<Section> section = section_of(part);
    if (!section) return fail(section.error().what);
    Result<double> value = 0.0;
    if (section->key.empty()) {
      continue;
    } else if (section->key == "mstd") {
      policy.level_.noise = is_rand ? noise_of(section->value) : section->value;
    } else if (!is_rand) {
      return fail("AutoAugment has no section '" + std::string(section->key) + "'");
    } else if (section->key == "m") {
      value = in_range(*section, 0, kMostMagnitude);
      magnitude = std::floor(section->value);
    } else if (section->key == "n") {
      value = in_range(*section, 0, kMostLayers);
      policy.layers_ = static_cast<int>(value.value_or(0));
    } else if (section->key == "p") {
      value = in_range(*section, 0, 1);
      probability = section->value;
    } else if (section->key == "mmax") {
      value = in_range(*section, 1, kMostMagnitude);
      policy.level_.highest = std::floor(section->value);
    } else if (section->key == "inc") {
      increasing = section->value >= 1;
    } else {
      return fail("there is no section '" + std::string(section->key) + "'");
    }
    if (!value) return fail(value.error().what);
  }
  if (!is_rand) return policy;

  policy.entries_ = set == "weights" ? weighted_choices()
                    : set == "3aw"   ? weighted_choices_of_three()
                    : set == "3a"    ? choices_of_three()
                                     : choices_of_rand_augment(increasing);
  for (Entry& entry : policy.entries_) {
    entry.magnitude = magnitude;
    entry.probability = probability;
  }
  if (policy.choice_ == Choice::kWeighted && policy.layers_ > static_cast<int>(policy.entries_.size()))
    return fail("weighted choices are drawn without replacement, but there are only " +
                std::to_string(policy.entries_.size()));
  return policy;
}

void TimmPolicy::draw_chain(int depth, Size image, base::Random& random, Augmentations& drawn) const {
  for (int i = 0; i < depth; ++i) draw_entry(entries_[below(entries_.size(), random)], image, random, drawn);
}

void TimmPolicy::draw(Size image, base::Random& random, Augmentations& drawn) const {
  FEEDLINE_CHECK(!mix_);
  if (choice_ == Choice::kWeighted) return draw_weighted(image, random, drawn);
  if (choice_ == Choice::kPairs) {
    const std::size_t first = 2 * below(entries_.size() / 2, random);
    draw_entry(entries_[first], image, random, drawn);
    return draw_entry(entries_[first + 1], image, random, drawn);
  }
  draw_chain(layers_, image, random, drawn);
}

void TimmPolicy::draw_entry(const Entry& entry, Size image, base::Random& random, Augmentations& drawn) const {
  if (!draw_coin(entry.probability, random)) return;
  TimmLevel level = level_;
  level.magnitude = entry.magnitude;
  drawn.push_back({entry.augmentation, draw_timm_amount(entry.augmentation, entry.scale, level, image, random)});
}

// Draws without replacement, by the weights of the remaining choices, like numpy.random.choice(replace=False).
void TimmPolicy::draw_weighted(Size image, base::Random& random, Augmentations& drawn) const {
  std::array<double, kMostWeighted> left{};
  std::ranges::transform(entries_, left.begin(), &Entry::weight);
  for (int i = 0; i < layers_; ++i) {
    const std::size_t chosen = draw_choice(entries_.size(), left, random);
    left[chosen] = 0;
    draw_entry(entries_[chosen], image, random, drawn);
  }
}

}  // namespace feedline::transform
