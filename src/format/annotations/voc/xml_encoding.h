// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::format {

// Converts an XML file to UTF-8 from the encoding in its declaration: UTF-8, US-ASCII, ISO-8859-1 or Windows-1252.
// kData: another encoding, or bytes that are not valid in it.
Result<std::string> utf8_of_xml(std::string_view xml);

}  // namespace feedline::format
