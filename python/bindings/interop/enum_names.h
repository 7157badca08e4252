// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Python strings for the engine's enumerations. An unknown string raises feedline.ConfigError. Requires: the GIL is
// held.

#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/test_conditions.h"
#include "feedline/dataset.h"
#include "feedline/loader.h"
#include "feedline/operation.h"
#include "feedline/packing.h"

namespace feedline::python {

DType dtype_of(std::string_view word);                  // NumPy's names
Interpolation interpolation_of(std::string_view word);  // "nearest", "box", "bilinear", "bicubic"
ColorMode color_mode_of(std::string_view word);         // "RGB", "L"
Layout layout_of(std::string_view word);                // "NCHW", "NHWC"
Documents documents_of(std::string_view word);          // "pack", "apart"
MixUntil mix_until_of(std::string_view word);           // "samples", "first", "last"
BatchForm batch_form_of(std::string_view word);         // "stack", "pad", "list"
std::string_view enum_name(BatchForm form);
Content content_of(std::string_view word);  // "array", "bytes", "text", "json"
std::string_view enum_name(Content content);

// All strings of an enumeration, in the order used by errors.
template <typename T>
std::span<const std::pair<std::string_view, T>> enum_names() = delete;
template <>
std::span<const std::pair<std::string_view, DType>> enum_names();
template <>
std::span<const std::pair<std::string_view, Fidelity>> enum_names();
template <>
std::span<const std::pair<std::string_view, Layout>> enum_names();
template <>
std::span<const std::pair<std::string_view, MixMode>> enum_names();
template <>
std::span<const std::pair<std::string_view, MixPartner>> enum_names();
template <>
std::span<const std::pair<std::string_view, OnError>> enum_names();
template <>
std::span<const std::pair<std::string_view, Uneven>> enum_names();
template <>
std::span<const std::pair<std::string_view, LongDocuments>> enum_names();
template <>
std::span<const std::pair<std::string_view, PackLabels>> enum_names();
template <>
std::span<const std::pair<std::string_view, PackMethod>> enum_names();
template <>
std::span<const std::pair<std::string_view, Missing>> enum_names();
template <>
std::span<const std::pair<std::string_view, Verify>> enum_names();
template <>
std::span<const std::pair<std::string_view, base::ReadAheadMode>> enum_names();

template <typename T>
concept NamedEnum = requires {
  enum_names<T>();
};

// An argument of any type that should be the name of an enumerator. It is checked later, where its name is
// known.
template <NamedEnum T>
struct EnumArgument {
  T value{};
  std::string wrong = {};  // the type passed instead of a string; empty if it was a string

  // subject: the argument's name in errors, such as "loader: on_error".
  T checked(const std::string& subject) const;
};

// The repr of any object; "..." if it has none.
std::string repr_of(nanobind::handle object) noexcept;
[[noreturn]] void raise_unknown_name(const std::string& subject, const std::string& words, const std::string& wrong);

template <NamedEnum T>
std::string_view enum_name(T value) {
  for (const auto& [word, other] : enum_names<T>())
    if (other == value) return word;
  return "?";
}

template <NamedEnum T>
T EnumArgument<T>::checked(const std::string& subject) const {
  if (wrong.empty()) return value;
  std::string known;
  for (const auto& [word, other] : enum_names<T>()) known += (known.empty() ? "'" : ", '") + std::string(word) + "'";
  raise_unknown_name(subject, known, wrong);
}

}  // namespace feedline::python

namespace nanobind::detail {

// Passes None on, so that it is rejected with the list of valid strings.
template <feedline::python::NamedEnum T>
struct has_arg_defaults<feedline::python::EnumArgument<T>> : std::true_type {};

template <feedline::python::NamedEnum T>
struct type_caster<feedline::python::EnumArgument<T>> {
  NB_TYPE_CASTER(feedline::python::EnumArgument<T>, const_name("str"))

  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    if (PyUnicode_Check(source.ptr())) {
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
      if (text == nullptr) PyErr_Clear();
      for (const auto& [word, known] : feedline::python::enum_names<T>())
        if (text != nullptr && word == std::string_view(text, static_cast<std::size_t>(size))) {
          value = {known, {}};
          return true;
        }
    }
    value = {T(), feedline::python::repr_of(source)};
    return true;
  }

  static handle from_cpp(const feedline::python::EnumArgument<T>& word, rv_policy, cleanup_list*) noexcept {
    const std::string_view text = feedline::python::enum_name(word.value);
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  }
};

}  // namespace nanobind::detail
