// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/table/text_rows.h"

namespace feedline::format {

// The members of one object of JSON (RFC 8259): strings as their text in UTF-8, numbers, lists and objects as they
// stand. An error is the end of a sentence about the line.
std::expected<std::vector<std::pair<std::string, Cell>>, std::string> parse_json_object(std::string_view line);

}  // namespace feedline::format
