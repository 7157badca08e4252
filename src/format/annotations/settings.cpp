// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/settings.h"

#include <charconv>

namespace feedline::format {
namespace {

std::string_view query_of(std::string_view format) {
  const std::size_t mark = format.find('?');
  return mark == format.npos ? std::string_view() : format.substr(mark + 1);
}

// Decodes "%20" to a space; a '%' without two hexadecimal digits after it is literal.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const std::string_view digits = text.substr(i).substr(0, 3);
    const char* const end = digits.data() + digits.size();
    const bool is_escape =
        digits.size() == 3 && digits.front() == '%' && std::from_chars(digits.data() + 1, end, code, 16).ptr == end;
    plain += is_escape ? static_cast<char>(code) : text[i];
    if (is_escape) i += 2;
  }
  return plain;
}

}  // namespace

std::string_view name_in(std::string_view format) { return format.substr(0, format.find('?')); }

std::string_view first_setting_in(std::string_view format) {
  const std::string_view query = query_of(format);
  return query.substr(0, query.find('='));
}

Result<AnnotationSettings> settings_in(std::string_view format) {
  AnnotationSettings settings;
  for (std::string_view rest = query_of(format); !rest.empty();) {
    const std::size_t end = rest.find('&');
    const std::string_view one = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    const std::size_t equals = one.find('=');
    const std::string_view name = one.substr(0, equals);
    std::string* const value = name == "images"  ? &settings.images
                               : name == "split" ? &settings.split
                               : name == "crowd" ? &settings.crowd
                                                 : nullptr;
    if (value == nullptr)
      return config_error("unknown format setting '" + std::string(name) + "'; use images, split or crowd");
    if (equals == one.npos || equals + 1 == one.size() || !value->empty())
      return config_error("the setting '" + std::string(name) + "' has no value or more than one");
    *value = unescaped(one.substr(equals + 1));
  }
  return settings;
}

}  // namespace feedline::format
