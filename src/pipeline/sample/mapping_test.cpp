// SPDX-License-Identifier: Apache-2.0
// Functions after the paths: their arguments and results, on any number of threads, and a function that hangs.

#include "pipeline/sample/mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/sample_reader.h"
#include "pipeline/variable_size_fixture.h"

namespace feedline::pipeline {
namespace {

using Body = std::function<Result<FunctionResult>(FunctionCall)>;

class Function final : public SampleFunction {
 public:
  Function(std::vector<std::string> takes, Body body) : takes_(std::move(takes)), body_(std::move(body)) {}
  const std::vector<std::string>& takes() const override { return takes_; }
  Result<FunctionResult> call(FunctionCall call) const override { return body_(std::move(call)); }
  std::vector<std::string> explain() const override { return {"a function of a test"}; }

 private:
  std::vector<std::string> takes_;
  Body body_;
};

FunctionValue number(std::string name, std::int64_t value) {
  auto memory = std::make_shared<std::int64_t>(value);
  return {std::move(name),
          Content::kArray,
          {reinterpret_cast<std::byte*>(memory.get()), {DType::kInt64, {}}},
          false,
          memory};
}

std::int64_t number_of(const FunctionValue& value) { return *value.array.as<std::int64_t>(); }

// Returns ten times the label, and the values of random draws.
Result<FunctionResult> times_ten(const FunctionCall& call) {
  const auto draw = static_cast<std::int64_t>(call.seed * 1000 + call.epoch * 100 + call.draw % 7);
  return FunctionResult{{number("label", 10 * number_of(call.values[0]) + draw)}};
}

// Returns the image upside down, in its own memory, and a text with the sample's number.
Result<FunctionResult> rebuilt(FunctionCall call) {
  FunctionValue image = call.values[0];
  std::reverse(image.array.data, image.array.data + image.array.spec.bytes());
  auto text = std::make_shared<std::string>("sample " + std::to_string(number_of(call.values[1])));
  const auto length = static_cast<std::int64_t>(text->size());
  return FunctionResult{
      {std::move(image),
       {"text", Content::kText, {reinterpret_cast<std::byte*>(text->data()), {DType::kUint8, {length}}}, false, text}}};
}

constexpr std::uint64_t kSamples = 61;

Source source() { return {"fake", std::make_shared<FakeFormat>(kSamples)}; }

std::shared_ptr<const MapPoint> point(std::vector<std::string> takes, Body body, std::size_t position = 1) {
  auto made =
      MapPoint::make(std::make_shared<Function>(std::move(takes), std::move(body)), source(), position, nullptr);
  EXPECT_TRUE(made) << made.error().message();
  return *made;
}

Result<std::shared_ptr<const Recipe>> recipe_of(const MapPoint& map, const std::vector<Collation>& collations = {}) {
  return make_recipe(source(), {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw, {}, collations, &map);
}

std::string run(const MapPoint& map, int threads, OnError on_error = OnError::kRaise) {
  const auto recipe = recipe_of(map);
  EXPECT_TRUE(recipe) << recipe.error().message();
  auto plan = plan_pipeline(
      **recipe, {.batch_size = 6, .shuffle = true, .seed = 3, .num_workers = threads, .on_error = on_error});
  EXPECT_TRUE(plan) << plan.error().message();
  Pipeline pipeline(*recipe, *plan);
  std::string all;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    EXPECT_TRUE(pipeline.begin({epoch, 0, {}, 0}, epoch == 0));
    while (true) {
      Batch batch;
      const auto polled = pipeline.poll(std::chrono::seconds(100), batch);
      if (!polled) all += polled.error().message() + "\n";
      if (polled && *polled == Loader::Polled::kEnd) break;
      if (polled) all += contents_of(batch) + "\n";
    }
  }
  return all;
}

TEST(MappingTest, TheSameBatchesFromAnyThreads) {
  const auto of_one = point({"label"}, &times_ten);
  const auto of_all = point({}, &rebuilt);
  for (const auto& map : {of_one, of_all}) {
    const std::string expected = run(*map, 1);
    EXPECT_GT(expected.size(), 2 * kSamples * 4 * 4 * 3);
    for (const int threads : {2, 3, 8}) EXPECT_EQ(run(*map, threads), expected);
  }
}

TEST(MappingTest, AFunctionGetsWhatThePathsMakeAndFieldsItLeavesStay) {
  const auto map = point({"label"}, &times_ten);
  const auto recipe = recipe_of(*map);
  ASSERT_TRUE(recipe) << recipe.error().message();
  ASSERT_EQ((*recipe)->schema.size(), 2u);
  EXPECT_EQ((*recipe)->schema[0].name, "image");
  SampleReader reader(*recipe);
  const auto sample = reader.read({9, 12}, 2, 1);
  ASSERT_TRUE(sample) << sample.error().message();
  EXPECT_EQ(static_cast<int>(sample->fields[0].data[0]), 9);
  std::int64_t label = 0;
  std::memcpy(&label, sample->fields[1].data.data(), sizeof label);
  EXPECT_EQ(label, 10 * 9 + 2000 + 100 + 12 % 7);
}

TEST(MappingTest, WhatAFunctionKeepsIsNotWrittenAgain) {
  std::vector<FunctionValue> results;
  const auto map = point({"image"}, [&](FunctionCall call) {
    results.push_back(call.values[0]);
    return Result<FunctionResult>(FunctionResult{std::move(call.values)});
  });
  run(*map, 1);
  std::set<const std::byte*> locations;
  for (const FunctionValue& value : results) locations.insert(value.array.data);
  EXPECT_EQ(locations.size(), results.size());
}

TEST(MappingTest, MemoryThatNobodyKeepsGoesRound) {
  std::set<const std::byte*> locations;
  std::mutex mutex;
  const auto map = point({"image"}, [&](FunctionCall call) {
    const std::lock_guard lock(mutex);
    locations.insert(call.values[0].array.data);
    return Result<FunctionResult>(FunctionResult{std::move(call.values)});
  });
  run(*map, 1);
  EXPECT_LE(locations.size(), 5u);  // two for each of a thread's two loaders, and the first sample's
}

TEST(MappingTest, TheFirstSampleIsAskedForOnce) {
  std::atomic<int> calls = 0;
  const auto map = point({"label"}, [&](FunctionCall call) {
    ++calls;
    return times_ten(call);
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(recipe_of(*map));
  EXPECT_EQ(calls, 1);
}

TEST(MappingTest, ErrorsAreTheSamples) {
  const auto map = point({"label"}, [&](FunctionCall call) -> Result<FunctionResult> {
    if (number_of(call.values[0]) % 10 == 5) return data_error("five", "map");
    return times_ten(call);
  });
  for (const OnError policy : {OnError::kRaise, OnError::kSkip, OnError::kReplace}) {
    const std::string expected = run(*map, 1, policy);
    EXPECT_EQ(expected.find("five") != std::string::npos, policy == OnError::kRaise);
    EXPECT_EQ(expected.find("key-5") != std::string::npos, policy == OnError::kRaise);
    EXPECT_EQ(run(*map, 5, policy), expected);
  }
}

TEST(MappingTest, WhatEndsTheProgramEndsTheLoaderUnderEveryPolicy) {
  const auto map = point({"label"}, [&](FunctionCall call) -> Result<FunctionResult> {
    if (number_of(call.values[0]) == 5)
      return std::unexpected(Error{ErrorCode::kCancelled, "enough", {}, 0, std::make_shared<int>(1)});
    return times_ten(call);
  });
  const auto recipe = recipe_of(*map);
  ASSERT_TRUE(recipe);
  for (const OnError policy : {OnError::kRaise, OnError::kSkip, OnError::kReplace}) {
    auto plan = plan_pipeline(**recipe, {.batch_size = 6, .num_workers = 2, .on_error = policy});
    Pipeline pipeline(*recipe, *plan);
    ASSERT_TRUE(pipeline.begin({}, false));
    Result<Loader::Polled> polled;
    for (Batch batch; polled && *polled != Loader::Polled::kEnd;)
      polled = pipeline.poll(std::chrono::seconds(100), batch);
    ASSERT_FALSE(polled);
    EXPECT_EQ(polled.error().what, "enough");
    EXPECT_TRUE(polled.error().raised);
  }
}

TEST(MappingTest, ThreadsThatAFunctionKeepsAreLeftToIt) {
  // static: abandoned threads may return after the test
  static std::mutex mutex;
  static std::condition_variable changed;
  static int inside = 0;
  static bool may_return = false;
  static std::atomic<int> returned = 0;
  const auto map = point({"label"}, [&](FunctionCall call) {
    if (number_of(call.values[0]) >= 4) {
      std::unique_lock lock(mutex);
      ++inside;
      changed.notify_all();
      changed.wait(lock, [&] { return may_return; });
      ++returned;
    }
    return times_ten(call);
  });
  const auto recipe = recipe_of(*map);
  ASSERT_TRUE(recipe);
  auto plan = plan_pipeline(**recipe, {.batch_size = 2, .num_workers = 2});
  {
    Pipeline pipeline(*recipe, *plan);
    ASSERT_TRUE(pipeline.begin({}, false));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside == 2; });
  }  // the loader and its memory are gone
  {
    const std::lock_guard lock(mutex);
    may_return = true;
  }
  changed.notify_all();
  while (returned < 2) std::this_thread::yield();  // they use none of the loader's memory
}

TEST(MappingTest, OperationsBehindItAreForOtherFields) {
  const auto map = point({"image"}, &rebuilt, 1);
  const auto checked = [&](Operation operation) {
    return check_operations(source(), {op::CenterCrop{{4, 4}}, std::move(operation)}, {}, map.get());
  };
  const auto refused = checked(op::RandomHorizontalFlip{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_NE(refused.error().what.find("random_horizontal_flip: 'image' is an argument of"), std::string::npos);
  EXPECT_TRUE(check_operations(source(), {op::CenterCrop{{4, 4}}}, {}, map.get()));
  const auto of_label = point({"label"}, &times_ten, 1);
  EXPECT_TRUE(check_operations(source(), {op::CenterCrop{{4, 4}}, op::RandomHorizontalFlip{}}, {}, of_label.get()));
}

TEST(MappingTest, AnotherFunctionLeavesWhatWasTakenTaken) {
  const auto first = point({"image"}, &rebuilt, 1);
  const auto second = MapPoint::make(std::make_shared<Function>(std::vector<std::string>{"image", "label"}, &rebuilt),
                                     source(), 3, first.get());
  ASSERT_TRUE(second);
  EXPECT_FALSE(check_operations(source(), {op::CenterCrop{{4, 4}}, op::RandomHorizontalFlip{}}, {}, second->get()));
  EXPECT_FALSE(
      MapPoint::make(std::make_shared<Function>(std::vector<std::string>{"nothing"}, &rebuilt), source(), 0, nullptr));
}

TEST(MappingTest, CollationsAreForWhatItGives) {
  const auto map = point({}, &rebuilt);
  const auto collated = [&](BatchForm form, std::vector<std::string> fields) {
    const auto collation = make_collation(form, std::move(fields), source(), map.get());
    EXPECT_TRUE(collation);
    return recipe_of(*map, {*collation});
  };
  const auto listed = collated(BatchForm::kList, {});
  ASSERT_TRUE(listed) << listed.error().message();
  EXPECT_EQ((*listed)->schema[0].form, BatchForm::kList);
  EXPECT_EQ((*listed)->schema[0].array.shape, (Shape{kAnyLength, kAnyLength, kAnyLength}));
  EXPECT_FALSE(collated(BatchForm::kDense, {"text"}));
  EXPECT_FALSE(collated(BatchForm::kList, {"label"}));  // which the function drops
}

}  // namespace
}  // namespace feedline::pipeline
