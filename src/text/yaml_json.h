// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::text {

// Converts a YAML document to JSON with libyaml. Scalars are strings, except YAML 1.1's booleans and nulls without
// quotes. An empty text is null. Fails with kData and the line if the text is not valid YAML, repeats a key, has keys
// that are not scalars, or is unreasonably deep or large after its aliases are expanded.
Result<std::string> yaml_as_json(std::string_view yaml);

}  // namespace feedline::text
