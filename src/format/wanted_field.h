// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// A parsed field spec, "NAME=FIRST;SECOND:KIND", for formats whose samples have named values.
struct WantedField {
  std::string name;                       // of the field: the given name, else the first alternative
  std::vector<std::string> alternatives;  // alternatives; the first one that a sample has is used
  std::optional<FieldKind> said;

  std::string names() const;  // "FIRST, SECOND", for messages
};

// Parses a spec. `what` is the format's term for a value, such as "column". Fails with kConfig if a name is empty or
// the kind is unknown.
Result<WantedField> parse_wanted_field(const std::string& text, std::string_view what);

}  // namespace feedline::format
