// SPDX-License-Identifier: Apache-2.0
#include "format/arrays/array_records.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "format/arrays/named_arrays.h"

namespace feedline::format {
namespace {

constexpr int kColours = 3;

bool is_target(FieldKind kind) { return kind == FieldKind::kBoxes || kind == FieldKind::kKeypoints; }
bool has_pixels(FieldKind kind) { return kind == FieldKind::kImage || kind == FieldKind::kMask; }

// Returns nullopt if an array cannot have this kind.
std::optional<FieldKind> kind_of(const NamedArray& array) {
  const auto kind = field_kind_of(array.kind);
  if (!kind) return {};
  return *kind == FieldKind::kArray || has_pixels(*kind) || is_target(*kind) ? kind : std::nullopt;
}

// Returns the shape of a sample. For ragged arrays, the first extent is kAnyLength.
Shape shape_of(const NamedArray& array) {
  return array.offsets.empty() ? array.row.shape : array.row.shape.with_front(kAnyLength);
}

Error wrong(const NamedArray& array, const std::string& what) {
  return config_error("arrays: \"" + array.name + "\" cannot be " + array.kind + ": " + what).error();
}

std::string samples_have(const NamedArray& array) {
  std::string shape = "(";
  for (const std::int64_t extent : shape_of(array))
    shape += (shape.size() > 1 ? ", " : "") + (extent == kAnyLength ? std::string("any") : std::to_string(extent));
  return "the samples have the shape " + shape + ")";
}

// Checks that the engine supports images of this size.
Result<void> check_sides(const NamedArray& array, std::int64_t height, std::int64_t width) {
  if (height == kAnyLength)
    for (std::size_t i = 0; i + 1 < array.offsets.size(); ++i)
      height = std::max(height, array.offsets[i + 1] - array.offsets[i]);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (height <= kMost && width <= kMost && height <= memory::PixelBuffer::kMaxPixels / width) return {};
  return std::unexpected(
      wrong(array, std::to_string(height) + " x " + std::to_string(width) + " pixels exceed the size limit"));
}

// Checks the dtype of boxes and keypoints.
Result<void> check_numbers(const NamedArray& array) {
  if (array.row.dtype != DType::kBool && array.row.dtype != DType::kUint64) return {};
  return std::unexpected(wrong(
      array, "the dtype is " + std::string(name_of(array.row.dtype)) + "; use floats or integers of up to 63 bits"));
}

void interleave(const std::byte* planes, std::size_t pixels, std::byte* out) {
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t c = 0; c < kColours; ++c) *out++ = planes[c * pixels + i];
}

}  // namespace

ArrayRecords::Pixels ArrayRecords::pixels_of(const NamedArray& array, FieldKind kind) {
  if (kind == FieldKind::kMask) return {static_cast<int>(size_of(array.row.dtype)), false};
  if (kind != FieldKind::kImage) return {};
  const Shape shape = shape_of(array);
  if (shape.dims() == 2) return {1, false};
  const std::int64_t last = shape[2];
  if (last == 1 || last == kColours) return {static_cast<int>(last), false};
  return {static_cast<int>(shape[0]),
          shape[0] == kColours};  // (1, height, width) has the same bytes as (height, width)
}

Result<void> ArrayRecords::check_kind(const NamedArray& array, FieldKind kind) {
  const Shape shape = shape_of(array);
  const DType dtype = array.row.dtype;
  const std::string is_of = "the dtype is " + std::string(name_of(dtype));
  const std::size_t dims = shape.dims();
  switch (kind) {
    case FieldKind::kImage: {
      if (dtype != DType::kUint8) return std::unexpected(wrong(array, is_of + "; pixels are uint8"));
      const bool are_last = dims == 3 && (shape[2] == 1 || shape[2] == kColours);
      const bool are_first = dims == 3 && (shape[0] == 1 || shape[0] == kColours);
      if (dims != 2 && !are_last && !are_first)
        return std::unexpected(wrong(array, samples_have(array) + "; images are (height, width), (height, width, 1 or "
                                                                  "3) or (3, height, width)"));
      const bool is_planar = dims == 3 && !are_last;
      return check_sides(array, shape[is_planar ? 1 : 0], shape[is_planar ? 2 : 1]);
    }
    case FieldKind::kMask:
      if (dtype != DType::kUint8 && dtype != DType::kUint16)
        return std::unexpected(wrong(array, is_of + "; labels are uint8 or uint16: convert the array"));
      if (dims != 2) return std::unexpected(wrong(array, samples_have(array) + "; masks are (height, width)"));
      return check_sides(array, shape[0], shape[1]);
    case FieldKind::kBoxes:
      FEEDLINE_CHECK_OK(check_numbers(array));
      if (dims == 2 && shape[1] == 4) return {};
      return std::unexpected(wrong(array, samples_have(array) + "; boxes are (N, 4)"));
    case FieldKind::kKeypoints:
      FEEDLINE_CHECK_OK(check_numbers(array));
      if ((dims == 2 || dims == 3) && shape[dims - 1] == 2) return {};
      return std::unexpected(wrong(array, samples_have(array) + "; keypoints are (N, 2) or (N, K, 2)"));
    default:
      return {};
  }
}

Result<std::shared_ptr<const RecordFormat>> ArrayRecords::make(std::vector<NamedArray> arrays) {
  std::vector<FieldDescription> fields;
  for (const NamedArray& array : arrays) {
    const auto kind = kind_of(array);
    if (!kind)
      return config_error("arrays: \"" + array.name + "\" cannot be '" + array.kind +
                          "'; use image, mask, boxes, keypoints or array");
    fields.push_back({.name = array.name, .kind = *kind, .pad = array.pad});
    if (*kind == FieldKind::kArray) fields.back().array = {array.row.dtype, shape_of(array)};
  }
  FEEDLINE_CHECK_OK(check_names(fields));
  FEEDLINE_CHECK_OK(check_arrays(arrays, [](const NamedArray& array) { return !has_pixels(*kind_of(array)); }));
  for (std::size_t i = 0; i < arrays.size(); ++i) FEEDLINE_CHECK_OK(check_kind(arrays[i], fields[i].kind));
  return std::shared_ptr<const RecordFormat>(new ArrayRecords(std::move(arrays), std::move(fields)));
}

ArrayRecords::ArrayRecords(std::vector<NamedArray> arrays, std::vector<FieldDescription> fields)
    : arrays_(std::move(arrays)),
      files_(arrays_),
      fields_(std::move(fields)),
      size_(samples_of(arrays_.front())),
      fingerprint_(fingerprint_of(arrays_)) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) pixels_.push_back(pixels_of(arrays_[i], fields_[i].kind));
}

// Kernels read up to kRowSlack bytes past an image, so images near the end of an array are copied.
memory::PixelView ArrayRecords::view_of(std::size_t field, const Shape& shape, std::span<const std::byte> bytes,
                                        memory::ByteBuffer& copied) const {
  const Pixels& pixels = pixels_[field];
  const NamedArray& array = arrays_[field];
  const auto extent = [&](std::size_t i) { return static_cast<int>(shape[i + (pixels.is_planar ? 1 : 0)]); };
  const bool is_plane_of_one = !pixels.is_planar && shape.dims() == 3 && shape[2] != pixels.channels;
  const int height = extent(is_plane_of_one ? 1 : 0), width = extent(is_plane_of_one ? 2 : 1);
  constexpr std::size_t kSlack = memory::PixelBuffer::kRowSlack;
  const std::byte* const end = array.data + array.rows * array.row.bytes();
  const bool touch = array.stride == static_cast<std::ptrdiff_t>(array.row.bytes());
  const std::byte* first = bytes.data();
  if (pixels.is_planar) {
    const auto room = copied.resize(bytes.size() + kSlack);
    interleave(first, bytes.size() / kColours, room.data());
    first = room.data();
  } else if (!touch || end - first < static_cast<std::ptrdiff_t>(bytes.size() + kSlack)) {
    const auto room = copied.resize(bytes.size() + kSlack);
    std::memcpy(room.data(), first, bytes.size());
    first = room.data();
  }
  return {reinterpret_cast<const std::uint8_t*>(first), width, height, pixels.channels,
          static_cast<std::size_t>(width) * static_cast<std::size_t>(pixels.channels)};
}

Result<void> ArrayRecords::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size_);
  FEEDLINE_CHECK_OK(files_.check());
  record.fields.assign(arrays_.size(), {});
  record.more.resize(std::max(record.more.size(), arrays_.size()));
  record.bytes_read = 0;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const auto [bytes, shape] = row_of(arrays_[i], index);
    memory::Record::Field& field = record.fields[i];
    if (pixels_[i].channels > 0) {
      field.pixels = view_of(i, shape, bytes, record.more[i]);
    } else {
      field.bytes = bytes;
      field.array = ArraySpec{arrays_[i].row.dtype, shape};
    }
    record.bytes_read += bytes.size();
  }
  return {};
}

Result<memory::OwnRow> ArrayRecords::own_row(std::uint64_t index, std::size_t field, memory::RowUse use) const {
  return files_.own_row(arrays_[field], field, index, use);
}

Where ArrayRecords::where(std::uint64_t index) const { return where_in_arrays(index); }

Result<Inspection> ArrayRecords::inspect() const {
  return config_error(
      "inspect: arrays cannot be inspected: their rows cannot be damaged, dropped or merged; Dataset.schema and "
      "Dataset.explain() describe them");
}

}  // namespace feedline::format
