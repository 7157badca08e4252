// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/number_file.h"

#include <cstring>
#include <string>

#include "base/check.h"

namespace feedline::format {

void write_number_header(const NumberShape& shape, std::byte* out) {
  constexpr std::size_t kFront = 10;  // magic, version, length of the dict
  std::string dict = "{'descr': '";
  dict += shape.kind == ValueKind::kFloats ? "<f4" : "<i8";
  dict += "', 'fortran_order': False, 'shape': (";
  if (shape.dims > 0) dict += std::to_string(shape.rows) + ",";
  if (shape.dims > 1) dict += " " + std::to_string(shape.columns);
  dict += "), }";
  FEEDLINE_CHECK(dict.size() < kNumberHeaderBytes - kFront);
  dict.resize(kNumberHeaderBytes - kFront, ' ');
  dict.back() = '\n';
  constexpr char kStart[kFront + 1] = "\x93NUMPY\x01\x00\x76\x00";
  static_assert(kNumberHeaderBytes - kFront == 0x76);
  std::memcpy(out, kStart, kFront);
  std::memcpy(out + kFront, dict.data(), dict.size());
}

}  // namespace feedline::format
