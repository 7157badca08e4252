// SPDX-License-Identifier: Apache-2.0
#include "feedline/page_locks.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "interop/errors.h"
#include "interop/gil.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

// Driver calls may take arbitrarily long.
template <typename F>
auto called(F call) {
  return unwrap(without_gil(call));
}

}  // namespace

void bind_page_locks(nb::module_& module) {
  nb::class_<GpuMark>(module, "GpuMark", "Marks a point in the work queued on every GPU that this process uses.")
      .def(
          "is_past", [](GpuMark& self) { return called([&] { return self.is_past(); }); },
          "Returns whether all work queued before the mark is complete. Does not wait.");
  nb::class_<PageLocks>(
      module, "PageLocks",
      "Page-locks the caller's memory for the GPUs that this process uses. Used by one thread at a time.")
      .def_static(
          "check", [] { called([] { return PageLocks::check(); }); },
          "Raises ConfigError if page-locking is unavailable. Does not initialise CUDA.")
      .def_static(
          "open", [] { return called([] { return PageLocks::open(); }); },
          "Returns a new object; call this after torch has initialised CUDA.")
      .def_static(
          "check_room", [](std::uint64_t bytes) { called([=] { return PageLocks::check_room(bytes); }); }, "bytes"_a,
          "Raises StorageError if the machine or the cgroup has less than `bytes` of free memory.")
      .def(
          "has_gpu", [](PageLocks& self, int preferred) { return called([&] { return self.has_gpu(preferred); }); },
          "preferred"_a,
          "Returns whether this process uses a GPU for which memory can be locked. Does not create a CUDA context.")
      .def(
          "lock",
          [](PageLocks& self, std::uintptr_t address, std::size_t bytes) {
            called([&] { return self.lock(reinterpret_cast<std::byte*>(address), bytes); });  // NOLINT
          },
          "address"_a, "bytes"_a, "Page-locks a range of whole pages for every GPU.")
      .def(
          "unlock",
          [](PageLocks& self, std::uintptr_t address) {
            called([&] { return self.unlock(reinterpret_cast<std::byte*>(address)); });  // NOLINT
          },
          "address"_a)
      .def(
          "mark", [](PageLocks& self) { return called([&] { return self.mark(); }); },
          nb::sig("def mark(self) -> GpuMark | None"),
          "Marks the work queued on the GPUs so far. Returns None while a CUDA graph is captured.")
      .def_prop_ro("has_ended", &PageLocks::has_ended,
                   "Whether the driver has shut down, as it does when the process ends.");
}

}  // namespace feedline::python
