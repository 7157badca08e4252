// SPDX-License-Identifier: Apache-2.0
#include "format/shards/record_keys.h"

#include <algorithm>
#include <map>

namespace feedline::format {

std::vector<std::string> key_stems(std::vector<std::string> names) {
  std::map<std::string, std::size_t> counts;
  for (std::string& name : names) {
    std::ranges::replace(name, '.', '_');
    ++counts[name];
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (counts[names[i]] > 1) names[i] += "-" + std::to_string(i);
  return names;
}

std::string record_key(const std::string& stem, std::uint64_t record) {
  constexpr std::size_t kDigits = 8;  // zero-padded, so that keys sort in the order of the records
  const std::string number = std::to_string(record);
  return stem + "/" + std::string(kDigits - std::min(kDigits, number.size()), '0') + number;
}

}  // namespace feedline::format
