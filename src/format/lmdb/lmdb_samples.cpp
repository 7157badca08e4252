// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_samples.h"

#include <algorithm>
#include <span>
#include <unordered_map>

namespace feedline::format {
namespace {

// An entry of a source, and the sample to which it belongs.
struct Match {
  std::string_view id;
  std::uint32_t entry;
};

std::vector<Match> matches_of(const KeyPattern& pattern, const LmdbIndex& index) {
  std::vector<Match> matches;
  for (std::uint64_t i = 0; i < index.size(); ++i)
    if (const auto sample = pattern.sample_in(index.key(i)))
      matches.push_back({pattern.id_of(*sample), static_cast<std::uint32_t>(i)});
  const auto before = [&](const Match& a, const Match& b) { return pattern.is_before(a.id, b.id); };
  if (!std::ranges::is_sorted(matches, before)) std::ranges::sort(matches, before);
  return matches;
}

// Returns the key "name" for the line "name.png (480,640,3) 1".
std::string_view key_in(std::string_view line) {
  line = line.substr(0, line.find(' '));
  return line.substr(0, line.rfind('.'));
}

}  // namespace

Result<LmdbSamples> LmdbSamples::of(const LmdbLayout& layout, const LmdbIndex& index, Missing missing,
                                    std::optional<std::string_view> key_list) {
  LmdbSamples samples;
  samples.sources_ = layout.sources.size();
  samples.gaps_.resize(samples.sources_);
  if (index.size() >= kNone) return config_error("the database holds more than 4,294,967,294 entries");
  const bool are_all = samples.sources_ == 1 && layout.sources.front().takes_all();
  if (are_all && key_list) {
    FEEDLINE_CHECK_OK(samples.take_list(*key_list, index));
  } else if (are_all) {
    samples.size_ = index.size();
  } else {
    samples.match(layout, index, missing);
  }
  return samples;
}

void LmdbSamples::take(const std::vector<std::uint32_t>& row, Missing missing) {
  const bool is_whole = std::ranges::find(row, kNone) == row.end();
  if (!is_whole && missing == Missing::kSkip) {
    ++left_out_;
    return;
  }
  for (std::size_t i = 0; i < row.size(); ++i)
    if (row[i] == kNone) gaps_[i] = true;
  entries_.insert(entries_.end(), row.begin(), row.end());
  ++size_;
}

// Merges the entries of all sources in the order of their ids.
void LmdbSamples::match(const LmdbLayout& layout, const LmdbIndex& index, Missing missing) {
  std::vector<std::vector<Match>> matches;
  for (const KeyPattern& pattern : layout.sources) matches.push_back(matches_of(pattern, index));
  std::vector<std::size_t> next(sources_);
  std::vector<std::uint32_t> row(sources_);
  const KeyPattern& order = layout.sources.front();
  while (true) {
    std::optional<std::string_view> lowest;
    for (std::size_t i = 0; i < sources_; ++i)
      if (next[i] < matches[i].size() && (!lowest || order.is_before(matches[i][next[i]].id, *lowest)))
        lowest = matches[i][next[i]].id;
    if (!lowest) return;
    for (std::size_t i = 0; i < sources_; ++i) {
      const bool has = next[i] < matches[i].size() && matches[i][next[i]].id == *lowest;
      row[i] = has ? matches[i][next[i]++].entry : kNone;
    }
    take(row, missing);
  }
}

Result<void> LmdbSamples::take_list(std::string_view list, const LmdbIndex& index) {
  std::unordered_map<std::string_view, std::uint32_t> by_key;
  for (std::uint64_t i = 0; i < index.size(); ++i) by_key.emplace(index.key(i), static_cast<std::uint32_t>(i));
  for (std::size_t number = 1; !list.empty(); ++number) {
    const std::size_t end = std::min(list.find('\n'), list.size());
    std::string_view line = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto found = by_key.find(key_in(line));
    if (found == by_key.end())
      return data_error("line " + std::to_string(number) + " of meta_info.txt names the key '" +
                            std::string(key_in(line)) + "', which is not in the database",
                        "format");
    entries_.push_back(found->second);
    ++size_;
  }
  return {};
}

}  // namespace feedline::format
