// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/document_format.h"

#include <gtest/gtest.h>

#include <random>

#include "format/tokens/token_format.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using Tokens = std::vector<std::uint16_t>;

struct Read {
  std::vector<std::int64_t> x, y;
  std::int64_t length = 0;
};

class DocumentFormatTest : public testing::Test {
 protected:
  TokenFile file(const std::string& name, const Tokens& tokens, const std::string& header = "") {
    const std::string bytes(reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2);
    return {folder_.write(name, header + bytes), header.size()};
  }
  static Result<std::shared_ptr<const RowFormat>> open(const std::vector<TokenFile>& files, TokenOptions options) {
    options.separator = options.separator.value_or(0);
    options.documents = Documents::kApart;
    return open_tokens(files, options, storage::local_storage());
  }
  // Returns a sample padded to `row` tokens, or unpadded if `row` is 0.
  static Read sample(const RowFormat& format, std::uint64_t index, std::uint64_t row = 0) {
    if (row == 0) row = format.length(index, 0);
    Read read;
    read.x.resize(row);
    read.y.resize(row);
    const ArraySpec spec{DType::kInt64, {static_cast<std::int64_t>(row)}};
    const auto filled = format.fill(
        {&index, 1}, std::vector<ArrayView>{{reinterpret_cast<std::byte*>(read.x.data()), spec},
                                            {reinterpret_cast<std::byte*>(read.y.data()), spec},
                                            {reinterpret_cast<std::byte*>(&read.length), {DType::kInt64, {}}}});
    EXPECT_TRUE(filled) << filled.error().message();
    return read;
  }

  storage::TemporaryFolder folder_;
};

TEST_F(DocumentFormatTest, NoSampleHasTokensOfTwoDocuments) {
  const auto format =
      open({file("a.bin", {1, 2, 3, 0, 0, 4, 0, 5, 6}), file("b.bin", {7, 8, 0}, "odd")}, {.window = 8});
  ASSERT_TRUE(format) << format.error().message();
  ASSERT_EQ((*format)->size(), 4u);  // a separator without other tokens predicts nothing
  EXPECT_EQ(sample(**format, 0).x, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(sample(**format, 0).y, (std::vector<std::int64_t>{2, 3, 0}));
  EXPECT_EQ(sample(**format, 1).x, (std::vector<std::int64_t>{4}));
  EXPECT_EQ(sample(**format, 2).y, (std::vector<std::int64_t>{6}));  // ended by the end of the file
  EXPECT_EQ(sample(**format, 3).x, (std::vector<std::int64_t>{7, 8}));
  EXPECT_EQ((*format)->where(3).shard, folder_.path("b.bin"));
  EXPECT_EQ((*format)->where(3).offset, 3u);
  EXPECT_EQ((*format)->longest(0), 3u);
  EXPECT_EQ((*format)->shard_ends(), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_NE((*format)->summary().find("4 documents in 4 samples; omitted 1 with fewer than 2 tokens"),
            std::string::npos);
}

TEST_F(DocumentFormatTest, ShorterSamplesArePadded) {
  const auto format = open({file("a.bin", {1, 2, 0})}, {.window = 8, .pad = 9});
  ASSERT_TRUE(format);
  const Read read = sample(**format, 0, 5);
  EXPECT_EQ(read.x, (std::vector<std::int64_t>{1, 2, 9, 9, 9}));
  EXPECT_EQ(read.y, (std::vector<std::int64_t>{2, 0, -100, -100, -100}));
  EXPECT_EQ(read.length, 2);
}

TEST_F(DocumentFormatTest, LongDocumentsAreCutSoThatEveryTokenIsATargetOnce) {
  for (std::uint16_t tokens = 2; tokens < 20; ++tokens) {
    Tokens document(tokens);
    for (std::uint16_t i = 0; i < tokens; ++i) document[i] = i + 1;
    document.back() = 0;
    const auto format = open({file("a.bin", document)}, {.window = 4});
    ASSERT_TRUE(format);
    std::vector<std::int64_t> x, y;
    for (std::uint64_t i = 0; i < (*format)->size(); ++i) {
      const Read read = sample(**format, i);
      EXPECT_LE(read.x.size(), 4u);
      x.insert(x.end(), read.x.begin(), read.x.end());
      y.insert(y.end(), read.y.begin(), read.y.end());
    }
    EXPECT_EQ(x, std::vector<std::int64_t>(document.begin(), document.end() - 1));
    EXPECT_EQ(y, std::vector<std::int64_t>(document.begin() + 1, document.end()));
  }
}

TEST(DocumentIndex, PiecesBeginAStrideApartUntilOneReachesTheEnd) {
  using Pieces = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  const auto pieces = [](std::uint64_t window, std::uint64_t stride, std::uint64_t tokens) {
    DocumentIndex index(window, stride, 2);
    index.add(100, 100 + tokens);
    Pieces found;
    for (std::uint64_t i = 0; i < index.size(); ++i) found.emplace_back(index.first(i) - 100, index.tokens(i));
    return found;
  };
  EXPECT_EQ(pieces(4, 2, 5), (Pieces{{0, 5}}));
  EXPECT_EQ(pieces(4, 2, 8), (Pieces{{0, 5}, {2, 5}, {4, 4}}));
  EXPECT_EQ(pieces(4, 1, 7), (Pieces{{0, 5}, {1, 5}, {2, 5}}));
  EXPECT_EQ(pieces(4, 10, 11), (Pieces{{0, 5}}));  // The second piece would have only one token, which has no target.
  EXPECT_EQ(pieces(4, 10, 12), (Pieces{{0, 5}, {10, 2}}));
  EXPECT_EQ(pieces(4, 4, 1), Pieces{});
}

// Files are read in blocks of a megabyte. Tests separators at both ends of a block, and on both sides of the boundaries
// between the chunks in which a block is searched.
TEST_F(DocumentFormatTest, SeparatorsAreFoundWhereverTheyAre) {
  std::mt19937 random(3);
  Tokens tokens((std::size_t{1} << 19) + 12345, 7);
  for (int i = 0; i < 3000; ++i) tokens[random() % tokens.size()] = 0;
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64},
                               (std::size_t{1} << 19) - 1, std::size_t{1} << 19, tokens.size() - 1})
    tokens[at] = 0;
  const auto format = open({file("a.bin", tokens)}, {.window = 1 << 20});
  ASSERT_TRUE(format);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected, found;
  for (std::uint64_t first = 0, i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != 0) continue;
    if (i > first) expected.emplace_back(2 * first, i - first);
    first = i + 1;
  }
  for (std::uint64_t i = 0; i < (*format)->size(); ++i)
    found.emplace_back(*(*format)->where(i).offset, (*format)->length(i, 0));
  EXPECT_EQ(found, expected);
}

TEST_F(DocumentFormatTest, FilesWithoutDocumentsAreRefused) {
  const auto why = [&](const Tokens& tokens, TokenOptions options) {
    options.window = 4;
    const auto format = open({file("a.bin", tokens)}, options);
    return format ? "accepted" : format.error().message();
  };
  EXPECT_NE(why({1, 2, 3}, {}).find("separator 0 is not among the 3 tokens of the files"), std::string::npos);
  EXPECT_NE(why({0, 0, 0}, {}).find("no document has 2 tokens"), std::string::npos);
  EXPECT_NE(why({1, 2, 0, 3, 0}, {.shortest = 4}).find("no document has 4 tokens"), std::string::npos);
  EXPECT_NE(why({1, 70, 0}, {.vocabulary = 60}).find("position 1 has token 70, but the vocabulary size is 60"),
            std::string::npos);
  EXPECT_NE(why({}, {}).find("not among the 0 tokens"), std::string::npos);
}

TEST_F(DocumentFormatTest, FindsTokensOfEveryWidth) {
  const auto check = [&]<typename T>(T separator, DType stored) {
    const std::vector<T> tokens{1, 2, separator, 3, 4, separator};
    const std::string bytes(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(T));
    const auto format = open({{folder_.write("w.bin", bytes), 0}},
                             {.window = 4, .stored = stored, .separator = static_cast<std::int64_t>(separator)});
    ASSERT_TRUE(format) << format.error().message();
    ASSERT_EQ((*format)->size(), 2u);
    EXPECT_EQ(sample(**format, 1).y, (std::vector<std::int64_t>{4, static_cast<std::int64_t>(separator)}));
  };
  check(std::uint8_t{250}, DType::kUint8);
  check(std::int16_t{-5}, DType::kInt16);
  check(std::uint16_t{65000}, DType::kUint16);
  check(std::int32_t{-70000}, DType::kInt32);
  check(std::uint32_t{4000000000u}, DType::kUint32);
  check(std::int64_t{1} << 40, DType::kInt64);
}

}  // namespace
}  // namespace feedline::format
