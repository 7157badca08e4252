// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "format/table/text_rows.h"

namespace feedline::format {

// Parses a line as one JSON object. Strings become UTF-8 text; numbers, lists and objects stay as written. Errors are
// written to complete a sentence about the line.
std::expected<JsonObject, std::string> parse_json_object(std::string_view line);

}  // namespace feedline::format
