// SPDX-License-Identifier: Apache-2.0
#pragma once

// WebDataset's naming rules, byte for byte.

#include <optional>
#include <string>
#include <string_view>

namespace feedline::format {

struct SampleName {
  std::string_view key;        // including folders
  std::string_view extension;  // everything after the dot that ends the key, not lower-cased
};

// Returns the captures of the expression ^((?:.*/|)[^.]+)[.]([^/]*)$, or nullopt if it does not match. Usually the key
// ends at the first dot of the last path component; "a/.hidden.jpg" has the key "a/" and the extension "hidden.jpg".
std::optional<SampleName> split_sample_name(std::string_view name);

// Returns whether ^__[^/]*__($|/) matches. Members with reserved names are metadata, not samples.
bool is_reserved_name(std::string_view name);

// Converts only ASCII letters, because the encoding of member names is not specified.
std::string to_lower(std::string_view text);

}  // namespace feedline::format
