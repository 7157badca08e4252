// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/array_file.h"

#include <string>
#include <string_view>

#include "base/check.h"

namespace feedline::format {

std::vector<std::byte> array_file(const ArraySpec& spec, std::span<const std::byte> data) {
  constexpr std::size_t kFront = 10, kAlignment = 64;  // magic, version and length; of the elements
  const std::string_view code = spec.dtype == DType::kFloat32 ? "<f4" : spec.dtype == DType::kInt64 ? "<i8" : "|u1";
  FEEDLINE_CHECK(spec.bytes() == data.size() && (code != "|u1" || spec.dtype == DType::kUint8));
  std::string header = "{'descr': '" + std::string(code) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : spec.shape) header += std::to_string(extent) + ",";
  header += "), }";
  header.append(kAlignment - 1 - (kFront + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  const auto front = std::as_bytes(std::span(file));
  std::vector<std::byte> bytes(front.begin(), front.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

}  // namespace feedline::format
