// SPDX-License-Identifier: Apache-2.0
// Parts of a source: subsets and splits.

#include <numeric>
#include <utility>

#include "format/combined/subset_format.h"
#include "pipeline/sample/source.h"
#include "plan/split.h"

namespace feedline::pipeline {
Result<Source> Source::subset(std::vector<std::uint64_t> indices) const {
  if (is_mixture()) return config_error("subset: the dataset is a mixture; take subsets of its datasets and mix those");
  Source part = *this;
  FEEDLINE_TRY(part.format_, format::subset(format_, std::move(indices)));
  return part;
}

Result<std::vector<Source>> Source::split(const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                                          const std::vector<std::int64_t>& classes) const {
  if (is_mixture()) return config_error("split: the dataset is a mixture; split its datasets and mix the parts");
  if (counts.empty() || counts.size() > 65535)
    return config_error("split: the number of parts must be between 1 and 65535");
  for (std::uint64_t count : counts)
    if (count == 0 || count > size())
      return config_error("split: a part cannot have " + std::to_string(count) + " samples; the dataset has " +
                          std::to_string(size()));
  const auto sum = std::accumulate(counts.begin(), counts.end(), std::uint64_t{});
  if (sum != size())
    return config_error("split: the parts have " + std::to_string(sum) + " samples in total, but the dataset has " +
                        std::to_string(size()));
  if (!classes.empty() && classes.size() != size())
    return config_error("split: " + std::to_string(classes.size()) + " classes were given for " +
                        std::to_string(size()) + " samples");
  std::vector<Source> parts;
  for (auto& indices : plan::split(counts, seed, classes)) {
    FEEDLINE_TRY(auto part, subset(std::move(indices)));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace feedline::pipeline
