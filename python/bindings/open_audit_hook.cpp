// SPDX-License-Identifier: Apache-2.0
// Counts Python's audit events for open(): audit hooks can never be removed, and one written in Python would add a
// microsecond to every open() of the script.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>

#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

// Per process. Guarded by the GIL, which Python holds whenever it calls an audit hook.
struct OpenGate {
  nb::object heard;
  std::uint64_t passing = 0;  // opens that are only counted
};

PyObject* hear(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2 || !PyUnicode_Check(arguments[0]) || PyUnicode_CompareWithASCIIString(arguments[0], "open") != 0)
    Py_RETURN_NONE;
  OpenGate& gate = *nb::inst_ptr<OpenGate>(self);
  if (gate.passing > 0) {
    --gate.passing;
    Py_RETURN_NONE;
  }
  return PyObject_CallFunctionObjArgs(gate.heard.ptr(), arguments[1], nullptr);
}

nb::object hook_of(nb::handle gate) {
  static PyMethodDef method = {"hear", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&hear)), METH_FASTCALL,
                               nullptr};
  return nb::steal(PyCFunction_NewEx(&method, gate.ptr(), nullptr));
}

}  // namespace

void bind_open_audit_hook(nb::module_& module) {
  nb::class_<OpenGate>(module, "OpenGate", "Calls a function for some of the files that this process opens.")
      .def(
          "__init__", [](OpenGate* self, nb::object heard) { new (self) OpenGate{.heard = std::move(heard)}; },
          "heard"_a, nb::sig("def __init__(self, heard: collections.abc.Callable[[tuple[Any, ...]], object]) -> None"))
      .def_rw("passing", &OpenGate::passing, "Number of opens to skip before `heard` is called again.")
      .def_prop_ro(
          "hook", &hook_of, nb::sig("def hook(self) -> collections.abc.Callable[[str, tuple[Any, ...]], object]"),
          "The hook for sys.addaudithook(). Passes the arguments of an \"open\" event (path, mode, flags) to `heard`.");
}

}  // namespace feedline::python
