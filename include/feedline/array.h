// SPDX-License-Identifier: Apache-2.0
#pragma once

// Element types, shapes, and non-owning views of C-contiguous arrays.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace feedline {

enum class DType : std::uint8_t {
  kUint8,
  kInt64,
  kFloat16,
  kFloat32,
  // only for arrays and tokens: image operations do not produce them
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kUint16,
  kUint32,
  kUint64,
  kFloat64,
  // only for batches of images: float32 rounded to nearest even for LoaderOptions::dtype
  kBfloat16,
};

bool is_pixel_dtype(DType dtype);       // uint8, float16 or float32: the element types of images
std::size_t size_of(DType dtype);       // bytes per element
std::string_view name_of(DType dtype);  // NumPy's name: "uint8", "float32"; also "bfloat16", which NumPy does not have

// One number of any dtype, stored in the first size_of(dtype) bytes.
using Element = std::array<std::byte, 8>;

template <typename T>
Element element_of(T value) {
  Element element{};
  static_assert(sizeof(T) <= sizeof(Element));
  std::memcpy(element.data(), &value, sizeof(T));
  return element;
}

// In a schema, marks the first extent of a field whose samples have different lengths. In a sample, that extent is the
// sample's length; in a batch, it is at least the length of the longest row.
constexpr std::int64_t kAnyLength = -1;

// At most kMaxDims extents, stored inline so that shapes need no allocation per sample.
class Shape {
 public:
  static constexpr std::size_t kMaxDims = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);

  std::size_t dims() const { return dims_; }
  std::int64_t operator[](std::size_t i) const { return extents_[i]; }
  std::int64_t elements() const;  // product of the extents; 1 for a scalar
  Shape with_front(std::int64_t extent) const;
  Shape with_first(std::int64_t extent) const;                     // replaces the first extent. Requires: dims() > 0
  Shape with_extent(std::size_t axis, std::int64_t extent) const;  // Requires: axis < dims()
  std::string to_string() const;                                   // "(3, 224, 224)"
  const std::int64_t* begin() const { return extents_.data(); }
  const std::int64_t* end() const { return extents_.data() + dims_; }
  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxDims> extents_{};
  std::size_t dims_ = 0;
};

struct ArraySpec {
  DType dtype = DType::kUint8;
  Shape shape;
  bool is_ragged() const { return shape.dims() > 0 && shape[0] == kAnyLength; }
  std::size_t padded_axis() const;  // of kAnyLength, else 0. Requires: shape.dims() > 0
  // Requires: not is_ragged()
  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

struct ArrayView {
  std::byte* data = nullptr;
  ArraySpec spec;
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// The layout of a field's rows in a batch.
enum class BatchForm : std::uint8_t {
  kDense,   // consecutive rows of equal shape. A first extent of kAnyLength is the length of the batch's longest row,
            // known before any row is read (tokens, ragged arrays); the format itself pads shorter rows
  kPadded,  // like kDense with kAnyLength, which may be any extent, but row lengths are known only after reading; the
            // batch has an array of lengths
  kList,    // rows of any shapes, in one buffer, with offsets
};

// The kind of data in a row. All kinds except arrays are uint8 lists with shape (bytes,).
enum class Content : std::uint8_t {
  kArray,
  kBytes,
  kText,  // UTF-8
  kJson,  // UTF-8, to be parsed
};

// One field of a sample. The shape excludes the batch extent. The first extent of the shape may be kAnyLength; in
// lists, any extent may be. A schema lists the fields in batch order.
struct FieldSpec {
  std::string name;
  ArraySpec array;
  BatchForm form = BatchForm::kDense;
  Content content = Content::kArray;
  Element pad{};                  // kPadded: the value that fills the end of shorter rows
  std::uint64_t usual_bytes = 0;  // average bytes per row if `form` is not kDense; 0: unknown before reading
  // Whether the position of a row in a batch is only known when the batch is complete.
  bool has_variable_size() const { return form != BatchForm::kDense; }
  friend bool operator==(const FieldSpec& a, const FieldSpec& b) {  // regardless of their typical sizes
    return a.name == b.name && a.array == b.array && a.form == b.form && a.content == b.content && a.pad == b.pad;
  }
};
using Schema = std::vector<FieldSpec>;

}  // namespace feedline
