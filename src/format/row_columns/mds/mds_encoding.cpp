// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/mds/mds_encoding.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::format {
namespace {

struct Named {
  std::string_view name;
  ColumnKind kind;
  std::optional<DType> dtype = {};
  bool is_listed = false;
};

constexpr Named kEncodings[] = {
    {"bytes", ColumnKind::kBytes},
    {"str", ColumnKind::kText},
    {"json", ColumnKind::kJson},
    {"jpeg", ColumnKind::kImage},
    {"png", ColumnKind::kImage},
    {"pil", ColumnKind::kPixels},
    {"jpeg_array", ColumnKind::kImages},
    {"jpegarray", ColumnKind::kImages},
    {"list[jpeg]", ColumnKind::kImages, {}, true},
    {"list[png]", ColumnKind::kImages, {}, true},
    {"list[pil]", ColumnKind::kImages, {}, true},
    {"str_int", ColumnKind::kDigits},
    {"str_float", ColumnKind::kReal, DType::kFloat64},
    {"str_decimal", ColumnKind::kReal},
    {"int", ColumnKind::kNumber, DType::kInt64},
    {"uint8", ColumnKind::kNumber, DType::kUint8},
    {"uint16", ColumnKind::kNumber, DType::kUint16},
    {"uint32", ColumnKind::kNumber, DType::kUint32},
    {"uint64", ColumnKind::kNumber, DType::kUint64},
    {"int8", ColumnKind::kNumber, DType::kInt8},
    {"int16", ColumnKind::kNumber, DType::kInt16},
    {"int32", ColumnKind::kNumber, DType::kInt32},
    {"int64", ColumnKind::kNumber, DType::kInt64},
    {"float16", ColumnKind::kNumber, DType::kFloat16},
    {"float32", ColumnKind::kNumber, DType::kFloat32},
    {"float64", ColumnKind::kNumber, DType::kFloat64},
};

const Named* encoding_of(std::string_view name) {
  const auto found = std::ranges::find(kEncodings, name, &Named::name);
  return found == std::end(kEncodings) ? nullptr : found;
}

// Parses "3,224,224": dimensions of at least 1 whose product does not overflow.
std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  std::vector<std::int64_t> extents;
  std::int64_t elements = 1;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), extent);
    constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();  // size of a value in bytes
    if (error != std::errc() || end != part.data() + part.size() || extent < 1 || extent > kMost) return {};
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMost) return {};
    extents.push_back(extent);
    if (extents.size() > Shape::kMaxDims) return {};
    if (part.size() == text.size()) break;
    text.remove_prefix(part.size() + 1);
  }
  for (std::size_t i = extents.size(); i > 0; --i) shape = shape.with_front(extents[i - 1]);
  return shape;
}

// Parses "ndarray", "ndarray:DTYPE" or "ndarray:DTYPE:SHAPE".
void take_array(Column& column) {
  std::string_view rest = column.encoding;
  rest.remove_prefix(std::string_view("ndarray").size());
  column.kind = ColumnKind::kArray;
  column.header = ArrayHeader::kMds;
  if (rest.empty() || rest == ":") return;
  rest.remove_prefix(1);
  const std::string_view dtype = rest.substr(0, rest.find(':'));
  const Named* number = encoding_of(dtype);
  if (number == nullptr || number->kind != ColumnKind::kNumber || dtype == "int") {
    column.kind = ColumnKind::kRefused;
    return;
  }
  column.dtype = number->dtype;
  if (dtype.size() == rest.size()) return;
  column.shape = parse_shape(rest.substr(dtype.size() + 1));
  if (!column.shape) column.kind = ColumnKind::kRefused;
}

}  // namespace

Result<Column> mds_column(std::string name, std::string encoding, std::optional<std::int64_t> size) {
  Column column{std::move(name), std::move(encoding)};
  const Named* const known = encoding_of(column.encoding);
  if (known != nullptr) {
    column.kind = known->kind;
    column.dtype = known->dtype;
    column.is_listed = known->is_listed;
  } else if (column.encoding == "ndarray" || column.encoding.starts_with("ndarray:")) {
    take_array(column);
  } else {
    column.kind = ColumnKind::kRefused;
  }
  std::optional<std::uint64_t> own;  // the size of every value with this encoding
  if (column.kind == ColumnKind::kNumber) own = size_of(*column.dtype);
  if (column.shape && column.dtype) own = ArraySpec{*column.dtype, *column.shape}.bytes();
  const bool has_size = size && *size != 0;
  const bool is_size = has_size && *size > 0 && *size <= std::numeric_limits<std::uint32_t>::max();
  const bool fits = column.kind == ColumnKind::kRefused || own.has_value() == has_size;
  if ((has_size && !is_size) || !fits ||
      (own && column.kind != ColumnKind::kRefused && static_cast<std::uint64_t>(*size) != *own))
    return data_error("the index states that each value of the column '" + column.name + "' (" + column.encoding +
                          ") has " + (size ? std::to_string(*size) : "any number of") + " bytes, which is invalid",
                      "format");
  if (has_size) column.fixed_bytes = static_cast<std::uint32_t>(*size);
  return column;
}

Column line_column(std::string name, std::string encoding) {
  Column column{std::move(name), std::move(encoding), ColumnKind::kRefused};
  if (column.encoding == "int") column.kind = ColumnKind::kDigits;
  if (column.encoding == "str") column.kind = ColumnKind::kText;
  if (column.encoding == "float") {
    column.kind = ColumnKind::kReal;
    column.dtype = DType::kFloat64;
  }
  return column;
}

}  // namespace feedline::format
