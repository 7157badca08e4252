// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "format/table/text_rows.h"

namespace feedline::format {

// The members of one object of JSON (RFC 8259): strings as their text in UTF-8, numbers, lists and objects as they
// are written. An error is the end of a sentence about the line.
std::expected<JsonObject, std::string> parse_json_object(std::string_view line);

}  // namespace feedline::format
