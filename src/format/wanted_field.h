// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// The spec of a field, for a format whose samples have named values: "NAME=FIRST;SECOND:KIND".
struct WantedField {
  std::string name;                       // of the field: the given name, else the first alternative
  std::vector<std::string> alternatives;  // alternatives; the first one that a sample has is used
  std::optional<FieldKind> said;

  std::string names() const;  // "FIRST, SECOND", for messages
};

// what: the format's term for a value, "column". kConfig: an empty name, or an unknown kind.
Result<WantedField> parse_wanted_field(const std::string& text, std::string_view what);

}  // namespace feedline::format
