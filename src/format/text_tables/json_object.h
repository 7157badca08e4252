// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "format/text_tables/text_rows.h"

namespace feedline::format {

// Parses a line as one JSON object. Strings are converted to UTF-8 text. Numbers, lists and objects are not converted.
// Error messages complete a sentence about the line.
std::expected<JsonObject, std::string> parse_json_object(std::string_view line);

}  // namespace feedline::format
