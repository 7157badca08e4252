// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>

namespace feedline::python {

// Parses the binary form of format/columnar/nested_writer.h: creates lists, dicts, bytes, text, numbers, booleans and
// None. Throws std::invalid_argument if the value is damaged. Requires: has_nested_mark(value).
nanobind::object nested_value(std::span<const std::byte> value);

}  // namespace feedline::python
