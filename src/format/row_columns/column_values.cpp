// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/column_values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Wrong = std::unexpected<std::string>;

template <typename T>
T number_at(Bytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Reads numbers from the front of a value.
class Front {
 public:
  explicit Front(Bytes bytes) : rest_(bytes) {}

  std::optional<std::uint64_t> take(std::size_t bytes, std::endian order = std::endian::little) {
    if (rest_.size() < bytes) return {};
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const std::size_t at = order == std::endian::little ? bytes - 1 - i : i;
      value = value << 8U | std::to_integer<std::uint64_t>(rest_[at]);
    }
    rest_ = rest_.subspan(bytes);
    return value;
  }
  std::optional<Bytes> take_bytes(std::uint64_t bytes) {
    if (rest_.size() < bytes) return {};
    const Bytes taken = rest_.first(static_cast<std::size_t>(bytes));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  Bytes rest() const { return rest_; }

 private:
  Bytes rest_;
};

Wrong cut() { return Wrong("the value ends within its header"); }

// The dtype codes of streaming/base/format/mds/encodings.py: the number of bits plus a constant for the type.
std::optional<DType> mds_dtype(std::uint64_t code) {
  switch (code) {
    case 8:
      return DType::kUint8;
    case 9:
      return DType::kInt8;
    case 16:
      return DType::kUint16;
    case 17:
      return DType::kInt16;
    case 18:
      return DType::kFloat16;
    case 32:
      return DType::kUint32;
    case 33:
      return DType::kInt32;
    case 34:
      return DType::kFloat32;
    case 64:
      return DType::kUint64;
    case 65:
      return DType::kInt64;
    case 66:
      return DType::kFloat64;
    default:
      return {};
  }
}

// Reads the extents of `dims` dimensions, limited so that their product cannot overflow.
Parsed<Shape> take_shape(Front& front, std::uint64_t dims, std::size_t bytes, std::endian order) {
  if (dims > Shape::kMaxDims)
    return Wrong("the value has " + std::to_string(dims) + " dimensions, but arrays have " +
                 std::to_string(Shape::kMaxDims) + " at most");
  std::array<std::int64_t, Shape::kMaxDims> extents{};
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < dims; ++i) {
    const auto extent = front.take(bytes, order);
    if (!extent) return cut();
    constexpr std::int64_t kMost = std::int64_t{1} << 56U;
    if (*extent > static_cast<std::uint64_t>(kMost) ||
        __builtin_mul_overflow(elements, std::max<std::int64_t>(1, static_cast<std::int64_t>(*extent)), &elements) ||
        elements > kMost)
      return Wrong("the dimensions are too large for an array");
    extents[i] = static_cast<std::int64_t>(*extent);
  }
  Shape shape;
  for (std::size_t i = dims; i > 0; --i) shape = shape.with_front(extents[i - 1]);
  return shape;
}

Parsed<StoredArray> checked(DType dtype, const Shape& shape, Bytes data) {
  const ArraySpec spec{dtype, shape};
  if (data.size() == spec.bytes()) return StoredArray{spec, data};
  return Wrong("the value has " + std::to_string(data.size()) + " bytes of numbers, but the shape " +
               shape.to_string() + " of " + std::string(name_of(dtype)) + " needs " + std::to_string(spec.bytes()));
}

Parsed<StoredArray> one_dimensional(DType dtype, Bytes data) {
  if (data.size() % size_of(dtype) != 0)
    return Wrong("the value's " + std::to_string(data.size()) + " bytes are not a multiple of the size of " +
                 std::string(name_of(dtype)));
  return StoredArray{{dtype, {static_cast<std::int64_t>(data.size() / size_of(dtype))}}, data};
}

Parsed<StoredArray> mds_array(Bytes value, const Column& column) {
  Front front(value);
  std::optional<DType> dtype = column.dtype;
  if (!dtype) {
    const auto code = front.take(1);
    if (!code) return cut();
    dtype = mds_dtype(*code);
    if (!dtype) return Wrong("the numbers have the unknown dtype code " + std::to_string(*code));
  }
  if (column.shape) return checked(*dtype, *column.shape, front.rest());
  const auto dims = front.take(1);
  if (!dims) return cut();
  const auto shape = take_shape(front, *dims >> 2U, std::size_t{1} << (*dims & 3U), std::endian::little);
  if (!shape) return Wrong(shape.error());
  return checked(*dtype, *shape, front.rest());
}

}  // namespace

// Codes of litdata/constants.py.
std::optional<DType> tensor_dtype(std::uint64_t code) {
  constexpr std::array<std::optional<DType>, 21> kTypes{DType::kFloat32,
                                                        DType::kFloat32,
                                                        DType::kFloat64,
                                                        DType::kFloat64,
                                                        {},
                                                        {},
                                                        {},
                                                        {},
                                                        DType::kFloat16,
                                                        DType::kFloat16,
                                                        {},
                                                        DType::kUint8,
                                                        DType::kInt8,
                                                        DType::kInt16,
                                                        DType::kInt16,
                                                        DType::kInt32,
                                                        DType::kInt32,
                                                        DType::kInt64,
                                                        DType::kInt64,
                                                        DType::kBool,
                                                        DType::kUint16};
  return code < kTypes.size() ? kTypes[code] : std::nullopt;
}
std::optional<DType> numpy_dtype(std::uint64_t code) {
  constexpr std::array<std::optional<DType>, 14> kTypes{DType::kInt8,
                                                        DType::kInt16,
                                                        DType::kInt32,
                                                        DType::kInt64,
                                                        DType::kUint8,
                                                        DType::kUint16,
                                                        DType::kUint32,
                                                        DType::kUint64,
                                                        DType::kFloat16,
                                                        DType::kFloat32,
                                                        DType::kFloat64,
                                                        {},
                                                        {},
                                                        DType::kBool};
  return code < kTypes.size() ? kTypes[code] : std::nullopt;
}

namespace {

Parsed<StoredArray> headed_array(Bytes value, const Column& column) {
  const bool is_tensor = column.header == ArrayHeader::kTensor;
  const std::endian order = is_tensor ? std::endian::big : std::endian::little;
  Front front(value);
  const auto code = front.take(4, order), dims = front.take(4, order);
  if (!code || !dims) return cut();
  const auto dtype = is_tensor ? tensor_dtype(*code) : numpy_dtype(*code);
  if (!dtype) return Wrong("the numbers have an unsupported dtype code: " + std::to_string(*code));
  const auto shape = take_shape(front, *dims, 4, order);
  if (!shape) return Wrong(shape.error());
  return checked(*dtype, *shape, front.rest());
}

int channels_of(std::string_view mode) {
  if (mode == "L" || mode == "P") return 1;
  if (mode == "LA") return 2;
  if (mode == "RGB" || mode == "YCbCr" || mode == "HSV" || mode == "LAB") return 3;
  if (mode == "RGBA" || mode == "RGBX" || mode == "CMYK") return 4;
  return 0;
}

}  // namespace

Parsed<StoredArray> array_in(Bytes value, const Column& column) {
  if (column.header == ArrayHeader::kMds) return mds_array(value, column);
  if (column.header != ArrayHeader::kNothing) return headed_array(value, column);
  if (column.shape) return checked(*column.dtype, *column.shape, value);
  return one_dimensional(*column.dtype, value);
}

Parsed<StoredArray> number_in(Bytes value, const Column& column) { return checked(*column.dtype, {}, value); }

Parsed<std::int64_t> integer_of(DType dtype, Bytes number) {
  switch (dtype) {
    case DType::kBool:
      return number_at<std::uint8_t>(number) != 0;
    case DType::kUint8:
      return number_at<std::uint8_t>(number);
    case DType::kInt8:
      return number_at<std::int8_t>(number);
    case DType::kUint16:
      return number_at<std::uint16_t>(number);
    case DType::kInt16:
      return number_at<std::int16_t>(number);
    case DType::kUint32:
      return number_at<std::uint32_t>(number);
    case DType::kInt32:
      return number_at<std::int32_t>(number);
    case DType::kUint64: {
      const auto value = number_at<std::uint64_t>(number);
      if (std::in_range<std::int64_t>(value)) return static_cast<std::int64_t>(value);
      return Wrong("the value is " + std::to_string(value) + ", which does not fit in an int64; use \":array\"");
    }
    case DType::kInt64:
      return number_at<std::int64_t>(number);
    default:
      return Wrong("the value is not an integer");
  }
}

Parsed<StoredPixels> pixels_in(Bytes value) {
  Front front(value);
  const auto width = front.take(4), height = front.take(4), name_bytes = front.take(4);
  if (!width || !height || !name_bytes) return cut();
  const auto name = front.take_bytes(*name_bytes);
  if (!name) return cut();
  StoredPixels pixels{std::string(reinterpret_cast<const char*>(name->data()), name->size()),
                      static_cast<std::int64_t>(*width), static_cast<std::int64_t>(*height), front.rest()};
  const auto channels = static_cast<std::uint64_t>(channels_of(pixels.mode));
  if (channels == 0)
    return Wrong("the pixels have the mode '" + pixels.mode.substr(0, 16) + "', which is not supported");
  const std::uint64_t rows = *width * *height;  // 32 bits each, so the product fits
  if (rows != 0 && rows <= static_cast<std::uint64_t>(memory::PixelBuffer::kMaxPixels) &&
      rows * channels == front.rest().size())
    return pixels;
  return Wrong("the value has " + std::to_string(front.rest().size()) + " bytes of pixels, which is not the size of " +
               std::to_string(*width) + " x " + std::to_string(*height) + " in the mode '" + pixels.mode + "'");
}

Parsed<memory::PixelView> view_of(const StoredPixels& pixels) {
  if (pixels.mode != "L" && pixels.mode != "RGB")
    return Wrong("the pixels have the mode '" + pixels.mode + "', but images need L or RGB; use \":array\"");
  const int channels = channels_of(pixels.mode);
  return memory::PixelView{reinterpret_cast<const std::uint8_t*>(pixels.data.data()), static_cast<int>(pixels.width),
                           static_cast<int>(pixels.height), channels,
                           static_cast<std::size_t>(pixels.width) * static_cast<std::size_t>(channels)};
}

Parsed<StoredArray> array_of(const StoredPixels& pixels) {
  const int channels = channels_of(pixels.mode);
  const Shape shape = channels == 1 ? Shape{pixels.height, pixels.width} : Shape{pixels.height, pixels.width, channels};
  return StoredArray{{DType::kUint8, shape}, pixels.data};
}

Parsed<std::vector<Bytes>> images_in(Bytes value, bool is_listed) {
  Front front(value);
  if (is_listed && !front.take(4)) return cut();
  const auto count = front.take(4);
  if (!count || front.rest().size() / 4 < *count) return cut();
  std::vector<Bytes> images(static_cast<std::size_t>(*count));
  Front sizes(*front.take_bytes(*count * 4));
  for (Bytes& image : images) {
    const auto taken = front.take_bytes(*sizes.take(4));
    if (!taken) return Wrong("the value ends within one of its " + std::to_string(*count) + " images");
    image = *taken;
  }
  if (front.rest().empty()) return images;
  return Wrong(std::to_string(front.rest().size()) + " bytes follow the last image");
}

}  // namespace feedline::format
