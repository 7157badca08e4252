// SPDX-License-Identifier: Apache-2.0
#pragma once

// The types in Schema.fbs, with the layout and meaning of their values.

#include <cstdint>

#include "format/columnar/arrow/arrow_schema.h"
#include "format/columnar/arrow/flat_table.h"

namespace feedline::format {

// Sets the field's layout, width and description from the member of the union `Type`. Returns false for an unknown
// type.
bool set_arrow_type(ArrowField& made, std::uint8_t kind, const FlatTable& type);

}  // namespace feedline::format
