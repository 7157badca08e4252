// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names the files that `pack` writes for a sample whose values are not files: the part after the sample's key.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/sample_files.h"

namespace feedline::format {

// Converts a name to part of a tar member's name: lower-case letters, digits and "-", and "_" for all other characters.
std::string plain_name(std::string_view name);

// Not thread-safe.
class MemberFiles {
 public:
  // Adds a file under a unique name. short_name: used instead if it is still free; empty if none.
  void add(std::string extension, std::string_view short_name, std::vector<std::byte> bytes);
  std::vector<SampleFiles::File> take() { return std::move(files_); }

 private:
  std::vector<SampleFiles::File> files_;
};

}  // namespace feedline::format
