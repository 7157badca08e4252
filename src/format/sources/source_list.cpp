// SPDX-License-Identifier: Apache-2.0
#include "format/sources/source_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "format/sources/glob.h"
#include "format/sources/index_names.h"
#include "format/sources/sample_name.h"
#include "storage/pipe/pipe_storage.h"

namespace feedline::format {
namespace {

constexpr std::size_t kMostNames = 10'000'000;  // a typing error must not exhaust memory

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // bounds whose difference overflows are a mistake
  constexpr std::int64_t kLargest = std::int64_t{1} << 60;
  if (error != std::errc() || end != text.data() + text.size() || value > kLargest || value < -kLargest) return {};
  return value;
}

bool is_zero_padded(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  return number.size() > 1 && number[0] == '0';
}

std::string padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  const std::size_t sign = value < 0 ? 1 : 0;
  if (digits.size() + sign < width) digits.insert(0, width - sign - digits.size(), '0');
  return (value < 0 ? "-" : "") + digits;
}

std::string shown(std::string_view body) { return "'{" + std::string(body) + "}'"; }

// Returns the values from first to last, in ascending or descending order.
Result<std::vector<std::int64_t>> count(std::int64_t first, std::int64_t last, std::int64_t step,
                                        std::string_view body) {
  if (step == 0) step = 1;  // as in bash
  const std::int64_t stride = step < 0 ? -step : step;
  const std::int64_t distance = first < last ? last - first : first - last;
  if (static_cast<std::uint64_t>(distance / stride) >= kMostNames)
    return config_error("the range " + shown(body) + " has too many values");
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i <= distance / stride; ++i)
    values.push_back(first < last ? first + i * stride : first - i * stride);
  return values;
}

// Expands "first..last" or "first..last..step" with integers or single letters. Returns nullopt if the text is not a
// range.
Result<std::optional<std::vector<std::string>>> expand_range(std::string_view body) {
  std::vector<std::string_view> parts;
  for (std::string_view rest = body;;) {
    const std::size_t dots = rest.find("..");
    parts.push_back(rest.substr(0, dots));
    if (dots == std::string_view::npos) break;
    rest.remove_prefix(dots + 2);
  }
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  const auto step = parts.size() == 3 ? integer(parts[2]) : std::optional<std::int64_t>(1);
  if (!step) return std::nullopt;
  std::vector<std::string> names;
  if (const auto first = integer(parts[0]), last = integer(parts[1]); first && last) {
    const bool pad = is_zero_padded(parts[0]) || is_zero_padded(parts[1]);
    const std::size_t width = pad ? std::max(parts[0].size(), parts[1].size()) : 0;
    FEEDLINE_TRY(const auto values, count(*first, *last, *step, body));
    for (const std::int64_t value : values) names.push_back(padded(value, width));
    return names;
  }
  const auto is_letter = [](std::string_view text) {
    return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  };
  if (!is_letter(parts[0]) || !is_letter(parts[1])) return std::nullopt;
  FEEDLINE_TRY(const auto values, count(parts[0][0], parts[1][0], *step, body));
  for (const std::int64_t value : values) names.emplace_back(1, static_cast<char>(value));
  return names;
}

// Returns the comma-separated parts of a group. Commas inside nested groups do not separate parts.
std::vector<std::string> split_group(std::string_view body) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : body) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Result<std::vector<std::string>> expand(std::string_view text, int depth);

Result<std::vector<std::string>> expand_group(std::string_view body, int depth) {
  const std::vector<std::string> parts = split_group(body);
  if (parts.size() == 1) {
    FEEDLINE_TRY(auto range, expand_range(body));
    if (range) return std::move(*range);
    return config_error("the braces " + shown(body) + " contain neither a range like {000..146} nor a list like {a,b}");
  }
  std::vector<std::string> names;
  for (const std::string& part : parts) {
    FEEDLINE_TRY(auto expanded, expand(part, depth + 1));
    if (names.size() + expanded.size() > kMostNames) return config_error("the braces expand to too many names");
    std::ranges::move(expanded, std::back_inserter(names));
  }
  return names;
}

Result<std::vector<std::string>> expand(std::string_view text, int depth) {
  constexpr int kDeepest = 32;  // limits the recursion that a source can cause
  if (depth > kDeepest) return config_error("braces are nested more than 32 deep");
  const std::size_t open = text.find('{');
  if (text.substr(0, open).find('}') != std::string_view::npos)
    return config_error("a closing brace has no opening brace in '" + std::string(text) + "'");
  if (open == std::string_view::npos) return std::vector<std::string>{std::string(text)};
  std::size_t close = open;
  for (int level = 0; close < text.size(); ++close) {
    level += text[close] == '{' ? 1 : text[close] == '}' ? -1 : 0;
    if (level == 0) break;
  }
  if (close == text.size()) return config_error("an opening brace has no closing brace in '" + std::string(text) + "'");
  FEEDLINE_TRY(const auto middles, expand_group(text.substr(open + 1, close - open - 1), depth));
  FEEDLINE_TRY(const auto tails, expand(text.substr(close + 1), depth + 1));
  if (middles.size() > kMostNames / tails.size()) return config_error("the braces expand to too many names");
  std::vector<std::string> names;
  names.reserve(middles.size() * tails.size());
  for (const std::string& middle : middles)
    for (const std::string& tail : tails) names.push_back(std::string(text.substr(0, open)) + middle + tail);
  return names;
}

// Returns the kind of files with such a name, or an empty string if the name does not show the kind.
std::string_view kind_by_name(std::string_view path) {
  constexpr std::pair<std::string_view, std::string_view> kKindsOfEndings[] = {{".tar", "tar file"},
                                                                               {".tar.gz", "tar file"},
                                                                               {".tgz", "tar file"},
                                                                               {".tfrecord", "TFRecord file"},
                                                                               {".parquet", "Parquet file"},
                                                                               {".arrow", "Arrow file"},
                                                                               {".csv", "table"},
                                                                               {".csv.gz", "table"},
                                                                               {".tsv", "table"},
                                                                               {".tsv.gz", "table"},
                                                                               {".jsonl", "table"},
                                                                               {".jsonl.gz", "table"},
                                                                               {".npy", ".npy or .npz file"},
                                                                               {".npz", ".npy or .npz file"}};
  const std::string name = to_lower(path.substr(0, path.find('?')));
  for (const auto& [end, kind] : kKindsOfEndings)
    if (name.ends_with(end)) return kind;
  return {};
}

std::string with_article(std::string_view noun) { return (noun.starts_with('A') ? "an " : "a ") + std::string(noun); }

// Fails with kConfig if a list has names of files of kind `what`, which would be read, and of a different kind.
Result<void> check_alike(const std::vector<std::string>& shards, std::string_view what) {
  const auto is_of = [&](const std::string& shard) { return kind_by_name(shard) == what; };
  const auto one = std::ranges::find_if(shards, is_of);
  if (one == shards.end()) return {};
  for (const std::string& shard : shards) {
    const std::string_view kind = kind_by_name(shard);
    if (!kind.empty() && kind != what)
      return config_error("'" + shard + "' is " + with_article(kind) + ", but '" + *one + "' is " + with_article(what) +
                          ": open files of different formats separately");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> expand_braces(const std::string& text) { return expand(text, 0); }

bool is_list(const std::string& text) {
  const auto parts = split_list(text);
  if (parts.size() > 1) return true;
  const auto names = text.find('{') == text.npos ? Result<std::vector<std::string>>() : expand_braces(text);
  return names && names->size() > 1;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find("::", begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) break;
    begin = end + 2;
  }
  if (parts.size() > 1 && !std::ranges::all_of(parts, is_index_name))
    std::erase_if(parts, [](const std::string& part) { return is_index_name(part); });
  return parts;
}

Result<LocatedSource> locate_allowing_commands(const std::string& source) {
  const auto pipes = std::make_shared<storage::PipeStorage>();
  return locate(source, [&](const std::string& part) -> Result<storage::Location> {
    if (!part.starts_with(storage::kPipe)) return storage::open(part);
    return storage::Location{pipes, pipes->name_of(part)};
  });
}

Result<LocatedSource> locate(const std::string& source, const OpenUrl& open) {
  LocatedSource located{nullptr, ""};
  for (const std::string& part : split_list(source)) {
    FEEDLINE_TRY(storage::Location location, open(part));
    if (located.storage && located.storage != location.storage)
      return config_error("open: '" + part +
                          "' is in a different storage from the parts before it; open them separately "
                          "and mix them");
    located.source += (located.storage ? "::" : "") + location.object;
    located.storage = std::move(location.storage);
  }
  return located;
}

Result<std::vector<std::string>> names_of_list(const std::string& source, const storage::Storage& storage,
                                               std::string_view what, bool with_folders) {
  std::vector<std::string> all;
  for (const std::string& part : split_list(source)) {
    if (part.empty()) return config_error("the list of " + std::string(what) + "s has an empty name");
    const auto is_pattern = [&](const std::string& name) {  // the shell expands wildcards in a command
      return !part.starts_with(storage::kPipe) && has_wildcard(name, storage.is_remote());
    };
    const bool has_braces = part.find_first_of("{}") != std::string::npos;
    const bool is_plain = !has_braces && !is_pattern(part);
    const bool is_name = is_plain || (storage.is_remote() ? has_braces && !is_list(part) && storage.stat(part)
                                                          : storage.stat(part).has_value());
    if (is_name) {
      all.push_back(part);
      continue;
    }
    FEEDLINE_TRY(const auto names, expand_braces(part));
    for (const std::string& name : names) {
      if (!is_pattern(name) || (!storage.is_remote() && storage.stat(name))) {
        all.push_back(name);
        continue;
      }
      FEEDLINE_TRY(const auto found, expand_glob(name, storage, with_folders));
      all.insert(all.end(), found.begin(), found.end());
    }
  }
  return all;
}

Result<std::vector<std::string>> shards_of(const std::string& source, const storage::Storage& storage,
                                           std::string_view what) {
  FEEDLINE_TRY(auto shards, names_of_list(source, storage, what));
  FEEDLINE_CHECK_OK(check_alike(shards, what));
  for (const std::string& shard : shards)
    if (storage.is_remote())
      break;  // if each check would be a request
    else if (const auto folder = storage.is_directory(shard); folder && *folder)
      return config_error("'" + shard + "' is a folder, but a " + std::string(what) + " is required");
  return shards;
}

std::string first_of_list(const std::string& source, const storage::Storage& storage) {
  std::string first = split_list(source).front();
  if (first.starts_with(storage::kPipe) || (!storage.is_remote() && storage.stat(first))) return first;
  if (is_list(first)) {
    const auto names = expand_braces(first);
    if (names && !names->empty()) first = names->front();
  }
  if (storage.is_remote() || !has_wildcard(first, false) || storage.stat(first)) return first;
  const auto found = expand_glob(first, storage, true);
  return found ? found->front() : first;
}

}  // namespace feedline::format
