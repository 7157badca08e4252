// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts std::string to Python's str, replacing <nanobind/stl/string.h>: paths, keys and class names need not be
// UTF-8. Other bytes become surrogates as in os.fsdecode(), and surrogates are converted back to these bytes.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(src.ptr())) return false;
    Py_ssize_t size = 0;
    if (const char* const text = PyUnicode_AsUTF8AndSize(src.ptr(), &size)) {
      value = std::string(text, static_cast<std::size_t>(size));
      return true;
    }
    PyErr_Clear();
    PyObject* const bytes = PyUnicode_AsEncodedString(src.ptr(), "utf-8", "surrogateescape");
    if (bytes == nullptr) {  // other surrogates
      PyErr_Clear();
      return false;
    }
    value = std::string(PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes)));
    Py_DECREF(bytes);
    return true;
  }

  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  }
};

NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
