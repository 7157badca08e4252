// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::format {

// The text of an XML file as UTF-8, by the encoding that its declaration names: UTF-8, US-ASCII, ISO-8859-1 or
// Windows-1252. kData: another encoding, or bytes that are not of the one that is named.
Result<std::string> utf8_of_xml(std::string_view xml);

}  // namespace feedline::format
