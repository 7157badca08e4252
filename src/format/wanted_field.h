// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// A spec of a format whose samples have named values: "NAME=FIRST;SECOND:KIND".
struct WantedField {
  std::string name;                       // of the field: what is said, else the first alternative
  std::vector<std::string> alternatives;  // the first that a sample has counts
  std::optional<FieldKind> said;

  std::string names() const;  // "FIRST, SECOND", for messages
};

// what: the format's word for a value, "column". kConfig: a name that is empty, or no such kind.
Result<WantedField> parse_wanted_field(const std::string& text, std::string_view what);

}  // namespace feedline::format
