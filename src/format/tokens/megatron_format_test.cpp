// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

#include <gtest/gtest.h>

#include <numeric>

#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::string bytes_of(T value) {
  return bytes_of(std::vector<T>{value});
}

// An index as Megatron writes it; the members can be changed to damage it.
struct Index {
  std::string magic{"MMIDIDX\0\0", 9};
  std::uint64_t version = 1;
  std::uint8_t dtype = 8;  // uint16
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> documents;
  std::vector<std::int8_t> modes;
  std::string end;

  Index(std::vector<std::int32_t> lengths_in, std::vector<std::int64_t> documents_in, std::size_t token_bytes = 2)
      : lengths(std::move(lengths_in)), documents(std::move(documents_in)) {
    std::int64_t at = 0;
    for (const std::int32_t length : lengths) {
      offsets.push_back(at);
      at += length * static_cast<std::int64_t>(token_bytes);
    }
  }
  std::string bytes() const {
    return magic + bytes_of(version) + bytes_of(dtype) + bytes_of(std::uint64_t{lengths.size()}) +
           bytes_of(std::uint64_t{documents.size()}) + bytes_of(lengths) + bytes_of(offsets) + bytes_of(documents) +
           bytes_of(modes) + end;
  }
};

class MegatronFormatTest : public testing::Test {
 protected:
  // Writes tokens 0, 1, 2, ...
  template <typename T = std::uint16_t>
  std::string write(const Index& index, std::size_t tokens, const std::string& name = "a") {
    std::vector<T> values(tokens);
    std::iota(values.begin(), values.end(), T{0});
    folder_.write(name + ".bin", bytes_of(values));
    return folder_.write(name + ".idx", index.bytes());
  }
  static Result<std::shared_ptr<const Format>> open(const std::string& path, bool documents = false) {
    OpenOptions options;
    options.documents = documents;
    return format::open(path, options);
  }
  static std::vector<std::int64_t> tokens(const Format& format, std::uint64_t sample) {
    const auto& rows = dynamic_cast<const RowFormat&>(format);
    std::vector<std::int64_t> row(rows.length(sample, 0));
    EXPECT_TRUE(rows.read_integers(sample, 0, 0, row));
    return row;
  }
  std::string failure(const Index& index, std::size_t tokens, bool documents = false) {
    const auto opened = open(write(index, tokens), documents);
    return opened ? "opened" : opened.error().what;
  }
  storage::TemporaryFolder folder_;
};

using Tokens = std::vector<std::int64_t>;

TEST_F(MegatronFormatTest, ReadsSequences) {
  const auto format = open(write(Index({3, 0, 2}, {0, 2, 3}), 5));
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->name(), "megatron");
  ASSERT_EQ((*format)->size(), 3u);
  EXPECT_EQ(tokens(**format, 0), (Tokens{0, 1, 2}));
  EXPECT_EQ(tokens(**format, 1), Tokens{});
  EXPECT_EQ(tokens(**format, 2), (Tokens{3, 4}));
}

TEST_F(MegatronFormatTest, ReadsDocumentsOfSeveralSequences) {
  const auto format = open(write(Index({3, 1, 2, 4}, {0, 2, 2, 4}), 10), true);
  ASSERT_TRUE(format) << format.error().message();
  ASSERT_EQ((*format)->size(), 3u);
  EXPECT_EQ(tokens(**format, 0), (Tokens{0, 1, 2, 3}));
  EXPECT_EQ(tokens(**format, 1), Tokens{});
  EXPECT_EQ(tokens(**format, 2), (Tokens{4, 5, 6, 7, 8, 9}));
}

TEST_F(MegatronFormatTest, PadsRowsAndReturnsLengthsAndModes) {
  Index index({3, 2}, {0, 2});
  index.modes = {7, -1};
  const auto format = open(write(index, 5));
  ASSERT_TRUE(format) << format.error().message();
  const auto& rows = dynamic_cast<const RowFormat&>(**format);
  ASSERT_EQ(rows.fields().size(), 3u);
  Tokens values(6, -9), lengths(2), modes(2);
  const std::vector<ArrayView> views{{reinterpret_cast<std::byte*>(values.data()), {DType::kInt64, {3}}},
                                     {reinterpret_cast<std::byte*>(lengths.data()), {DType::kInt64, {}}},
                                     {reinterpret_cast<std::byte*>(modes.data()), {DType::kInt64, {}}}};
  const std::vector<std::uint64_t> samples{1, 0};
  ASSERT_TRUE(rows.fill(samples, views));
  EXPECT_EQ(values, (Tokens{3, 4, 0, 0, 1, 2}));
  EXPECT_EQ(lengths, (Tokens{2, 3}));
  EXPECT_EQ(modes, (Tokens{-1, 7}));
}

TEST_F(MegatronFormatTest, ReadsALossMaskNextToTheIndex) {
  const std::string path = write(Index({3, 1, 2}, {0, 2, 3}), 6);
  folder_.write("a.loss_mask", std::string("\0\1\2\0\0\1", 6));
  const auto mask = [](const Format& format, std::uint64_t sample) {
    const auto& rows = dynamic_cast<const RowFormat&>(format);
    EXPECT_EQ(rows.fields().at(2).name, "loss_mask");
    std::vector<std::int64_t> row(rows.length(sample, 2));
    EXPECT_TRUE(rows.read_integers(sample, 2, 0, row));
    return row;
  };
  const auto sequences = open(path), documents = open(path, true);
  ASSERT_TRUE(sequences && documents);
  EXPECT_EQ(mask(**sequences, 0), (Tokens{0, 1, 1}));
  EXPECT_EQ(mask(**sequences, 2), (Tokens{0, 1}));
  EXPECT_EQ(mask(**documents, 0), (Tokens{0, 1, 1, 0}));

  write(Index({2}, {0, 1}), 2, "b");
  const auto mixed = open(path + "::" + folder_.path() + "/b.idx");
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().what.find("b.idx' has no loss mask (.loss_mask), but '"), std::string::npos)
      << mixed.error().what;

  folder_.write("a.loss_mask", "12345");
  const auto shorter = open(path);
  ASSERT_FALSE(shorter);
  EXPECT_NE(shorter.error().what.find("has 5 bytes, but the index describes 6 tokens"), std::string::npos);
  EXPECT_EQ(shorter.error().where.shard, folder_.path() + "/a.loss_mask");
}

TEST_F(MegatronFormatTest, ReadsEveryIntegerDtype) {
  const auto check = [&]<typename T>(std::uint8_t code, T) {
    Index index({2, 1}, {0, 2}, sizeof(T));
    index.dtype = code;
    const auto format = open(write<T>(index, 3));
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ(tokens(**format, 0), (Tokens{0, 1}));
    EXPECT_EQ(tokens(**format, 1), (Tokens{2}));
  };
  check(1, std::uint8_t{});
  check(2, std::int8_t{});
  check(3, std::int16_t{});
  check(4, std::int32_t{});
  check(5, std::int64_t{});
  check(8, std::uint16_t{});
}

TEST_F(MegatronFormatTest, ConcatenatesFiles) {
  write(Index({3, 2}, {0, 2}), 5, "a");
  write(Index({1}, {0, 1}), 1, "b");
  const auto format = open(folder_.path() + "/{a,b}.idx");
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->shard_ends(), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(tokens(**format, 2), (Tokens{0}));
}

TEST_F(MegatronFormatTest, RefusesFloats) {
  Index index({2}, {0, 1}, 4);
  index.dtype = 7;
  const auto opened = open(write<float>(index, 2));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kConfig);
  EXPECT_NE(opened.error().what.find("float32"), std::string::npos);
}

TEST_F(MegatronFormatTest, RefusesAnIndexThatContradictsItself) {
  const auto changed = [](auto change) {
    Index index({3, 2}, {0, 1, 2});
    change(index);
    return index;
  };
  const auto expect = [&](const std::string& text, auto change, bool documents = false) {
    EXPECT_NE(failure(changed(change), 5, documents).find(text), std::string::npos)
        << failure(changed(change), 5, documents) << " instead of " << text;
  };
  expect("version 2", [](Index& i) { i.version = 2; });
  expect("dtype code 9", [](Index& i) { i.dtype = 9; });
  expect("do not match its header", [](Index& i) { i.end = "x"; });
  expect("do not match its header", [](Index& i) { i.offsets.pop_back(); });
  expect("has the length -1", [](Index& i) { i.lengths[1] = -1; });
  expect("byte offset -2", [](Index& i) { i.offsets[1] = -2; });
  expect("byte offset 3", [](Index& i) { i.offsets[1] = 3; });
  expect("the .bin file has 5", [](Index& i) { i.lengths[1] = 3; });
  expect("the .bin file has 5", [](Index& i) { i.offsets[1] = 1'000'000; });
  expect("document entry 1 is 5", [](Index& i) { i.documents[1] = 5; });
  expect("document entry 0 is 1", [](Index& i) { i.documents[0] = 1; });
  expect("ends at sequence 1 of 2", [](Index& i) { i.documents[2] = 1; });
  expect("no document entries", [](Index& i) { i.documents.clear(); });
  expect(
      "not stored one after the other",
      [](Index& i) {
        i.documents = {0, 2};
        i.offsets = {4, 0};
      },
      true);
}

TEST_F(MegatronFormatTest, RefusesATruncatedIndex) {
  const std::string whole = Index({3, 2}, {0, 1, 2}).bytes();
  const std::string path = write(Index({3, 2}, {0, 1, 2}), 5);
  for (std::size_t bytes = 9; bytes < whole.size(); ++bytes) {
    folder_.write("a.idx", whole.substr(0, bytes));
    EXPECT_FALSE(open(path)) << bytes;
  }
}

TEST_F(MegatronFormatTest, RefusesDocumentsForOtherFormats) {
  folder_.write("x.npy", "");
  const auto opened = open(folder_.path() + "/x.npy", true);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().what.find("documents="), std::string::npos);
}

TEST_F(MegatronFormatTest, HasAnotherFingerprintForOtherLengths) {
  const auto fingerprint = [&](const Index& index, bool documents = false) {
    return (*open(write(index, 5), documents))->fingerprint();
  };
  EXPECT_EQ(fingerprint(Index({3, 2}, {0, 1, 2})), fingerprint(Index({3, 2}, {0, 1, 2})));
  EXPECT_NE(fingerprint(Index({3, 2}, {0, 1, 2})), fingerprint(Index({2, 3}, {0, 1, 2})));
  EXPECT_NE(fingerprint(Index({3, 2}, {0, 1, 2})), fingerprint(Index({3, 2}, {0, 1, 2}), true));
}

}  // namespace
}  // namespace feedline::format
