// SPDX-License-Identifier: Apache-2.0
#include "decode/npy/npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace feedline::decode {
namespace {

// Returns a file in the form that numpy.save() writes.
std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string text = header + "\n";
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  const auto bytes = static_cast<std::uint32_t>(text.size());
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(bytes >> (8 * i));
  return file + text + data;
}

std::string header_of(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

Result<NpyArray> read(const std::string& file) { return read_npy(std::as_bytes(std::span(file))); }

std::string refusal(const std::string& file) {
  const auto array = read(file);
  EXPECT_FALSE(array);
  if (array) return "accepted";
  EXPECT_EQ(array.error().code, ErrorCode::kData);
  EXPECT_EQ(array.error().where.stage, "decode");
  return array.error().what;
}

TEST(Npy, GivesDtypeShapeAndElements) {
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const std::string data(reinterpret_cast<const char*>(numbers.data()), 24);
  for (const char version : {1, 2, 3}) {
    const std::string file = npy(header_of("'<f4'", "(2, 3)"), data, version);
    const auto array = read(file);
    ASSERT_TRUE(array) << array.error().message();
    EXPECT_EQ(array->spec, (ArraySpec{DType::kFloat32, {2, 3}}));
    EXPECT_EQ(std::memcmp(array->data.data(), numbers.data(), 24), 0);
    EXPECT_EQ(array->data.size(), 24u);
  }
  EXPECT_EQ(read(npy(header_of("'|u1'", "()"), "x"))->spec, (ArraySpec{DType::kUint8, {}}));
  EXPECT_EQ(read(npy(header_of("'<i8'", "(0, 4)"), ""))->spec, (ArraySpec{DType::kInt64, {0, 4}}));
  EXPECT_EQ(read(npy(header_of("'|b1'", "(3,)", "True"), "abc"))->spec, (ArraySpec{DType::kBool, {3}}));
  EXPECT_EQ(read(npy(header_of("'<f2'", "(1,)"), "ab and what follows"))->data.size(), 2u);
}

TEST(Npy, KnowsEveryDtypeOfABatch) {
  const std::vector<std::pair<std::string, DType>> known{
      {"|b1", DType::kBool},   {"|i1", DType::kInt8},    {"<i2", DType::kInt16},   {"<i4", DType::kInt32},
      {"<i8", DType::kInt64},  {"|u1", DType::kUint8},   {"<u2", DType::kUint16},  {"<u4", DType::kUint32},
      {"<u8", DType::kUint64}, {"<f2", DType::kFloat16}, {"<f4", DType::kFloat32}, {"=f8", DType::kFloat64}};
  for (const auto& [descr, dtype] : known) {
    const std::string file = npy(header_of("'" + descr + "'", "(2,)"), std::string(16, 'x'));
    const auto array = read(file);
    ASSERT_TRUE(array) << descr << ": " << array.error().message();
    EXPECT_EQ(array->spec.dtype, dtype) << descr;
    EXPECT_EQ(array->data.size(), 2u * static_cast<std::size_t>(descr.back() - '0')) << descr;
  }
}

TEST(Npy, SaysWhatABatchCannotHold) {
  EXPECT_NE(refusal(npy(header_of("'|O'", "(2,)"), "")).find("Python objects"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("[('a', '<f4')]", "(2,)"), "")).find("structured"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'>f4'", "(2,)"), "12345678")).find("<f4"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'<c8'", "(1,)"), "12345678")).find("<c8"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'|u1'", "(2, 2)", "True"), "1234")).find("ascontiguousarray"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'|u1'", "(1, 1, 1, 1, 1, 1)"), "1")).find("more than 5"), std::string::npos);
}

TEST(Npy, DamageIsAnErrorAndNeverARead) {
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal("not an array").find("not a .npy"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'<f4'", "(2, 3)"), std::string(23, 'x'))).find("23 of 24 bytes"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'<f4'", "(4611686018427387904, 4)"), "")).find("damaged"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'<f4'", "(-1,)"), "")).find("damaged"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'<f4'", "(99999999999999999999,)"), "")).find("damaged"), std::string::npos);
  EXPECT_NE(refusal(npy(header_of("'<f4'", "(1,)"), "1234", 9)).find("version 9"), std::string::npos);
  const std::string spaces(10'000, ' ');
  EXPECT_NE(refusal(npy(header_of("'<f4'", "(1,)") + spaces, "1234")).find("a header of 10"), std::string::npos);
  const std::string whole = npy(header_of("'<f4'", "(2, 3)"), std::string(24, 'x'));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) refusal(whole.substr(0, bytes));
  for (std::size_t at = 0; at < whole.size() - 24; ++at)
    for (const char byte : {'\0', '\xff', '(', '\'', ','}) {
      std::string damaged = whole;
      damaged[at] = byte;
      if (const auto array = read(damaged)) {
        EXPECT_LE(array->data.size(), 24u);
      }
    }
}

TEST(Npy, IsReadAsItIsWritten) {
  std::vector<std::byte> file{std::byte{1}};
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const auto data = std::as_bytes(std::span(numbers));
  for (const ArraySpec& spec : {ArraySpec{DType::kFloat32, {2, 3}},
                                {DType::kFloat32, {6}},
                                {DType::kUint8, {24}},
                                {DType::kInt64, {1, 3, 1}},
                                {DType::kFloat16, {0, 4}},
                                {DType::kFloat32, {}}}) {
    write_npy(spec, data.first(spec.bytes()), file);
    EXPECT_TRUE(is_npy(file));
    EXPECT_EQ((file.size() - spec.bytes()) % 64, 0u);
    const auto array = read_npy(file);
    ASSERT_TRUE(array) << array.error().message();
    EXPECT_EQ(array->spec, spec);
    EXPECT_TRUE(std::ranges::equal(array->data, data.first(spec.bytes())));
  }
}

}  // namespace
}  // namespace feedline::decode
