// SPDX-License-Identifier: Apache-2.0
#include "feedline/array.h"

#include <algorithm>

#include "base/check.h"

namespace feedline {

bool is_pixel_dtype(DType dtype) {
  return dtype == DType::kUint8 || dtype == DType::kFloat16 || dtype == DType::kFloat32;
}

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kInt8:
    case DType::kBool:
      return 1;
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kInt16:
    case DType::kUint16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUint32:
      return 4;
    case DType::kInt64:
    case DType::kUint64:
    case DType::kFloat64:
      return 8;
  }
  FEEDLINE_CHECK(!"unknown dtype");
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kFloat16:
      return "float16";
    case DType::kBfloat16:
      return "bfloat16";
    case DType::kFloat32:
      return "float32";
    case DType::kInt64:
      return "int64";
    case DType::kBool:
      return "bool";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kUint16:
      return "uint16";
    case DType::kUint32:
      return "uint32";
    case DType::kUint64:
      return "uint64";
    case DType::kFloat64:
      return "float64";
  }
  FEEDLINE_CHECK(!"unknown dtype");
}

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  FEEDLINE_CHECK(extents.size() <= kMaxDims);
  std::copy(extents.begin(), extents.end(), extents_.begin());
  dims_ = extents.size();
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : *this) FEEDLINE_CHECK(extent >= 0 && !__builtin_mul_overflow(product, extent, &product));
  return product;
}

Shape Shape::with_front(std::int64_t extent) const {
  FEEDLINE_CHECK(dims_ < kMaxDims);
  Shape shape;
  shape.dims_ = dims_ + 1;
  shape.extents_[0] = extent;
  std::copy(begin(), end(), shape.extents_.begin() + 1);
  return shape;
}

Shape Shape::with_first(std::int64_t extent) const {
  FEEDLINE_CHECK(dims_ > 0);
  Shape shape = *this;
  shape.extents_[0] = extent;
  return shape;
}

Shape Shape::with_extent(std::size_t axis, std::int64_t extent) const {
  FEEDLINE_CHECK(axis < dims_);
  Shape shape = *this;
  shape.extents_[axis] = extent;
  return shape;
}

std::size_t ArraySpec::padded_axis() const {
  const auto found = std::find(shape.begin(), shape.end(), kAnyLength);
  return found == shape.end() ? 0 : static_cast<std::size_t>(found - shape.begin());
}

std::string Shape::to_string() const {
  std::string text = "(";
  for (std::size_t i = 0; i < dims_; ++i) text += (i ? ", " : "") + std::to_string(extents_[i]);
  return text + (dims_ == 1 ? ",)" : ")");
}

bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace feedline
