// SPDX-License-Identifier: Apache-2.0
#include "interop/arrays.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interop/dlpack.h"
#include "interop/gil.h"

namespace nb = nanobind;

namespace feedline::python {
namespace {

nb::capsule capsule_of(std::shared_ptr<void> memory) {
  auto held = std::make_unique<std::shared_ptr<void>>(std::move(memory));
  nb::capsule capsule(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
  held.release();
  return capsule;
}

// A bfloat16 array as float32, since NumPy has no dtype for it: bfloat16 is the upper half of a float32's bits.
nb::object widened(const ArrayView& view, const std::size_t* extents) {
  const std::size_t count = view.spec.bytes() / sizeof(std::uint16_t);
  auto values = std::make_shared<std::vector<float>>(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(view.data) + i * sizeof bits, sizeof bits);
    (*values)[i] = std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
  float* const data = values->data();
  return nb::cast(
      nb::ndarray<nb::numpy, nb::device::cpu>(data, view.spec.shape.dims(), extents, capsule_of(std::move(values)),
                                              nullptr, dlpack_dtype(DType::kFloat32)),
      nb::rv_policy::reference);
}

// Returns torch's from_dlpack(). Importing its module for each array would take as long as converting the array.
nb::handle torch_from_dlpack() {
  static PyObject* function = nullptr;  // never released; the GIL guards it
  if (function == nullptr)
    function = nb::object(nb::module_::import_("torch.utils.dlpack").attr("from_dlpack")).release().ptr();
  return function;
}

}  // namespace

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  const auto with_code = [bits](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1};
  };
  switch (dtype) {
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return with_code(nb::dlpack::dtype_code::UInt);
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return with_code(nb::dlpack::dtype_code::Int);
    case DType::kBool:
      return with_code(nb::dlpack::dtype_code::Bool);
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return with_code(nb::dlpack::dtype_code::Float);
    case DType::kBfloat16:
      return with_code(nb::dlpack::dtype_code::Bfloat);
  }
  return with_code(nb::dlpack::dtype_code::UInt);
}

nb::object to_array(const ArrayView& view, std::shared_ptr<void> memory, Framework framework) {
  const CallingPython calling;
  if (framework == Framework::kTorch) return torch_from_dlpack()(to_dlpack(view, std::move(memory)));
  std::array<std::size_t, Shape::kMaxDims> extents{};
  const Shape& shape = view.spec.shape;
  for (std::size_t i = 0; i < shape.dims(); ++i) extents[i] = static_cast<std::size_t>(shape[i]);
  if (view.spec.dtype == DType::kBfloat16) return widened(view, extents.data());
  return nb::cast(
      nb::ndarray<nb::numpy, nb::device::cpu>(view.data, shape.dims(), extents.data(), capsule_of(std::move(memory)),
                                              nullptr, dlpack_dtype(view.spec.dtype)),
      nb::rv_policy::reference);
}

nb::tuple to_tuple(const Shape& shape) {
  nb::list extents;
  for (std::int64_t extent : shape) extents.append(extent);
  return nb::tuple(extents);
}

HeldBytes::HeldBytes(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw nb::python_error();
}

HeldBytes::~HeldBytes() { PyBuffer_Release(&buffer_); }

std::span<const std::byte> HeldBytes::bytes() const {
  return {static_cast<const std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
}

}  // namespace feedline::python
