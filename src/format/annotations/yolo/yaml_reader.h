// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the YAML file of a YOLO set with libyaml: the top mapping's keys with strings, lists of strings and mappings of
// strings. Any other value is recorded, and is an error only if its key is needed.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"

namespace feedline::format {

struct YamlValue {
  enum class Kind { kNothing, kText, kList, kMapping, kUnread };
  Kind kind = Kind::kNothing;
  std::string text;                                      // for kText; for kUnread a description of the value
  std::vector<std::string> list;                         // for kList
  std::vector<std::pair<std::string, std::string>> map;  // for kMapping, in the file's order
};

// Plain scalars that are booleans or integers in YAML 1.1 become strings as Python prints them: "True", "8" for 010.
// kData, with the line: not YAML, not a mapping, or a repeated key.
Result<std::map<std::string, YamlValue>> read_yaml(std::string_view text);

}  // namespace feedline::format
