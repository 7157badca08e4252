// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files that `pack` makes of a sample whose values are no files: what each is called behind the sample's key.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/sample_files.h"

namespace feedline::format {

// A name as a part of a tar member's: small letters, digits and "-", and "_" for all else.
std::string plain_name(std::string_view name);

// Not for several threads at once.
class MemberFiles {
 public:
  // Under a name that no file has yet. short_name: in place of it where that is still free; empty: none.
  void add(std::string extension, std::string_view short_name, std::vector<std::byte> bytes);
  std::vector<SampleFiles::File> take() { return std::move(files_); }

 private:
  std::vector<SampleFiles::File> files_;
};

}  // namespace feedline::format
