// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/token_format.h"

#include <gtest/gtest.h>

#include <numeric>

#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

class TokenFormatTest : public testing::Test {
 protected:
  // Returns the tokens first, first + 1, ...
  template <typename T = std::uint16_t>
  TokenFile file(const std::string& name, std::size_t count, T first = 0, const std::string& header = "") {
    std::vector<T> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    const std::string bytes(reinterpret_cast<const char*>(tokens.data()), count * sizeof(T));
    return {folder_.write(name, header + bytes), header.size()};
  }
  static Result<std::shared_ptr<const RowFormat>> open(const std::vector<TokenFile>& files, TokenOptions options) {
    return open_tokens(files, options, storage::local_storage());
  }
  // A buffer for x followed by y.
  template <typename Out>
  static std::vector<ArrayView> rows_of(const RowFormat& format, std::vector<Out>& xy) {
    auto* x = reinterpret_cast<std::byte*>(xy.data());
    return {{x, format.fields()[0].array}, {x + format.fields()[0].array.bytes(), format.fields()[1].array}};
  }
  // Returns x and y of a sample, concatenated.
  template <typename Out = std::int64_t>
  static std::vector<Out> sample(const RowFormat& format, std::uint64_t index) {
    const auto window = static_cast<std::size_t>(format.fields()[0].array.shape[0]);
    std::vector<Out> xy(2 * window);
    const auto filled = format.fill({&index, 1}, rows_of(format, xy));
    EXPECT_TRUE(filled) << filled.error().message();
    return xy;
  }

  storage::TemporaryFolder folder_;
};

TEST_F(TokenFormatTest, XIsAWindowAndYTheSameOneTokenLater) {
  const auto format = open({file("a.bin", 9)}, {.window = 4});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->size(), 2u);
  EXPECT_EQ(sample(**format, 0), (std::vector<std::int64_t>{0, 1, 2, 3, 1, 2, 3, 4}));
  EXPECT_EQ(sample(**format, 1), (std::vector<std::int64_t>{4, 5, 6, 7, 5, 6, 7, 8}));
}

TEST_F(TokenFormatTest, WindowsOverlapByTheStrideAndNeverCrossAFile) {
  const auto format =
      open({file("a.bin", 6), file("short.bin", 2), file("b.bin", 5, std::uint16_t{100})}, {.window = 4, .stride = 1});
  ASSERT_TRUE(format);
  EXPECT_EQ((*format)->size(), 3u);  // 0 and 1 from a, 0 from b
  EXPECT_EQ(sample(**format, 1), (std::vector<std::int64_t>{1, 2, 3, 4, 2, 3, 4, 5}));
  EXPECT_EQ(sample(**format, 2), (std::vector<std::int64_t>{100, 101, 102, 103, 101, 102, 103, 104}));
  EXPECT_EQ((*format)->where(2).shard, folder_.path("b.bin"));
  EXPECT_EQ((*format)->where(1).offset, 2u);
}

TEST_F(TokenFormatTest, EveryWidthGoesToBothOutputs) {
  const auto check = [&]<typename T>(T first, DType stored) {
    const auto tokens = file<T>("t.bin", 4, first, "header.");  // and at an odd address
    const auto narrow = open({tokens}, {.window = 3, .stored = stored, .output = DType::kInt32});
    const auto wide = open({tokens}, {.window = 3, .stored = stored});
    ASSERT_TRUE(narrow && wide);
    EXPECT_EQ(sample<std::int32_t>(**narrow, 0)[5], static_cast<std::int32_t>(first + 3));
    EXPECT_EQ(sample(**wide, 0)[5], static_cast<std::int64_t>(first + 3));
  };
  check(std::uint8_t{250}, DType::kUint8);
  check(std::int16_t{-5}, DType::kInt16);
  check(std::uint16_t{65000}, DType::kUint16);
  check(std::int32_t{70000}, DType::kInt32);
  check(std::uint32_t{80000}, DType::kUint32);
  check(std::int64_t{90000}, DType::kInt64);
}

TEST_F(TokenFormatTest, RefusesWhatIsNotTokens) {
  const auto why = [&](const TokenFile& tokens, TokenOptions options) {
    const auto format = open({tokens}, options);
    return format ? "accepted" : format.error().message();
  };
  EXPECT_NE(why({folder_.write("odd.bin", "12345"), 0}, {.window = 1}).find("5 bytes are not a multiple of 2"),
            std::string::npos);
  EXPECT_NE(why(file("few.bin", 4), {.window = 4}).find("5 tokens that a window and its targets need"),
            std::string::npos);
  EXPECT_NE(why(file("a.bin", 9), {}).find("window must be at least 1"), std::string::npos);
  EXPECT_NE(why(file("a.bin", 9), {.window = 2, .stored = DType::kFloat32}).find("float32 tokens"), std::string::npos);
  EXPECT_NE(why({folder_.path("nowhere"), 0}, {.window = 2}).find("nowhere"), std::string::npos);
  EXPECT_NE(why({folder_.write("none.bin", ""), 0}, {.window = 2}).find("all files together have 0"),
            std::string::npos);
}

TEST_F(TokenFormatTest, ATokenOutsideTheVocabularyIsNamedWithItsPlace) {
  const auto tokens = file("v.bin", 10, std::uint16_t{50});
  EXPECT_TRUE(open({tokens}, {.window = 2, .vocabulary = 60}));
  const auto format = open({tokens}, {.window = 2, .vocabulary = 57});
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, ErrorCode::kData);
  EXPECT_EQ(format.error().what, "position 7 has token 57, but the vocabulary size is 57");
  EXPECT_EQ(format.error().where.offset, 14u);
  const auto negative = file("n.bin", 4, std::int16_t{-1});
  const auto refused = open({negative}, {.window = 2, .stored = DType::kInt16, .vocabulary = 100});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "position 0 has token -1, but the vocabulary size is 100");
}

TEST_F(TokenFormatTest, PackedDocumentsAreNumberedAndNothingIsPredictedAcrossTheirEnds) {
  const std::vector<std::uint16_t> tokens{5, 6, 0, 7, 0, 0, 8, 9, 10};
  const std::string bytes(reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2);
  const auto check = [&]<typename Out>(Out, DType output) {
    const auto format = open({{folder_.write("d.bin", bytes), 0}}, {.window = 8, .output = output, .separator = 0});
    ASSERT_TRUE(format) << format.error().message();
    ASSERT_EQ((*format)->fields().size(), 3u);
    EXPECT_EQ((*format)->fields()[2].array, (ArraySpec{DType::kInt32, {8}}));
    std::vector<Out> xy(16);
    std::vector<std::int32_t> document(8);
    auto rows = rows_of(**format, xy);
    rows.push_back({reinterpret_cast<std::byte*>(document.data()), (*format)->fields()[2].array});
    const std::uint64_t sample = 0;
    ASSERT_TRUE((*format)->fill({&sample, 1}, rows));
    EXPECT_EQ(xy, (std::vector<Out>{5, 6, 0, 7, 0, 0, 8, 9, 6, 0, -100, 0, -100, -100, 9, 10}));
    EXPECT_EQ(document, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 2, 3, 3}));
  };
  check(std::int64_t{}, DType::kInt64);
  check(std::int32_t{}, DType::kInt32);
}

TEST_F(TokenFormatTest, ASeparatorThatNoTokenCanBeIsRefused) {
  const auto tokens = file("a.bin", 50);
  const auto why = [&](TokenOptions options) {
    options.window = 4;
    const auto format = open({tokens}, options);
    return format ? "accepted" : format.error().message();
  };
  EXPECT_NE(why({.separator = 65536}).find("cannot be among tokens of dtype uint16"), std::string::npos);
  EXPECT_NE(why({.separator = -1}).find("cannot be among tokens of dtype uint16"), std::string::npos);
  EXPECT_NE(why({.vocabulary = 60, .separator = 60}).find("outside the vocabulary of 60"), std::string::npos);
  EXPECT_NE(why({.vocabulary = 60, .separator = 55}).find("separator 55 is not among the 50 tokens"),
            std::string::npos);
  EXPECT_EQ(why({.vocabulary = 60, .separator = 49}), "accepted");
  EXPECT_EQ(why({.separator = 55}), "accepted");  // the vocabulary check is off
  EXPECT_NE(why({.documents = Documents::kApart}).find("need a separator"), std::string::npos);
  EXPECT_NE(why({.output = DType::kInt32, .separator = 3, .documents = Documents::kApart, .pad = 1LL << 31})
                .find("pad 2147483648 cannot be delivered as int32"),
            std::string::npos);
  EXPECT_NE(why({.separator = 3, .documents = Documents::kApart, .shortest = 1}).find("at least 2 tokens"),
            std::string::npos);
}

TEST_F(TokenFormatTest, AFileThatHasBecomeShorterIsAnErrorAndNoCrash) {
  const auto tokens = file("s.bin", 5000);
  const auto format = open({tokens}, {.window = 100});
  ASSERT_TRUE(format);
  std::filesystem::resize_file(tokens.path, 300);
  const std::uint64_t last = (*format)->size() - 1;
  std::vector<std::int64_t> xy(200);
  EXPECT_FALSE((*format)->fill({&last, 1}, rows_of(**format, xy)));
}

TEST_F(TokenFormatTest, HeldFilesGiveWhatReadOnesGive) {
  const std::vector<TokenFile> files{file("a.bin", 90'000), file("b.bin", 40'000, std::uint16_t{7}, "a header")};
  for (const auto separator : {std::optional<std::int64_t>(), std::optional<std::int64_t>(500)})
    for (const Documents documents : {Documents::kPack, Documents::kApart}) {
      if (!separator && documents == Documents::kApart) continue;
      TokenOptions options{.window = 300, .stride = 170, .separator = separator, .documents = documents};
      options.memory_bytes = 0;
      const auto read = open(files, options);
      options.memory_bytes = std::nullopt;
      const auto held = open(files, options);
      ASSERT_TRUE(read && held);
      ASSERT_EQ((*held)->size(), (*read)->size());
      EXPECT_EQ((*held)->fingerprint(), (*read)->fingerprint());
      const auto row_of = [&](const RowFormat& format, std::uint64_t index) {
        std::vector<std::int64_t> all(3 * 300, -1);
        auto* const first = reinterpret_cast<std::byte*>(all.data());
        std::vector<ArrayView> rows;
        for (std::size_t f = 0; f < format.fields().size(); ++f) {
          ArraySpec spec = format.fields()[f].array;
          if (spec.is_ragged()) spec.shape = spec.shape.with_first(300);
          rows.push_back({first + f * 300 * sizeof(std::int64_t), spec});
        }
        EXPECT_TRUE(format.fill({&index, 1}, rows));
        return all;
      };
      for (int round = 0; round < 2; ++round)
        for (std::uint64_t i = 0; i < (*read)->size(); i += 1 + i % 3)
          ASSERT_EQ(row_of(**held, i), row_of(**read, i)) << i;
    }
}

TEST_F(TokenFormatTest, FilesAreHeldWhereAllOfThemFit) {
  const std::vector<TokenFile> files{file("a.bin", 5000), file("b.bin", 3000)};
  const auto is_held = [&](std::optional<std::uint64_t> memory_bytes) {
    return !(*open(files, {.window = 100, .memory_bytes = memory_bytes}))->summary().empty();
  };
  EXPECT_TRUE(is_held(16'000));
  EXPECT_FALSE(is_held(15'999));
  EXPECT_FALSE(is_held(0));
  EXPECT_TRUE(is_held(std::nullopt));
}

TEST_F(TokenFormatTest, OfAHeldFileThatIsCutWhatWasReadIsStillThere) {
  const auto tokens = file("s.bin", 60'000);
  const auto format = open({tokens}, {.window = 100});
  ASSERT_TRUE(format);
  const auto first = sample(**format, 0);
  std::filesystem::resize_file(tokens.path, 300);
  EXPECT_EQ(sample(**format, 0), first);
  const std::uint64_t last = (*format)->size() - 1;
  std::vector<std::int64_t> xy(200);
  const auto filled = (*format)->fill({&last, 1}, rows_of(**format, xy));
  ASSERT_FALSE(filled);
  EXPECT_NE(filled.error().what.find("shorter"), std::string::npos);
}

}  // namespace
}  // namespace feedline::format
