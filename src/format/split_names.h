// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which split a file of a folder belongs to, by the rule of Hugging Face's `datasets`: the word "train", "training",
// "validation", "valid", "val", "dev", "test", "testing", "eval" or "evaluation" between "-", ".", "_", " ", digits and
// ends, in a folder's name or else in the file's. Other words and numbers make no splits.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::format {

// Files by split, "train", "validation" or "test"; "" has those of none. Files in "data" that are all called
// "NAME-00000-of-00004.*" are of the split NAME. paths: relative to the folder.
std::map<std::string, std::vector<std::string>> splits_of(const std::vector<std::string>& paths);

// "train-00000-of-00004.parquet" is a part of 4 that are called "train"; 0 parts: the name does not have that form.
struct NumberedPart {
  std::string stem;
  std::size_t parts = 0;
};
NumberedPart numbered_part(std::string_view path);

}  // namespace feedline::format
