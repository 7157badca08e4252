// SPDX-License-Identifier: Apache-2.0
#include "format/wanted_field.h"

#include "format/field_kind.h"

namespace feedline::format {

std::string WantedField::names() const {
  std::string text;
  for (const std::string& one : alternatives) text += (text.empty() ? "" : ", ") + one;
  return text;
}

Result<WantedField> parse_wanted_field(const std::string& text, std::string_view what) {
  std::string_view rest = text;
  WantedField spec;
  FEEDLINE_TRY(spec.said, take_kind(rest));
  if (const std::size_t equals = rest.find('='); equals != rest.npos) {
    spec.name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    if (spec.name.empty()) return config_error("fields: an empty name in '" + text + "'");
  }
  while (true) {
    const std::size_t end = rest.find(';');
    spec.alternatives.emplace_back(rest.substr(0, end));
    if (spec.alternatives.back().empty())
      return config_error("fields: an empty " + std::string(what) + " name in '" + text + "'");
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  if (spec.name.empty()) spec.name = spec.alternatives.front();
  return spec;
}

}  // namespace feedline::format
