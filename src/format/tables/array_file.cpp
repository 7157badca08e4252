// SPDX-License-Identifier: Apache-2.0
#include "format/tables/array_file.h"

#include <cstring>
#include <string>
#include <string_view>

namespace feedline::format {
namespace {

std::string_view code_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kUint8:
      return "|u1";
    case DType::kInt8:
      return "|i1";
    case DType::kUint16:
      return "<u2";
    case DType::kInt16:
      return "<i2";
    case DType::kUint32:
      return "<u4";
    case DType::kInt32:
      return "<i4";
    case DType::kUint64:
      return "<u8";
    case DType::kInt64:
      return "<i8";
    case DType::kFloat16:
      return "<f2";
    case DType::kFloat32:
      return "<f4";
    case DType::kFloat64:
      return "<f8";
  }
  return {};
}

}  // namespace

std::vector<std::byte> table_array_file(const ArraySpec& spec, std::span<const std::byte> data) {
  constexpr std::size_t kFront = 10, kAlignment = 64;  // magic, version, length of the dict; where the elements begin
  std::string dict = "{'descr': '" + std::string(code_of(spec.dtype)) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : spec.shape) dict += std::to_string(extent) + ",";
  dict += "), }";
  const std::size_t begin = (kFront + dict.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dict.resize(begin - kFront, ' ');
  dict.back() = '\n';
  std::vector<std::byte> file(begin + data.size());
  constexpr char kStart[] = "\x93NUMPY\x01\x00";
  std::memcpy(file.data(), kStart, kFront - 2);
  file[kFront - 2] = static_cast<std::byte>(dict.size() & 0xff);
  file[kFront - 1] = static_cast<std::byte>(dict.size() >> 8);
  std::memcpy(file.data() + kFront, dict.data(), dict.size());
  if (!data.empty()) std::memcpy(file.data() + begin, data.data(), data.size());
  return file;
}

}  // namespace feedline::format
