// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "feedline/rows.h"

namespace feedline::format {

// Returns the text of a cell, which is in the caller's memory or in `room`. Requires: row < cells.rows, and
// feedline::check() succeeded.
std::string_view text_of(const TextCells& cells, std::uint64_t row, std::string& room);

}  // namespace feedline::format
