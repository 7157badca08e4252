// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types of Schema.fbs: the layout and meaning of their values.

#include <cstdint>

#include "format/arrow/arrow_schema.h"
#include "format/arrow/flat_table.h"

namespace feedline::format {

// Sets the field's layout, width and description from the member of the union `Type`. Returns false for an unknown
// type.
bool set_arrow_type(ArrowField& made, std::uint8_t kind, const FlatTable& type);

}  // namespace feedline::format
