// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/decode_limit.h"

#include <gtest/gtest.h>

#include <new>

#include "base/check.h"
#include "pipeline/fake_format.h"

namespace feedline::pipeline {
namespace {

// Throws an exception when the decoding thread queries the location of a damaged sample.
class ThrowingFormat final : public format::RecordFormat {
 public:
  explicit ThrowingFormat(std::function<void()> thrower) : thrower_(std::move(thrower)) {}
  std::string_view name() const override { return fake_.name(); }
  std::uint64_t size() const override { return fake_.size(); }
  const std::vector<format::FieldDescription>& fields() const override { return fake_.fields(); }
  const std::vector<std::string>& classes() const override { return fake_.classes(); }
  Result<void> read(std::uint64_t index, memory::Record& record) const override { return fake_.read(index, record); }
  Where where(std::uint64_t index) const override {
    thrower_();
    return fake_.where(index);
  }
  std::uint64_t fingerprint() const override { return fake_.fingerprint(); }
  Result<Inspection> inspect() const override { return fake_.inspect(); }

 private:
  FakeFormat fake_{64, {5}};
  std::function<void()> thrower_;
};

Result<DecodeLimit> measured(std::shared_ptr<const format::Format> format) {
  auto recipe = make_recipe({"fake", std::move(format)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
  EXPECT_TRUE(recipe);
  return measure_decode(*recipe, 64, 3, 0);
}

TEST(DecodeLimit, CountsWhatItDecodes) {
  const auto limit = measured(std::make_shared<FakeFormat>(64));
  ASSERT_TRUE(limit) << limit.error().message();
  EXPECT_EQ(limit->images, 64u);
  EXPECT_EQ(limit->threads, 3);
}

TEST(DecodeLimit, ADamagedSampleIsItsErrorWithItsPlace) {
  const auto limit = measured(std::make_shared<FakeFormat>(64, std::set<std::uint64_t>{5}));
  ASSERT_FALSE(limit);
  EXPECT_EQ(limit.error().code, ErrorCode::kData);
  EXPECT_EQ(limit.error().where.key, "key-5");
}

TEST(DecodeLimit, WhatAThreadThrowsIsReturned) {
  const auto no_memory = measured(std::make_shared<ThrowingFormat>([] { throw std::bad_alloc(); }));
  ASSERT_FALSE(no_memory);
  EXPECT_EQ(no_memory.error().what, "out of memory");
  const auto broken = measured(std::make_shared<ThrowingFormat>([] { FEEDLINE_CHECK(false); }));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace feedline::pipeline
