// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>

#include "feedline/mix_rows.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

using RowsShape = std::tuple<std::uint64_t, int, int, int>;

// The address is from Tensor.data_ptr().
ImageRows rows_at(std::uintptr_t data, const RowsShape& shape) {
  const auto& [rows, channels, height, width] = shape;
  return {reinterpret_cast<float*>(data), rows, channels, {height, width}};  // NOLINT
}

void mix_up_at(std::uintptr_t data, const RowsShape& shape, double share) {
  unwrap(without_gil([&] { return mix_up(rows_at(data, shape), share); }));
}

void cut_mix_at(std::uintptr_t data, const RowsShape& shape, const std::tuple<int, int, int, int>& box) {
  const auto [left, top, right, bottom] = box;
  unwrap(without_gil([&] { return cut_mix(rows_at(data, shape), {left, top, right - left, bottom - top}); }));
}

}  // namespace

void bind_mix(nb::module_& module) {
  module.def("mix_up", &mix_up_at, "data"_a, "shape"_a, "share"_a);
  module.def("cut_mix", &cut_mix_at, "data"_a, "shape"_a, "box"_a);
}

}  // namespace feedline::python
