// SPDX-License-Identifier: Apache-2.0
#include "interop/dlpack.h"

#include <nanobind/ndarray.h>

#include <array>
#include <cstdint>
#include <utility>

#include "interop/arrays.h"

namespace nb = nanobind;

namespace feedline::python {
namespace {

constexpr const char* kName = "dltensor";

// DLPack's layout before version 1, which every consumer supports.
struct Managed {
  nb::dlpack::dltensor tensor;
  void* context = nullptr;
  void (*deleter)(Managed*) = nullptr;
};

// The exported tensor, in one block with all data that it points to.
struct Lent {
  Managed managed;
  std::array<std::int64_t, Shape::kMaxDims> extents{}, strides{};
  std::shared_ptr<void> memory;
};

void end(Managed* managed) noexcept { delete static_cast<Lent*>(managed->context); }

// A consumer that has taken ownership renames the capsule.
void drop(PyObject* capsule) noexcept {
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName));
  managed->deleter(managed);
}

}  // namespace

int dlpack_kind(DeviceKind kind) {
  return kind == DeviceKind::kCuda ? nb::device::cuda::value : nb::device::cpu::value;
}

nb::object to_dlpack(const ArrayView& view, std::shared_ptr<void> memory, const DeviceLocation& location) {
  auto lent = std::make_unique<Lent>();
  const Shape& shape = view.spec.shape;
  std::int64_t stride = 1;
  for (std::size_t i = shape.dims(); i-- > 0;) {
    lent->extents[i] = shape[i];
    lent->strides[i] = stride;
    stride *= shape[i];
  }
  lent->memory = std::move(memory);
  lent->managed = {.tensor = {.data = view.data,
                              .device = {dlpack_kind(location.kind), location.index},
                              .ndim = static_cast<std::int32_t>(shape.dims()),
                              .dtype = dlpack_dtype(view.spec.dtype),
                              .shape = lent->extents.data(),
                              .strides = lent->strides.data()},
                   .context = lent.get(),
                   .deleter = &end};
  PyObject* const capsule = PyCapsule_New(&lent->managed, kName, &drop);
  if (capsule == nullptr) throw nb::python_error();
  lent.release();
  return nb::steal(capsule);
}

}  // namespace feedline::python
