// SPDX-License-Identifier: Apache-2.0
#include "base/gather_rows.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>

#include "interop/gil.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

// Addresses are integers, as from Tensor.data_ptr(), because a DLPack capsule costs more than a batch of short rows.
template <typename T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT
}

// Returns false without writing anything if an index is negative or not below `rows`.
bool gather_rows(std::uintptr_t data, std::uint64_t rows, std::uint64_t row_bytes, std::uintptr_t indices,
                 std::uint64_t count, std::uintptr_t out, bool release_gil) {
  const auto gather = [&] {
    const std::span<const std::uint64_t> all(at<const std::uint64_t>(indices), count);
    // negative indices become huge ones
    if (!all.empty() && *std::ranges::max_element(all) >= rows) return false;
    base::gather_rows({at<const std::byte>(data), static_cast<std::ptrdiff_t>(row_bytes), row_bytes}, all,
                      at<std::byte>(out));
    return true;
  };
  return release_gil ? without_gil(gather) : gather();
}

}  // namespace

void bind_gather(nb::module_& module) {
  module.def("gather_rows", &gather_rows, "data"_a, "rows"_a, "row_bytes"_a, "indices"_a, "count"_a, "out"_a,
             "release_gil"_a);
}

}  // namespace feedline::python
