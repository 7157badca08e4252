// SPDX-License-Identifier: Apache-2.0
#pragma once

// The YAML file that describes a YOLO set, read by libyaml: the top mapping's keys with texts, lists of texts and
// mappings of texts. Any other value is noted, and is an error only if its key is needed.

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
  std::string text;                                      // kText; of kUnread, a description of the value
  std::vector<std::string> list;                         // kList
  std::vector<std::pair<std::string, std::string>> map;  // kMapping, in the order of the file
};

// Plain scalars that YAML 1.1 reads as booleans or integers are texts as Python prints these: "True", "8" of 010.
// kData, with the line: no YAML, no mapping, a key that occurs twice.
Result<std::map<std::string, YamlValue>> read_yaml(std::string_view text);

}  // namespace feedline::format
