// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/number_copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace feedline::format {
namespace {

template <typename To, typename From>
Result<std::vector<To>> copied(NumberRun run, const std::vector<From>& values, const std::vector<GatheredRow>& rows,
                               NumberConversion conversion) {
  run.values = std::as_bytes(std::span(values));
  std::vector<To> out(rows.size() * conversion.elements, To{42});
  auto done =
      copy_numbers(run, rows, conversion, reinterpret_cast<std::byte*>(out.data()), sizeof(To) * conversion.elements);
  if (!done) return std::unexpected(std::move(done).error());
  return out;
}

TEST(NumberCopy, RowsGoToTheirPlaces) {
  const NumberRun run{.begin = 10, .end = 14};
  const std::vector<std::int32_t> values{-1, 2, 3, 4};
  const std::vector<GatheredRow> rows{{10, 2}, {12, 0}, {12, 3}, {13, 1}};
  EXPECT_EQ((copied<std::int64_t>(run, values, rows, {DType::kInt32, DType::kInt64}).value()),
            (std::vector<std::int64_t>{3, 4, -1, 3}));
  EXPECT_EQ((copied<std::int32_t>(run, values, rows, {DType::kInt32, DType::kInt32}).value()),
            (std::vector<std::int32_t>{3, 4, -1, 3}));
  EXPECT_EQ((copied<float>(run, values, rows, {DType::kInt32, DType::kFloat32}).value()),
            (std::vector<float>{3, 4, -1, 3}));
}

TEST(NumberCopy, ConvertsEveryDtypeToFloats) {
  const NumberRun run{.begin = 0, .end = 2};
  const std::vector<GatheredRow> rows{{0, 0}, {1, 1}};
  const auto all = [&]<typename From>(DType from, std::vector<From> values) {
    EXPECT_EQ((copied<float>(run, values, rows, {from, DType::kFloat32}).value()), (std::vector<float>{1, 5}))
        << name_of(from);
    EXPECT_EQ((copied<double>(run, values, rows, {from, DType::kFloat64}).value()), (std::vector<double>{1, 5}))
        << name_of(from);
  };
  all(DType::kInt8, std::vector<std::int8_t>{1, 5});
  all(DType::kInt16, std::vector<std::int16_t>{1, 5});
  all(DType::kInt32, std::vector<std::int32_t>{1, 5});
  all(DType::kInt64, std::vector<std::int64_t>{1, 5});
  all(DType::kUint8, std::vector<std::uint8_t>{1, 5});
  all(DType::kUint16, std::vector<std::uint16_t>{1, 5});
  all(DType::kUint32, std::vector<std::uint32_t>{1, 5});
  all(DType::kUint64, std::vector<std::uint64_t>{1, 5});
  all(DType::kFloat32, std::vector<float>{1, 5});
  all(DType::kFloat64, std::vector<double>{1, 5});
  all(DType::kFloat16, std::vector<std::uint16_t>{0x3c00, 0x4500});
  EXPECT_EQ((copied<float>(run, std::vector<std::uint8_t>{0, 1}, rows, {DType::kBool, DType::kFloat32}).value()),
            (std::vector<float>{0, 1}));
}

TEST(NumberCopy, ConvertsEveryKindOfHalf) {
  // one, the smallest subnormal and normal numbers, the largest number, minus zero, infinity
  const std::vector<std::uint16_t> halves{0xbc00, 0x0001, 0x0400, 0x7bff, 0x8000, 0x7c00, 0x8003};
  const std::vector<float> wanted{-1,       0x1p-24F, 0x1p-14F, 65504, -0.0F, std::numeric_limits<float>::infinity(),
                                  -0x3p-24F};
  std::vector<GatheredRow> rows;
  for (std::size_t i = 0; i < halves.size(); ++i) rows.push_back({i, i});
  const NumberRun run{.begin = 0, .end = halves.size()};
  const auto made = copied<float>(run, halves, rows, {DType::kFloat16, DType::kFloat32}).value();
  EXPECT_EQ(made, wanted);
  EXPECT_TRUE(std::signbit(made[4]));
  const auto nan = copied<float>({.begin = 0, .end = 1}, std::vector<std::uint16_t>{0x7e00}, {{0, 0}},
                                 {DType::kFloat16, DType::kFloat32});
  EXPECT_TRUE(std::isnan(nan->front()));
}

TEST(NumberCopy, NullsAreErrorsNanOrFalse) {
  const std::vector<std::uint32_t> value_of{0, NumberRun::kNull, 1};
  const std::byte valid{0b101};
  const NumberRun packed{.begin = 0, .end = 3, .value_of = value_of};  // nulls have no number
  const NumberRun spread{.begin = 0, .end = 3, .valid = {&valid, 1}};  // nulls have arbitrary numbers
  const std::vector<GatheredRow> rows{{0, 0}, {1, 1}, {2, 2}};
  const std::vector<float> two{1.5F, 2.5F}, three{1.5F, 9, 2.5F};
  for (const auto& [run, values] : {std::pair(packed, two), std::pair(spread, three)}) {
    EXPECT_EQ(copied<float>(run, values, rows, {DType::kFloat32, DType::kFloat32}).error().code, ErrorCode::kData);
    const auto made =
        copied<float>(run, values, rows, {.from = DType::kFloat32, .to = DType::kFloat32, .null = NullValue::kNan})
            .value();
    EXPECT_EQ(made[0], 1.5F);
    EXPECT_TRUE(std::isnan(made[1]));
    EXPECT_EQ(made[2], 2.5F);
    EXPECT_EQ((copied<std::uint8_t>(run, values, rows,
                                    {.from = DType::kFloat32, .to = DType::kBool, .null = NullValue::kFlag})
                   .value()),
              (std::vector<std::uint8_t>{1, 0, 1}));
  }
  const auto whole = copied<double>(packed, std::vector<std::int64_t>{7, 8}, rows,
                                    {.from = DType::kInt64, .to = DType::kFloat64, .null = NullValue::kNan})
                         .value();
  EXPECT_EQ(whole[0], 7);
  EXPECT_TRUE(std::isnan(whole[1]));
  const auto halves = copied<std::uint16_t>(packed, std::vector<std::uint16_t>{1, 2}, rows,
                                            {.from = DType::kFloat16, .to = DType::kFloat16, .null = NullValue::kNan});
  EXPECT_EQ(*halves, (std::vector<std::uint16_t>{1, 0x7e00, 2}));
}

TEST(NumberCopy, LargeUnsignedIntegersAreErrors) {
  const NumberRun run{.begin = 0, .end = 2};
  const std::vector<std::uint64_t> values{1, std::uint64_t{1} << 63};
  EXPECT_TRUE((copied<std::int64_t>(run, values, {{0, 0}}, {DType::kUint64, DType::kInt64})));
  EXPECT_FALSE((copied<std::int64_t>(run, values, {{0, 0}, {1, 1}}, {DType::kUint64, DType::kInt64})));
}

TEST(NumberCopy, ListsHaveOneSize) {
  const std::vector<std::int16_t> values{1, 2, 3, 4, 5, 6};
  const NumberConversion pairs{.from = DType::kInt16, .to = DType::kInt16, .elements = 2};
  const std::vector<GatheredRow> rows{{4, 1}, {5, 0}};
  EXPECT_EQ(copied<std::int16_t>({.begin = 4, .end = 7, .elements = 2}, values, rows, pairs).value(),
            (std::vector<std::int16_t>{3, 4, 1, 2}));
  const std::vector<std::uint32_t> begins{1, 3, 5, 6}, outside{1, 3, 5, 7};
  const NumberRun run{.begin = 4, .end = 7, .list_begins = begins};
  EXPECT_EQ(copied<std::int16_t>(run, values, rows, pairs).value(), (std::vector<std::int16_t>{4, 5, 2, 3}));
  EXPECT_FALSE(copied<std::int16_t>(run, values, {{6, 0}}, pairs)) << "a list of one number";
  EXPECT_FALSE(copied<std::int16_t>({.begin = 4, .end = 7, .list_begins = outside}, values, {{6, 0}}, pairs));
  EXPECT_FALSE(copied<std::int16_t>({.begin = 4, .end = 9, .elements = 2}, values, {{7, 0}}, pairs));
  EXPECT_FALSE(copied<std::int16_t>({.begin = 4, .end = 7, .elements = 3}, values, rows, pairs));
  const std::byte valid{0b001};
  EXPECT_FALSE(copied<std::int16_t>({.begin = 4, .end = 7, .valid = {&valid, 1}, .elements = 2}, values, rows, pairs));
}

}  // namespace
}  // namespace feedline::format
