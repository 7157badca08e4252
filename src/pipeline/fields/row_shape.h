// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::pipeline {

// Checks that an array has the dtype and shape of the field, which are those of the first sample. kData: they differ;
// the message begins with `what`.
Result<void> check_row(const ArraySpec& row, const FieldSpec& field, const std::string& what, const char* stage);

}  // namespace feedline::pipeline
