// SPDX-License-Identifier: Apache-2.0
#include "format/token_format.h"

#include <gtest/gtest.h>

#include <numeric>

#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

class TokenFormatTest : public testing::Test {
 protected:
  // Tokens first, first + 1, ...
  template <typename T = std::uint16_t>
  TokenFile file(const std::string& name, std::size_t count, T first = 0, const std::string& header = "") {
    std::vector<T> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    const std::string bytes(reinterpret_cast<const char*>(tokens.data()), count * sizeof(T));
    return {folder_.write(name, header + bytes), header.size()};
  }
  static Result<std::shared_ptr<const Format>> open(const std::vector<TokenFile>& files, TokenOptions options) {
    return TokenFormat::open(files, options, storage::local_storage());
  }
  // x and y of a sample, one behind the other.
  template <typename Out = std::int64_t>
  static std::vector<Out> sample(const Format& format, std::uint64_t index) {
    const auto window = static_cast<std::size_t>(format.fields()[0].array.shape[0]);
    std::vector<Out> xy(2 * window);
    std::byte* const fields[] = {reinterpret_cast<std::byte*>(xy.data()),
                                 reinterpret_cast<std::byte*>(xy.data() + window)};
    const auto filled = format.fill({&index, 1}, fields);
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
  EXPECT_EQ((*format)->size(), 3u);  // 0 and 1 of a, 0 of b
  EXPECT_EQ(sample(**format, 1), (std::vector<std::int64_t>{1, 2, 3, 4, 2, 3, 4, 5}));
  EXPECT_EQ(sample(**format, 2), (std::vector<std::int64_t>{100, 101, 102, 103, 101, 102, 103, 104}));
  EXPECT_EQ((*format)->where(2).shard, folder_.path("b.bin"));
  EXPECT_EQ((*format)->where(1).offset, 2u);
}

TEST_F(TokenFormatTest, EveryWidthGoesToBothOutputs) {
  const auto check = [&]<typename T>(T first, DType stored) {
    const auto tokens = file<T>("t.bin", 4, first, "header.");  // and from an odd address
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
  EXPECT_NE(why({folder_.write("odd.bin", "12345"), 0}, {.window = 1}).find("5 bytes are no multiple of 2"),
            std::string::npos);
  EXPECT_NE(why(file("few.bin", 4), {.window = 4}).find("5 tokens that a window and its targets take"),
            std::string::npos);
  EXPECT_NE(why(file("a.bin", 9), {}).find("window must be at least 1"), std::string::npos);
  EXPECT_NE(why(file("a.bin", 9), {.window = 2, .stored = DType::kFloat32}).find("float32 tokens"), std::string::npos);
  EXPECT_NE(why({folder_.path("nowhere"), 0}, {.window = 2}).find("nowhere"), std::string::npos);
  EXPECT_NE(why({folder_.write("none.bin", ""), 0}, {.window = 2}).find("all together have 0"), std::string::npos);
}

TEST_F(TokenFormatTest, ATokenOutsideTheVocabularyIsNamedWithItsPlace) {
  const auto tokens = file("v.bin", 10, std::uint16_t{50});
  EXPECT_TRUE(open({tokens}, {.window = 2, .vocabulary = 60}));
  const auto format = open({tokens}, {.window = 2, .vocabulary = 57});
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, ErrorCode::kData);
  EXPECT_NE(format.error().what.find("token 7"), std::string::npos);
  EXPECT_EQ(format.error().where.offset, 14u);
  EXPECT_FALSE(open({file("n.bin", 4, std::int16_t{-1})}, {.window = 2, .stored = DType::kInt16, .vocabulary = 100}));
}

TEST_F(TokenFormatTest, AFileThatHasBecomeShorterIsAnErrorAndNoCrash) {
  const auto tokens = file("s.bin", 5000);
  const auto format = open({tokens}, {.window = 100});
  ASSERT_TRUE(format);
  std::filesystem::resize_file(tokens.path, 300);
  const std::uint64_t last = (*format)->size() - 1;
  std::vector<std::int64_t> xy(200);
  std::byte* const fields[] = {reinterpret_cast<std::byte*>(xy.data()), reinterpret_cast<std::byte*>(xy.data() + 100)};
  EXPECT_FALSE((*format)->fill({&last, 1}, fields));
}

}  // namespace
}  // namespace feedline::format
