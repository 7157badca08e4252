// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of the files that `feedline pack` writes for samples that are not stored as files. A name is the part after the
// sample's key.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/sample_files.h"
#include "format/format.h"

namespace feedline::format {

// Converts a name so that it can be part of a tar member's name. Retains lower-case letters, digits and "-", and
// replaces all other characters with "_".
std::string plain_name(std::string_view name);

// Returns the extension of a file with this value of a field. Arrays are NumPy files, or JSON.
std::string_view extension_of(FieldKind kind, std::span<const std::byte> value);

// Not thread-safe.
class MemberFiles {
 public:
  // Adds the file of a field's value. The first image and the first integer have an extension only.
  void add_value(std::string_view field, FieldKind kind, std::vector<std::byte> value);
  // Adds a file under a unique name. If `short_name` is not empty and not in use, uses it instead of `extension`.
  void add(std::string extension, std::string_view short_name, std::vector<std::byte> bytes);
  std::vector<SampleFiles::File> take() { return std::move(files_); }

 private:
  std::vector<SampleFiles::File> files_;
};

}  // namespace feedline::format
