// SPDX-License-Identifier: Apache-2.0
#pragma once

// WebDataset's naming rules, byte for byte.

#include <optional>
#include <string>
#include <string_view>

namespace feedline::format {

struct SampleName {
  std::string_view key;        // with the folder part
  std::string_view extension;  // all after the dot that ends the key; as written, not lower-cased
};

// What the expression ^((?:.*/|)[^.]+)[.]([^/]*)$ captures; nullopt where it does not match. Usually the key ends at
// the first dot of the last path component; "a/.hidden.jpg" is the key "a/" with "hidden.jpg".
std::optional<SampleName> split_sample_name(std::string_view name);

// Does ^__[^/]*__($|/) match? Such members are metadata, not samples.
bool is_reserved_name(std::string_view name);

// ASCII letters only: member names have no declared encoding.
std::string to_lower(std::string_view text);

}  // namespace feedline::format
