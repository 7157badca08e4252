// SPDX-License-Identifier: Apache-2.0
#include "format/shards/member_files.h"

#include <algorithm>

namespace feedline::format {

std::string plain_name(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-') c = '_';
  }
  return text.empty() ? "_" : text;
}

void MemberFiles::add(std::string extension, std::string_view short_name, std::vector<std::byte> bytes) {
  const auto is_taken = [&](std::string_view name) {
    return std::ranges::find(files_, name, &SampleFiles::File::extension) != files_.end();
  };
  if (!short_name.empty() && !is_taken(short_name)) extension = short_name;
  while (is_taken(extension)) extension.insert(0, "_");
  files_.push_back({std::move(extension), std::move(bytes)});
}

}  // namespace feedline::format
