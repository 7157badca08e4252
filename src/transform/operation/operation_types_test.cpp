// SPDX-License-Identifier: Apache-2.0
#include "feedline/operation_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace feedline {
namespace {

using Numbers = std::vector<double>;
using Arguments = std::vector<std::pair<std::string, ArgumentValue>>;

std::string made(std::string_view name, const Arguments& arguments) {
  const auto operation = make_operation(name, arguments);
  return operation ? describe(*operation) : operation.error().what;
}

TEST(OperationTypes, AreMadeByNameWithArguments) {
  EXPECT_EQ(made("trim_border", {{"border_size", std::int64_t{3}}}), "trim_border(3)");
  EXPECT_EQ(made("resize", {{"size", Numbers{8, 0}}, {"max_size", std::int64_t{9}}, {"interpolation", "box"}}),
            describe(op::Resize{{8, 0}, 9, Interpolation::kBox}));
  EXPECT_EQ(made("random_affine", {{"degrees", Numbers{-3, 3}}, {"scale", std::monostate()}}),
            describe(op::RandomAffine{{-3, 3}}));
  EXPECT_EQ(made("random_posterize", {{"bits", std::int64_t{4}}, {"p", 0.25}}),
            describe(op::RandomChange{Augmentation::kPosterize, 4, 0.25}));
  EXPECT_EQ(
      made("timm_random_erasing", {{"max_area", 0.5}, {"max_count", std::int64_t{2}}}),
      describe(op::RandomErasing{.scale = {0.02, 0.5}, .ratio = {0.3, 1 / 0.3}, .count = {1, 2}, .is_timms = true}));
  const std::vector<std::vector<Operation>> chain{{op::RandomHorizontalFlip{}, op::Grayscale{3}}};
  EXPECT_EQ(made("random_apply", {{"chain", chain}, {"p", 1.0}}), describe(op::RandomApply{chain[0], 1}));
}

TEST(OperationTypes, ReadTheConfigOfTimm) {
  EXPECT_EQ(made("timm_augment", {{"config", "rand-m9"}}),
            describe(*timm_augment({.config = "rand-m9", .fill = {124, 116, 104}})));
  EXPECT_NE(made("timm_augment", {{"config", "what-m9"}}).find("timm_augment: "), std::string::npos);
}

TEST(OperationTypes, RefuseUnknownNamesAndOtherKinds) {
  EXPECT_EQ(made("trim_edges", {}), "there is no operation \"trim_edges\"");
  EXPECT_EQ(made("trim_border", {{"border", std::int64_t{3}}}), "trim_border: there is no argument 'border'");
  EXPECT_EQ(made("trim_border", {{"border_size", 2.5}}),
            "trim_border: border_size: a value of kind 'integer' is needed");
  EXPECT_EQ(made("trim_border", {{"border_size", std::monostate()}}),
            "trim_border: border_size: a value of kind 'integer' is needed");
  EXPECT_EQ(made("center_crop", {{"size", Numbers{1, 2, 3}}}), "center_crop: size: a value of kind 'size' is needed");
  EXPECT_EQ(made("center_crop", {{"fill", Numbers{0, 0, 256}}}),
            "center_crop: fill: a value of kind 'color' is needed");
  EXPECT_EQ(made("auto_augment", {{"policy", "mnist"}}),
            "auto_augment: policy must be one of \"imagenet\", \"cifar10\", \"svhn\"");
}

// Reading the default values that show() returned must create the same operation.
TEST(OperationTypes, HaveDefaultsOfTheirKinds) {
  const auto types = operation_types();
  EXPECT_GT(types.size(), 40u);
  EXPECT_TRUE(std::ranges::is_sorted(types, {}, &OperationDescription::name));
  for (const OperationDescription& type : types) {
    if (type.name == "timm_augment") continue;  // has no default config
    Arguments defaults;
    for (const ArgumentDescription& argument : type.arguments)
      defaults.emplace_back(argument.name, argument.default_value);
    EXPECT_EQ(made(type.name, defaults), made(type.name, {}));
  }
}

TEST(OperationTypes, TellWhatMovesAndWhatRunsOnADevice) {
  const auto types = operation_types();
  const auto type_of = [&](std::string_view name) {
    return *std::ranges::find(types, name, &OperationDescription::name);
  };
  EXPECT_TRUE(type_of("random_crop").is_random);
  EXPECT_TRUE(type_of("random_crop").moves_pixels);
  EXPECT_TRUE(type_of("random_crop").runs_on_device);
  EXPECT_FALSE(type_of("trim_border").is_random);
  EXPECT_FALSE(type_of("color_jitter").moves_pixels);
  EXPECT_FALSE(type_of("random_affine").runs_on_device);
}

}  // namespace
}  // namespace feedline
