// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pattern for the paths of a field's files in a folder, such as "masks/{key}.png".

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

struct FieldPattern {
  FieldDescription description;
  std::string folder;          // "masks"; empty for the root
  std::string prefix, suffix;  // text before and after the key, in the path below `folder`: "" and ".png"

  // Returns the key of a file from its path below `folder`, or nullopt if the file does not match this field.
  std::optional<std::string_view> key_of(std::string_view path) const;
  // Returns the path of a sample's file, relative to the root.
  std::string path_of(std::string_view key) const;
  // Returns the extension of the field's tar members: the field's name and the file extension, such as "masks.png".
  std::string member_extension() const;
};

// Parses specs of the form "[NAME=]PATTERN[:KIND]"; see feedline::OpenOptions. Fails with kConfig if a pattern does not
// contain {key} exactly once, two fields have the same name, or a kind is unknown.
Result<std::vector<FieldPattern>> parse_patterns(const std::vector<std::string>& specs);

}  // namespace feedline::format
