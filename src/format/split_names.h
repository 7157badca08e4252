// SPDX-License-Identifier: Apache-2.0
#pragma once

// Determines the split of a file in a folder by the rule of Hugging Face's `datasets`: the word "train", "training",
// "validation", "valid", "val", "dev", "test", "testing", "eval" or "evaluation", delimited by "-", ".", "_", " ",
// digits or the ends, in the name of a folder or else of the file. Other words and numbers are not splits.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::format {

// Files by split, "train", "validation" or "test"; "" for files without a split. If all files are in "data" and named
// "NAME-00000-of-00004.*", NAME is the split. paths: relative to the folder.
std::map<std::string, std::vector<std::string>> splits_of(const std::vector<std::string>& paths);

// "train-00000-of-00004.parquet" is one of 4 parts named "train"; 0 parts if the name does not have this form.
struct NumberedPart {
  std::string stem;
  std::size_t parts = 0;
};
NumberedPart numbered_part(std::string_view path);

}  // namespace feedline::format
