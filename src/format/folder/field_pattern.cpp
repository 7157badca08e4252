// SPDX-License-Identifier: Apache-2.0
#include "format/folder/field_pattern.h"

#include <algorithm>
#include <utility>

#include "format/field_kind.h"
#include "format/sources/image_names.h"
#include "format/sources/sample_name.h"

namespace feedline::format {
namespace {

constexpr std::string_view kKey = "{key}";

// Returns "images" for "train/images/{key}.jpg", and "jpg" for "{key}.jpg".
std::string usual_name(const FieldPattern& pattern) {
  if (!pattern.folder.empty()) return pattern.folder.substr(pattern.folder.rfind('/') + 1);
  return pattern.suffix.substr(pattern.suffix.find_first_not_of("./") == std::string::npos
                                   ? pattern.suffix.size()
                                   : pattern.suffix.find_first_not_of("./"));
}

Result<FieldPattern> parse_pattern(const std::string& spec) {
  std::string_view rest = spec;
  FEEDLINE_TRY(const auto said, take_kind(rest));
  FieldPattern pattern;
  if (const std::size_t equals = rest.find('='); equals != rest.npos) {
    pattern.description.name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    if (pattern.description.name.empty()) return config_error("fields: an empty name in '" + spec + "'");
  }
  const std::size_t key = rest.find(kKey);
  if (key == rest.npos || rest.find(kKey, key + kKey.size()) != rest.npos || rest.starts_with('/'))
    return config_error(
        "fields: '" + spec +
        "' is not a pattern of files in the folder, such as 'images/{key}.jpg' with one {key}; a folder of class "
        "folders has the fields image and label, without fields=");
  const std::size_t slash = rest.substr(0, key).rfind('/');
  const std::size_t begin = slash == rest.npos ? 0 : slash + 1;
  pattern.folder = slash == rest.npos ? std::string_view() : rest.substr(0, slash);
  pattern.prefix = rest.substr(begin, key - begin);
  pattern.suffix = rest.substr(key + kKey.size());
  if (pattern.description.name.empty()) pattern.description.name = usual_name(pattern);
  if (pattern.description.name.empty())
    return config_error("fields: '" + spec + "' does not provide a field name; put NAME= before it");
  const std::string extension = to_lower(pattern.suffix);
  const std::string_view kind = is_any_image_name(extension) ? "png" : std::string_view(extension);
  pattern.description.kind = said.value_or(usual_kind(pattern.description.name, kind));
  return pattern;
}

}  // namespace

std::optional<std::string_view> FieldPattern::key_of(std::string_view path) const {
  if (path.size() <= prefix.size() + suffix.size() || !path.starts_with(prefix) || !path.ends_with(suffix)) return {};
  return path.substr(prefix.size(), path.size() - prefix.size() - suffix.size());
}

std::string FieldPattern::path_of(std::string_view key) const {
  std::string path = folder.empty() ? "" : folder + "/";
  return path.append(prefix).append(key).append(suffix);
}

std::string FieldPattern::member_extension() const {
  std::string name = to_lower(description.name);
  std::ranges::replace(name, '/', '_');
  const std::size_t dot = suffix.find_last_of("./");
  const bool has_none = dot == suffix.npos || suffix[dot] == '/';
  const std::string extension = has_none ? std::string() : to_lower(suffix.substr(dot + 1));
  const bool has_it = name == extension || name.ends_with("." + extension);
  return has_it || extension.empty() ? name : name + "." + extension;
}

Result<std::vector<FieldPattern>> parse_patterns(const std::vector<std::string>& specs) {
  std::vector<FieldPattern> patterns;
  for (const std::string& spec : specs) {
    FEEDLINE_TRY(FieldPattern pattern, parse_pattern(spec));
    const std::string& name = pattern.description.name;
    for (const FieldPattern& other : patterns)
      if (other.description.name == name)
        return config_error("fields: two fields are called '" + name + "'; put NAME= before one of them");
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

}  // namespace feedline::format
