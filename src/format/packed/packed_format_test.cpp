// SPDX-License-Identifier: Apache-2.0
#include "format/packed/packed_format.h"

#include <gtest/gtest.h>

#include "format/arrays/array_format.h"

namespace feedline::format {
namespace {

using Tokens = std::vector<std::int64_t>;

using Integers = std::vector<std::int32_t>;

NamedArray ragged(std::string name, const Integers& values, std::vector<std::int64_t> offsets) {
  NamedArray array;
  array.name = std::move(name);
  array.data = reinterpret_cast<const std::byte*>(values.data());
  array.rows = values.size();
  array.stride = sizeof(std::int32_t);
  array.row = {DType::kInt32, {}};
  array.offsets = std::move(offsets);
  return array;
}

class PackedFormatTest : public testing::Test {
 protected:
  std::shared_ptr<PackedFormat> format(const PackOptions& options) const {
    return std::make_shared<PackedFormat>(*token_fields_of(whole_, "", "test"), options);
  }
  // Adds a field of integers for each token of the documents.
  std::shared_ptr<PackedFormat> format(const PackOptions& options, const char* name, const Integers& values) const {
    const auto whole = *ArrayFormat::make({ragged("tokens", tokens_, kOffsets), ragged(name, values, kOffsets)});
    return std::make_shared<PackedFormat>(*token_fields_of(whole, "", "test"), options);
  }
  struct Row {
    Tokens input_ids, labels, position_ids, document_ids;
    std::vector<std::int32_t> ends;
    Result<std::uint64_t> read;
  };
  static Row read(const PackedFormat& format, std::uint64_t sample) {
    const std::size_t length = format.length(sample, 0);
    Row row{Tokens(length),
            Tokens(length),
            Tokens(length),
            Tokens(length),
            std::vector<std::int32_t>(format.length(sample, 4)),
            0};
    const auto view = [](auto& values, DType dtype) {
      return ArrayView{reinterpret_cast<std::byte*>(values.data()),
                       {dtype, {static_cast<std::int64_t>(values.size())}}};
    };
    const std::vector<ArrayView> views{view(row.input_ids, DType::kInt64), view(row.labels, DType::kInt64),
                                       view(row.position_ids, DType::kInt64), view(row.document_ids, DType::kInt64),
                                       view(row.ends, DType::kInt32)};
    row.read = format.fill({&sample, 1}, views);
    return row;
  }

  // Documents {10, 11, 12}, {20}, {30, 31, 32, 33}.
  static inline const std::vector<std::int64_t> kOffsets{0, 3, 4, 8};
  const Integers tokens_{10, 11, 12, 20, 30, 31, 32, 33};
  const std::shared_ptr<const Format> whole_ = *ArrayFormat::make({ragged("tokens", tokens_, kOffsets)});
};

TEST_F(PackedFormatTest, PlacesPiecesAndPadding) {
  const auto packed = format({.length = 5, .pad = 99});
  const std::uint64_t first = packed->add({{{0, 0, 3}, {1, 0, 1}}, {{2, 0, 4}}});
  const Row row = read(*packed, first);
  ASSERT_TRUE(row.read);
  EXPECT_EQ(row.input_ids, (Tokens{10, 11, 12, 20, 99}));
  EXPECT_EQ(row.labels, (Tokens{-100, 11, 12, -100, -100}));
  EXPECT_EQ(row.position_ids, (Tokens{0, 1, 2, 0, 0}));
  EXPECT_EQ(row.document_ids, (Tokens{0, 0, 0, 1, -1}));
  EXPECT_EQ(read(*packed, first + 1).input_ids, (Tokens{30, 31, 32, 33, 99}));
}

// The list of both rows, in equal parts: 0, 3, 4, 5 (padding) and 9, 10 (padding), then a copy of the end.
TEST_F(PackedFormatTest, DividesTheSegmentsOfABatchEvenly) {
  const auto packed = format({.length = 5});
  const std::uint64_t first = packed->add({{{0, 0, 3}, {1, 0, 1}}, {{2, 0, 4}}});
  EXPECT_EQ(read(*packed, first).ends, (std::vector<std::int32_t>{0, 3, 4}));
  EXPECT_EQ(read(*packed, first + 1).ends, (std::vector<std::int32_t>{5, 9, 10}));
  const auto segments = packed->segments_of(first + 1);
  ASSERT_TRUE(segments);
  EXPECT_EQ(segments->count, 5u);
  EXPECT_EQ(segments->longest, 4u);
}

TEST_F(PackedFormatTest, ShiftsLabelsAlsoAcrossTheEndOfARow) {
  const auto packed = format({.length = 3, .labels = PackLabels::kNextToken});
  const std::uint64_t first = packed->add({{{2, 0, 3, true}}, {{2, 3, 1}, {1, 0, 1}}});
  EXPECT_EQ(read(*packed, first).labels, (Tokens{31, 32, 33}));
  const Row rest = read(*packed, first + 1);
  EXPECT_EQ(rest.input_ids, (Tokens{33, 20, 0}));
  EXPECT_EQ(rest.labels, (Tokens{-100, -100, -100}));
  EXPECT_EQ(rest.position_ids, (Tokens{0, 0, 0}));
}

// Documents of 3, 1 and 4 tokens in 4, 2 and 4 positions.
TEST_F(PackedFormatTest, PadsDocumentsToAMultiple) {
  const auto packed = format({.length = 8, .document_multiple = 2, .pad = 99});
  const std::uint64_t first = packed->add({{{0, 0, 3}, {1, 0, 1}}, {{2, 0, 4}}});
  const Row row = read(*packed, first);
  ASSERT_TRUE(row.read);
  EXPECT_EQ(row.input_ids, (Tokens{10, 11, 12, 99, 20, 99, 99, 99}));
  EXPECT_EQ(row.labels, (Tokens{-100, 11, 12, -100, -100, -100, -100, -100}));
  EXPECT_EQ(row.position_ids, (Tokens{0, 1, 2, 3, 0, 1, 0, 1}));
  EXPECT_EQ(row.document_ids, (Tokens{0, 0, 0, -1, 1, -1, -1, -1}));
  EXPECT_EQ(row.ends, (std::vector<std::int32_t>{0, 4, 6}));
  EXPECT_EQ(read(*packed, first + 1).ends, (std::vector<std::int32_t>{8, 12, 16}));
  EXPECT_EQ(packed->segments_of(first)->longest, 4u);
}

// A token outside of the mask has no label, wherever the label is.
TEST_F(PackedFormatTest, AppliesTheLossMask) {
  const Integers mask{1, 0, 1, 1, 0, 1, 0, 1};
  const auto same = format({.length = 5}, "loss_mask", mask);
  std::uint64_t first = same->add({{{0, 0, 3}, {1, 0, 1}}, {{2, 0, 4}}});
  EXPECT_EQ(read(*same, first).labels, (Tokens{-100, -100, 12, -100, -100}));
  EXPECT_EQ(read(*same, first + 1).labels, (Tokens{-100, 31, -100, 33, -100}));
  const auto next = format({.length = 3, .labels = PackLabels::kNextToken}, "loss_mask", mask);
  first = next->add({{{0, 0, 3}}, {{2, 0, 3, true}}, {{2, 3, 1}}});
  EXPECT_EQ(read(*next, first).labels, (Tokens{-100, 12, -100}));
  EXPECT_EQ(read(*next, first + 1).labels, (Tokens{31, -100, 33}));
  EXPECT_EQ(read(*next, first + 2).labels, (Tokens{-100, -100, -100}));
}

TEST_F(PackedFormatTest, UsesTheLabelsOfTheDataset) {
  const Integers labels{50, -100, 52, 53, 54, 55, -100, 57};
  const auto same = format({.length = 5}, "labels", labels);
  std::uint64_t first = same->add({{{0, 0, 3}, {1, 0, 1}}});
  EXPECT_EQ(read(*same, first).labels, (Tokens{-100, -100, 52, -100, -100}));
  EXPECT_EQ(read(*same, first).input_ids, (Tokens{10, 11, 12, 20, 0}));
  const auto next = format({.length = 3, .labels = PackLabels::kNextToken}, "labels", labels);
  first = next->add({{{2, 0, 3, true}}});
  EXPECT_EQ(read(*next, first).labels, (Tokens{55, -100, 57}));
}

TEST_F(PackedFormatTest, RefusesLabelsThatAreNotTokens) {
  const Integers labels{1, 2, 3, 4, 5, 6, -7, 8};
  const auto packed = format({.length = 5}, "labels", labels);
  const std::uint64_t first = packed->add({{{0, 0, 3}, {1, 0, 1}}, {{2, 0, 4}}});
  EXPECT_TRUE(read(*packed, first).read);
  const Row row = read(*packed, first + 1);
  ASSERT_FALSE(row.read);
  EXPECT_EQ(row.read.error().what, "the label at position 2 is -7; labels must be -100 or tokens");
  EXPECT_EQ(packed->where(first + 1).record, 2u);
}

TEST_F(PackedFormatTest, NamesTheDocumentWhoseFieldsDifferInLength) {
  const Integers mask(8, 1);
  const auto whole = *ArrayFormat::make({ragged("tokens", tokens_, kOffsets), ragged("loss_mask", mask, {0, 3, 5, 8})});
  const auto fields = token_fields_of(whole, "", "test");
  ASSERT_FALSE(fields);
  EXPECT_EQ(fields.error().code, ErrorCode::kData);
  EXPECT_EQ(fields.error().what, "'loss_mask' has 2 values, but 'tokens' has 1 tokens; both must have the same length");
  EXPECT_EQ(fields.error().where.record, 1u);
}

TEST_F(PackedFormatTest, NamesTheDocumentOfATokenOutsideTheVocabulary) {
  const auto packed = format({.length = 5, .vocabulary = 32});
  const std::uint64_t first = packed->add({{{0, 0, 3}}, {{1, 0, 1}, {2, 0, 4}}});
  EXPECT_TRUE(read(*packed, first).read);
  const Row row = read(*packed, first + 1);
  ASSERT_FALSE(row.read);
  EXPECT_EQ(row.read.error().code, ErrorCode::kData);
  EXPECT_EQ(row.read.error().what, "the token at position 2 is 32, but vocabulary=32");
  EXPECT_EQ(packed->where(first + 1).record, 2u);
}

TEST_F(PackedFormatTest, ForgetsBatches) {
  const auto packed = format({.length = 5});
  const std::uint64_t first = packed->add({{{0, 0, 3}}}), second = packed->add({{{1, 0, 1}}});
  packed->forget_before(second);
  EXPECT_FALSE(read(*packed, first).read);
  EXPECT_FALSE(packed->segments_of(first));
  EXPECT_TRUE(read(*packed, second).read);
}

TEST_F(PackedFormatTest, NeedsOneFieldOfIntegers) {
  EXPECT_TRUE(token_fields_of(whole_, "tokens", "test"));
  const auto other = token_fields_of(whole_, "words", "test");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("does not have the field 'words'"), std::string::npos);
  const auto scalar = token_fields_of(whole_, "tokens_length", "test");
  ASSERT_FALSE(scalar);
  EXPECT_NE(scalar.error().what.find("'tokens_length' does not contain lists of integers"), std::string::npos);
}

}  // namespace
}  // namespace feedline::format
