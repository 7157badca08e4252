// SPDX-License-Identifier: Apache-2.0
#include "format/plugin/plugin_formats.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <span>

#include "base/fork_mutex.h"
#include "base/plugin_checks.h"
#include "format/format.h"
#include "format/sources/sample_name.h"

namespace feedline::format {
namespace {

// Never destroyed, because datasets may outlive other statics.
struct Known {
  ForkMutex mutex;
  std::vector<std::unique_ptr<const feedline_format_v1>> formats;  // guarded by mutex
};
Known& known() {
  static Known* const all = new Known;
  return *all;
}

template <typename Is>
const feedline_format_v1* find(const Is& is) {
  const std::lock_guard lock(known().mutex);
  for (const auto& format : known().formats)
    if (is(*format)) return format.get();
  return nullptr;
}

bool has_extension(const feedline_format_v1& format, std::string_view extension) {
  return std::ranges::any_of(std::span(format.extensions, format.extension_count),
                             [&](const char* one) { return extension == one; });
}

Result<void> check_fields(const feedline_format_v1& format, const std::string& what) {
  FEEDLINE_CHECK_OK(base::check_plugin_list(what, "fields", format.fields, format.field_count));
  if (format.field_count == 0) return config_error(what + " has no fields");
  std::set<std::string_view> names;
  for (const feedline_field& field : std::span(format.fields, format.field_count)) {
    FEEDLINE_CHECK_OK(base::check_plugin_name(what, "field name", field.name));
    if (!names.insert(field.name).second)
      return config_error(what + " has two fields '" + std::string(field.name) + "'");
    const std::string kind = field.kind == nullptr ? "" : field.kind;
    const auto known = field_kind_of(kind);
    if (!known || *known == FieldKind::kVideo || *known == FieldKind::kVolume)
      return config_error(what + " has the field '" + field.name + "' of the kind '" + kind +
                          "'; the kinds are image, mask, audio, array, boxes, keypoints, bytes, text, json and value");
  }
  return {};
}

}  // namespace

Result<void> check_plugin(const feedline_format_v1& format, std::span<const feedline_format_v1> others) {
  FEEDLINE_CHECK_OK(base::check_plugin_name("a format", "name", format.name));
  const std::string what = "the format '" + std::string(format.name) + "'";
  if (format.open == nullptr || format.close == nullptr || format.locate == nullptr || format.read == nullptr)
    return config_error(what + " lacks one of open(), close(), locate() and read()");
  FEEDLINE_CHECK_OK(check_fields(format, what));
  FEEDLINE_CHECK_OK(base::check_plugin_extensions(what, format.extensions, format.extension_count));
  if (plugin_format(format.name) != nullptr) return config_error(what + " exists already; choose another name");
  for (const char* const extension : std::span(format.extensions, format.extension_count)) {
    const auto* other = find([&](const auto& one) { return has_extension(one, extension); });
    for (const feedline_format_v1& one : others)
      if (has_extension(one, extension)) other = &one;
    if (other != nullptr)
      return config_error(what + " has the extension '" + extension + "' of the format '" + other->name + "'");
  }
  return {};
}

void add_plugin(const feedline_format_v1& format) {
  const std::lock_guard lock(known().mutex);
  known().formats.push_back(std::make_unique<const feedline_format_v1>(format));
}

const feedline_format_v1* plugin_format(std::string_view name) {
  return find([name](const feedline_format_v1& one) { return name == one.name; });
}

const feedline_format_v1* plugin_format_of_file(std::string_view path) {
  path = path.substr(0, path.find('?'));
  const std::string name = to_lower(path.substr(path.rfind('/') + 1));
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return nullptr;
  return find([&](const feedline_format_v1& one) { return has_extension(one, name.substr(dot + 1)); });
}

std::vector<std::string_view> plugin_format_names() {
  std::vector<std::string_view> names;
  const std::lock_guard lock(known().mutex);
  for (const auto& format : known().formats) names.emplace_back(format->name);
  return names;
}

}  // namespace feedline::format
