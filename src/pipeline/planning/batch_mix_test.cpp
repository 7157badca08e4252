// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/batch_mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kHang = 200s;  // exceeded only by a hang
constexpr std::uint64_t kClasses = 64;

std::shared_ptr<const Recipe> recipe_of(std::uint64_t samples, std::set<std::uint64_t> damaged = {}) {
  auto recipe = make_recipe({"fake", std::make_shared<FakeFormat>(samples, std::move(damaged))},
                            {op::CenterCrop{{6, 8}}, op::ToDtype{DType::kFloat32, true}}, std::nullopt, Layout::kNchw);
  EXPECT_TRUE(recipe) << recipe.error().message();
  return *recipe;
}

LoaderOptions options_of(MixMode mode, std::optional<MixPartner> partner = {}) {
  return {.batch_size = 6,
          .shuffle = true,
          .seed = 9,
          .num_workers = 3,
          .mixup = 0.8,
          .cutmix = 1,
          .num_classes = kClasses,
          .mix_mode = mode,
          .partner = partner};
}

std::vector<LoaderOptions> all_modes() {
  return {options_of(MixMode::kBatch), options_of(MixMode::kBatch, MixPartner::kFlip), options_of(MixMode::kElem),
          options_of(MixMode::kPair), options_of(MixMode::kHalf)};
}

struct Mixed {
  std::uint64_t index = 0;
  std::vector<std::uint64_t> samples;
  std::vector<float> pixels, targets;
  std::uint64_t rows() const { return samples.size(); }
};

// Returns batches of samples; sample i has 144 values of i / 255 and class i.
std::vector<Mixed> run(const std::shared_ptr<const Recipe>& recipe, const LoaderOptions& options,
                       const EpochStart& start = {}) {
  const auto plan = plan_pipeline(*recipe, options);
  EXPECT_TRUE(plan) << plan.error().message();
  Pipeline pipeline(recipe, *plan);
  EXPECT_TRUE(pipeline.begin(start, false));
  std::vector<Mixed> mixed;
  while (true) {
    Batch batch;
    const auto polled = pipeline.poll(kHang, batch);
    EXPECT_TRUE(polled) << polled.error().message();
    if (!polled || *polled != Loader::Polled::kBatch) return mixed;
    const auto& fields = batch.fields();
    EXPECT_EQ(fields[1].array.spec.shape, (Shape{static_cast<std::int64_t>(batch.rows()), kClasses}));
    const float *pixels = fields[0].array.as<float>(), *targets = fields[1].array.as<float>();
    mixed.push_back({batch.index(),
                     {batch.samples().begin(), batch.samples().end()},
                     {pixels, pixels + batch.rows() * 144},
                     {targets, targets + batch.rows() * kClasses}});
  }
}

bool operator==(const Mixed& a, const Mixed& b) {
  return a.index == b.index && a.samples == b.samples && a.pixels == b.pixels && a.targets == b.targets;
}

// Returns the other class in a row's target and the share of the row's own class, or nullopt if its own class is the
// only one.
std::optional<std::pair<std::uint64_t, float>> partner_in(const Mixed& batch, std::uint64_t row) {
  const float* target = &batch.targets[row * kClasses];
  std::optional<std::uint64_t> partner;
  float sum = 0;
  for (std::uint64_t c = 0; c < kClasses; ++c) {
    sum += target[c];
    if (target[c] == 0 || c == batch.samples[row]) continue;
    EXPECT_FALSE(partner) << "a third class";
    partner = c;
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  if (!partner) return std::nullopt;
  return std::pair(*partner, target[batch.samples[row]]);
}

// The target of a row determines its pixels: after mixup, all have the same share of the partner; after cutmix, a box
// is the partner's.
void expect_pixels_follow_targets(const Mixed& batch) {
  for (std::uint64_t row = 0; row < batch.rows(); ++row) {
    const float* pixels = &batch.pixels[row * 144];
    const float own = static_cast<float>(batch.samples[row]) / 255;
    const auto mixed = partner_in(batch, row);
    const auto is = [&](float value) { return [value](float pixel) { return std::abs(pixel - value) < 1e-6f; }; };
    if (!mixed) {
      EXPECT_TRUE(std::all_of(pixels, pixels + 144, is(own)));
      continue;
    }
    const float other = static_cast<float>(mixed->first) / 255;
    const auto pasted = std::count_if(pixels, pixels + 144, is(other));
    if (pasted > 0 && std::abs(own - other) > 1e-5f) {
      EXPECT_EQ(std::count_if(pixels, pixels + 144, is(own)) + pasted, 144);
      EXPECT_NEAR(mixed->second, 1 - static_cast<float>(pasted) / 144, 1e-6);
      continue;
    }
    EXPECT_TRUE(std::all_of(pixels, pixels + 144, is(own * mixed->second + other * (1 - mixed->second))));
  }
}

TEST(BatchMix, PixelsFollowTargetsInEveryMode) {
  const auto recipe = recipe_of(kClasses);
  for (const LoaderOptions& options : all_modes()) {
    std::uint64_t partners = 0;
    for (const Mixed& batch : run(recipe, options)) {
      expect_pixels_follow_targets(batch);
      for (std::uint64_t row = 0; row < batch.rows(); ++row) partners += partner_in(batch, row).has_value();
    }
    EXPECT_GT(partners, kClasses / 3);
  }
}

TEST(BatchMix, GivesTheSameForEveryNumberOfThreadsAndOutOfOrder) {
  const auto recipe = recipe_of(kClasses);
  for (LoaderOptions options : all_modes()) {
    options.num_workers = 1;
    const auto first = run(recipe, options);
    ASSERT_EQ(first.size(), 11u);
    for (options.num_workers = 2; options.num_workers <= 8; options.num_workers *= 2) {
      options.in_order = true;
      EXPECT_EQ(run(recipe, options), first);
      options.in_order = false;
      auto any = run(recipe, options);
      std::ranges::sort(any, {}, &Mixed::index);
      EXPECT_EQ(any, first);
    }
  }
}

TEST(BatchMix, GoesOnAsTheWholeEpoch) {
  const auto recipe = recipe_of(kClasses);
  for (const LoaderOptions& options : all_modes()) {
    const auto whole = run(recipe, options, {.epoch = 3});
    const auto rest = run(recipe, options, {.epoch = 3, .position = 4 * 6});
    ASSERT_EQ(rest.size(), whole.size() - 4);
    for (std::size_t i = 0; i < rest.size(); ++i) EXPECT_EQ(rest[i], whole[i + 4]);
    // batches that were delivered out of order are skipped, and the others keep their numbers and draws
    const auto gaps = run(recipe, options, {.epoch = 3, .position = 6, .delivered = {{12, 18}, {24, 30}}});
    ASSERT_EQ(gaps.size(), whole.size() - 3);
    EXPECT_EQ(gaps[0], whole[1]);
    EXPECT_EQ(gaps[1], whole[3]);
    EXPECT_EQ(gaps[2], whole[5]);
  }
}

TEST(BatchMix, MixesWhatStandsInTheRowsAfterBadSamples) {
  const auto recipe = recipe_of(kClasses, {3, 17, 18, 40});
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace}) {
    for (LoaderOptions options : all_modes()) {
      options.on_error = on_error;
      std::optional<std::vector<Mixed>> first;
      for (options.num_workers = 1; options.num_workers <= 8; options.num_workers *= 2) {
        const auto mixed = run(recipe, options);
        std::uint64_t rows = 0;
        for (const Mixed& batch : mixed) {
          expect_pixels_follow_targets(batch);
          rows += batch.rows();
          for (const std::uint64_t sample : batch.samples)
            EXPECT_TRUE(sample != 3 && sample != 17 && sample != 18 && sample != 40);
        }
        if (options.mix_mode != MixMode::kHalf) {
          EXPECT_EQ(rows, on_error == OnError::kSkip ? kClasses - 4 : kClasses);
        }
        if (!first) first = mixed;
        EXPECT_EQ(mixed, *first);
      }
    }
  }
}

TEST(BatchMix, DeliversHalfTheRowsAndTellsSo) {
  const auto recipe = recipe_of(kClasses);
  LoaderOptions options = options_of(MixMode::kHalf);
  options.shuffle = false;
  const auto mixed = run(recipe, options);
  ASSERT_EQ(mixed.size(), 11u);
  EXPECT_EQ(mixed[1].samples, (std::vector<std::uint64_t>{6, 7, 8}));
  EXPECT_EQ(mixed[10].samples, (std::vector<std::uint64_t>{60, 61})) << "of four";
  for (std::uint64_t row = 0; row < 3; ++row)
    if (const auto partner = partner_in(mixed[1], row)) {
      EXPECT_EQ(partner->first, 11 - row);
    }
  const auto plan = plan_pipeline(*recipe, options);
  Pipeline pipeline(recipe, *plan);
  ASSERT_TRUE(pipeline.begin({}, false));
  Batch batch;
  ASSERT_TRUE(pipeline.poll(kHang, batch));
  EXPECT_EQ(pipeline.rows_per_rank(), (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(schema_of(*recipe, *plan)[1].array, (ArraySpec{DType::kFloat32, {kClasses}}));
}

// The size of a batch includes the targets, and a class for each row.
TEST(BatchMix, CountsTargetsAndClassesInTheBudget) {
  const auto recipe = recipe_of(kClasses);
  LoaderOptions options = options_of(MixMode::kBatch);
  const std::uint64_t bytes = 6 * 144 * 4 + 6 * kClasses * 4 + 64;
  EXPECT_EQ(plan_pipeline(*recipe, options)->batch_bytes, bytes);
  options.memory_budget = bytes - 1;
  EXPECT_FALSE(plan_pipeline(*recipe, options));
  options.memory_budget = bytes;
  EXPECT_EQ(run(recipe, options), run(recipe, options_of(MixMode::kBatch)));
}

TEST(BatchMix, RefusesWhatItCannotMix) {
  const auto refused = [](const LoaderOptions& options, const std::string& words) {
    const auto plan = plan_pipeline(*recipe_of(kClasses), options);
    ASSERT_FALSE(plan) << words;
    EXPECT_EQ(plan.error().code, ErrorCode::kConfig);
    EXPECT_NE(plan.error().what.find(words), std::string::npos) << plan.error().what;
  };
  LoaderOptions options = options_of(MixMode::kBatch);
  options.num_classes = 0;
  refused(options, "pass num_classes, which \"fake\" does not define");
  options = options_of(MixMode::kBatch);
  options.on_error = OnError::kReport;
  refused(options, "on_error=\"report\" leaves out bad rows");
  options = options_of(MixMode::kPair);
  options.batch_size = 7;
  refused(options, "batch_size must be even, got 7");
  options = options_of(MixMode::kBatch);
  options.num_classes = std::uint64_t{1} << 40;
  refused(options, "over 2^31 - 1");
}

TEST(BatchMix, NamesTheSampleWhoseClassIsNone) {
  const auto recipe = recipe_of(kClasses);
  LoaderOptions options = options_of(MixMode::kBatch);
  options.num_classes = kClasses - 1;
  const auto plan = plan_pipeline(*recipe, options);
  Pipeline pipeline(recipe, *plan);
  ASSERT_TRUE(pipeline.begin({}, false));
  std::vector<Error> errors;
  for (int i = 0; i < 11; ++i) {
    Batch batch;
    const auto polled = pipeline.poll(kHang, batch);
    if (!polled) errors.push_back(polled.error());
  }
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, ErrorCode::kData);
  EXPECT_EQ(errors[0].where.key, "key-63");
  EXPECT_NE(errors[0].what.find("class 63 is out of range for num_classes=63"), std::string::npos) << errors[0].what;
}

}  // namespace
}  // namespace feedline::pipeline
