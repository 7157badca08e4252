// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the files of one field lie below a folder: "masks/{key}.png".

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

struct FieldPattern {
  FieldDescription description;
  std::string folder;          // "masks"; empty: the root
  std::string before, behind;  // of the key, in the path below `folder`: "" and ".png"

  // The key of a file, by its path below `folder`; nullopt: it is none of this field's.
  std::optional<std::string_view> key_of(std::string_view path) const;
  // The path of a sample's file below the root.
  std::string path_of(std::string_view key) const;
  // What the files are called as members of a tar: the field's name and their extension, "masks.png".
  std::string member_extension() const;
};

// Specs are "[NAME=]PATTERN[:KIND]", see feedline::OpenOptions. kConfig: no {key} or two, two fields of one name, no
// such kind.
Result<std::vector<FieldPattern>> parse_patterns(const std::vector<std::string>& specs);

}  // namespace feedline::format
