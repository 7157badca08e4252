// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the values of nested columns, such as lists of structs, as JSON text.

#include <cstddef>
#include <span>
#include <string>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::format {

// Appends a quoted string. Fails with kData if the text is not UTF-8.
Result<void> append_json_text(std::span<const std::byte> text, std::string& json);

// Appends a number or a boolean, in the shortest form that Python reads as the same number. Floats always have a
// fraction or an exponent; values that are not finite are NaN, Infinity and -Infinity. Requires: `bytes` is one number.
void append_json_number(DType dtype, std::span<const std::byte> bytes, std::string& json);

}  // namespace feedline::format
