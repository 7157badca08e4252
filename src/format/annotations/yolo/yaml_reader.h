// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the YAML file of a YOLO dataset with libyaml. Supports a top-level mapping whose values are strings, lists of
// strings, or mappings of strings. Other values are errors only if their keys are needed.

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

// Plain scalars that are booleans or integers in YAML 1.1 become the strings that Python prints, such as "True", or "8"
// for 010. Fails with kData and the line if the text is not valid YAML or not a mapping, or a key is repeated.
Result<std::map<std::string, YamlValue>> read_yaml(std::string_view text);

}  // namespace feedline::format
