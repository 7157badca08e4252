// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "interop/arrays.h"
#include "interop/dlpack.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "interop/text_caster.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

// DLPack's numbers for CUDA streams that are not handles.
constexpr std::int64_t kNoStream = -1, kDefaultStream = 1;

// An array of a batch, for libraries that support DLPack.
struct DeviceArray {
  Batch batch;
  ArrayView view;

  std::pair<int, int> location() const { return {dlpack_kind(batch.device().kind), batch.device().index}; }
};

// The array API standard's meaning of `stream`: on a GPU None is the default stream, -1 means no synchronisation, and 0
// is ambiguous; on the host only None is valid.
void make_ready(const DeviceArray& self, std::optional<std::int64_t> stream) {
  if (self.batch.device().kind != DeviceKind::kCuda) {
    if (stream && *stream != kNoStream) throw nb::buffer_error("__dlpack__: arrays in host memory require stream=None");
    unwrap(without_gil([&] { return self.batch.wait(); }));
    return;
  }
  const std::int64_t number = stream.value_or(kDefaultStream);
  if (number == 0 || number < kNoStream)
    throw nb::buffer_error(
        "__dlpack__: stream must be a CUDA stream's handle, 1 or 2 for the default streams, or -1 for none");
  if (number != kNoStream)
    unwrap(without_gil([&] { return self.batch.let_wait(static_cast<std::uintptr_t>(number)); }));
}

nb::object dlpack(const DeviceArray& self, std::optional<std::int64_t> stream, const nb::object& /*max_version*/,
                  std::optional<std::pair<int, int>> dl_device, std::optional<bool> copy) {
  if (dl_device && *dl_device != self.location())
    throw nb::buffer_error("__dlpack__: the array is on a different device than dl_device");
  if (copy.value_or(false))
    throw nb::buffer_error("__dlpack__: copy=True is not supported; the array is exported without a copy");
  make_ready(self, stream);
  return to_dlpack(self.view, self.batch.memory(), self.batch.device());
}

}  // namespace

nb::object to_array(const ArrayView& view, const Batch& batch, Framework framework) {
  const bool is_on_host = batch.device().kind == DeviceKind::kHost;
  if (framework != Framework::kDlpack && is_on_host) return to_array(view, batch.memory(), framework);
  nb::object array = nb::cast(DeviceArray{batch, view});
  if (framework == Framework::kDlpack) return array;
  const CallingPython calling;
  return nb::module_::import_("torch.utils.dlpack").attr("from_dlpack")(array);
}

void bind_device_array(nb::module_& module) {
  nb::class_<DeviceArray>(module, "DeviceArray")
      .def_prop_ro(
          "shape", [](const DeviceArray& self) { return to_tuple(self.view.spec.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", [](const DeviceArray& self) { return std::string(name_of(self.view.spec.dtype)); })
      .def_prop_ro("nbytes", [](const DeviceArray& self) { return self.view.spec.bytes(); })
      .def("__dlpack_device__", &DeviceArray::location)
      .def("__dlpack__", &dlpack, nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
           "dl_device"_a = nb::none(), "copy"_a = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, "
                   "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"));
}

}  // namespace feedline::python
