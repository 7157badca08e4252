// SPDX-License-Identifier: Apache-2.0
#pragma once

// Determines the split of a file by the rules of Hugging Face's `datasets`: the name of a folder, or otherwise of the
// file, contains the word "train", "training", "validation", "valid", "val", "dev", "test", "testing", "eval" or
// "evaluation". Words are delimited by "-", ".", "_", " ", digits, or the ends of the name. Other words and numbers are
// not splits.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::format {

// Returns the files by split: "train", "validation", "test", or "" for files without a split. If all files are in
// "data" and named "NAME-00000-of-00004.*", NAME is the split. `paths` are relative to the dataset's folder.
std::map<std::string, std::vector<std::string>> splits_of(const std::vector<std::string>& paths);

// The stem and the number of parts in a file name: "train-00000-of-00004.parquet" is one of 4 parts of "train". The
// number is 0 if the name does not have this form.
struct NumberedPart {
  std::string stem;
  std::size_t parts = 0;
};
NumberedPart numbered_part(std::string_view path);

}  // namespace feedline::format
