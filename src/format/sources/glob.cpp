// SPDX-License-Identifier: Apache-2.0
#include "format/sources/glob.h"

#include <algorithm>
#include <span>

#include "format/sources/index_names.h"

namespace feedline::format {
namespace {

constexpr std::string_view kAnyFolders = "**";
constexpr int kDeepest = 64;  // deeper than any real dataset: probably a link to a parent folder

// Returns the position after the "]" of the character set that begins at `at`, or npos if the set is not closed. If the
// set is not closed, "[" is an ordinary character.
std::size_t end_of_set(std::string_view pattern, std::size_t at) {
  std::size_t first = at + 1;
  if (first < pattern.size() && (pattern[first] == '!' || pattern[first] == '^')) ++first;
  const std::size_t close = pattern.find(']', first + 1);  // a "]" in the first position is a member of the set
  return close == pattern.npos ? close : close + 1;
}

// set: "[a-c]".
bool is_in_set(char c, std::string_view set) {
  set = set.substr(1, set.size() - 2);
  const bool is_negated = set.starts_with('!') || set.starts_with('^');
  if (is_negated) set.remove_prefix(1);
  bool is_in = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    const auto first = static_cast<unsigned char>(set[i]), last = static_cast<unsigned char>(set[is_range ? i + 2 : i]);
    is_in = is_in || (static_cast<unsigned char>(c) >= first && static_cast<unsigned char>(c) <= last);
    if (is_range) i += 2;
  }
  return is_in != is_negated;
}

// Matches one component of a path. On a mismatch, backtracks to the last star and lets it match one more character.
bool matches_part(std::string_view name, std::string_view pattern) {
  if (name.starts_with('.') && !pattern.starts_with('.')) return false;
  std::size_t at = 0, i = 0, after_star = std::string_view::npos, from = 0;
  while (at < name.size()) {
    const std::size_t set_end =
        i < pattern.size() && pattern[i] == '[' ? end_of_set(pattern, i) : std::string_view::npos;
    if (i < pattern.size() && pattern[i] == '*') {
      after_star = ++i;
      from = at;
    } else if (set_end != std::string_view::npos && is_in_set(name[at], pattern.substr(i, set_end - i))) {
      i = set_end;
      ++at;
    } else if (i < pattern.size() && set_end == std::string_view::npos &&
               (pattern[i] == '?' || pattern[i] == name[at])) {
      ++i;
      ++at;
    } else if (after_star != std::string_view::npos) {
      i = after_star;
      at = ++from;
    } else {
      return false;
    }
  }
  while (i < pattern.size() && pattern[i] == '*') ++i;
  return i == pattern.size();
}

using Parts = std::span<const std::string_view>;

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == path.npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

bool matches_parts(Parts path, Parts pattern) {
  if (pattern.empty()) return path.empty();
  if (pattern.front() != kAnyFolders)
    return !path.empty() && matches_part(path.front(), pattern.front()) &&
           matches_parts(path.subspan(1), pattern.subspan(1));
  for (std::size_t skipped = 0; skipped <= path.size(); ++skipped) {
    if (matches_parts(path.subspan(skipped), pattern.subspan(1))) return true;
    if (skipped < path.size() && path[skipped].starts_with('.')) return false;
  }
  return false;
}

// Searches for files that match a pattern. Lists only folders that match a component of the pattern.
class Walk {
 public:
  Walk(const storage::Storage& storage, bool with_folders) : storage_(storage), with_folders_(with_folders) {}

  // `name` is the prefix of the paths found, and may be empty.
  Result<void> into(const std::string& folder, const std::string& name, Parts pattern, int depth) {
    if (depth > kDeepest)
      return config_error("'" + folder + "' is nested over " + std::to_string(kDeepest) + " folders deep");
    const bool is_any = pattern.front() == kAnyFolders, is_last = pattern.size() == 1;
    if (is_any && !is_last) FEEDLINE_CHECK_OK(into(folder, name, pattern.subspan(1), depth + 1));
    const auto entries = storage_.list(folder);
    if (!entries && depth == 0) return std::unexpected(entries.error());
    if (!entries) return {};  // not a folder, or not readable
    for (const storage::Entry& entry : *entries) {
      if (entry.name.starts_with('.') && (is_any || !pattern.front().starts_with('.'))) continue;
      const std::string below = storage_.below(folder, entry.name);
      const std::string found = name.empty() ? entry.name : storage_.below(name, entry.name);
      if (is_any) {
        if (entry.is_directory) FEEDLINE_CHECK_OK(into(below, found, pattern, depth + 1));
        if (is_last && !entry.is_directory) add(found);
      } else if (matches_part(entry.name, pattern.front())) {
        if (is_last && (!entry.is_directory || with_folders_)) add(found);
        if (!is_last && entry.is_directory) FEEDLINE_CHECK_OK(into(below, found, pattern.subspan(1), depth + 1));
      }
    }
    return {};
  }

  std::vector<std::string> take() {
    std::ranges::sort(found_);
    found_.erase(std::ranges::unique(found_).begin(), found_.end());  // "**/**" finds a path several times
    return std::move(found_);
  }

 private:
  void add(const std::string& path) {
    if (!is_index_name(path)) found_.push_back(path);
  }

  const storage::Storage& storage_;
  const bool with_folders_;
  std::vector<std::string> found_;
};

// Returns the start of the first component with a wildcard.
std::size_t begin_of_wildcards(std::string_view pattern) {
  const std::size_t slash = pattern.substr(0, pattern.find_first_of("*?[")).rfind('/');
  return slash == pattern.npos ? 0 : slash + 1;
}

}  // namespace

bool has_wildcard(std::string_view name, bool is_remote) {
  if (is_remote) name = name.substr(0, name.find('?'));
  if (name.find_first_of("*?") != name.npos) return true;
  const std::size_t open = name.find('[');
  return open != name.npos && end_of_set(name, open) != name.npos;
}

bool matches_glob(std::string_view path, std::string_view pattern) {
  return matches_parts(parts_of(path), parts_of(pattern));
}

std::string fixed_folder_of(std::string_view pattern) {
  const std::size_t begin = begin_of_wildcards(pattern);
  return begin == 0 ? "." : std::string(pattern.substr(0, std::max<std::size_t>(begin - 1, 1)));
}

std::string shown_names(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
    text += (i == 0 ? "'" : i + 1 == names.size() ? " and '" : ", '") + names[i] + "'";
  return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

Result<std::vector<std::string>> expand_glob(const std::string& pattern, const storage::Storage& storage,
                                             bool with_folders) {
  const std::size_t begin = begin_of_wildcards(pattern);
  const std::string folder = fixed_folder_of(pattern);
  Walk walk(storage, with_folders);
  const auto parts = parts_of(std::string_view(pattern).substr(begin));
  const auto walked = walk.into(folder, begin == 0 ? "" : folder, parts, 0);
  if (!walked && !storage.is_directory(folder).value_or(false) && !storage.is_remote())
    return config_error("no file matches '" + pattern + "': there is no folder '" + folder + "'");
  FEEDLINE_CHECK_OK(walked);
  auto found = walk.take();
  if (!found.empty()) return found;
  std::vector<std::string> names;
  FEEDLINE_TRY(const auto entries, storage.list(folder));
  for (const storage::Entry& entry : entries)
    if (!is_index_name(entry.name)) names.push_back(entry.name + (entry.is_directory ? "/" : ""));
  return config_error("no file matches '" + pattern + "'; the folder '" + folder + "' " +
                      (names.empty() ? "is empty" : "contains " + shown_names(names)));
}

}  // namespace feedline::format
