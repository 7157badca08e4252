// SPDX-License-Identifier: Apache-2.0
#pragma once

// The YAML that describes a YOLO set: keys at the left margin, each with a text, a list in brackets, a list of lines
// with dashes, or a mapping of lines with colons. Everything else of YAML is refused by name where it stands at a key
// that is wanted, and gone past at others.

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
  std::string text;                                      // kText; of kUnread what it is
  std::vector<std::string> list;                         // kList
  std::vector<std::pair<std::string, std::string>> map;  // kMapping, in its order
};

// kData: a line that is no key and no part of one, a key that comes twice; with the line's number.
Result<std::map<std::string, YamlValue>> read_yaml(std::string_view text);

}  // namespace feedline::format
