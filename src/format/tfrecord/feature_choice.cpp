// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/feature_choice.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "format/field_kind.h"
#include "format/sources/image_names.h"
#include "format/wanted_field.h"

namespace feedline::format {
namespace {

// The names in TensorFlow's image classification and detection scripts, followed by other common names.
constexpr std::array<std::string_view, 4> kLabels{"image/class/label", "label", "cls", "class"};

// Returns whether the feature has labels according to a component of its name, such as "segmentation" in
// "image/segmentation/encoded".
bool is_of_labels(std::string_view name) {
  while (true) {
    if (name.starts_with("mask") || name.starts_with("seg")) return true;
    const std::size_t slash = name.find('/');
    if (slash == name.npos) return false;
    name.remove_prefix(slash + 1);
  }
}

FieldKind usual_kind_of_bytes(const std::string& feature, const FeatureSeen& seen) {
  if (seen.is_image) return is_of_labels(feature) ? FieldKind::kMask : FieldKind::kImage;
  const FieldKind kind = usual_kind(feature, std::string_view(feature).substr(feature.rfind('/') + 1));
  return kind == FieldKind::kText || kind == FieldKind::kJson ? kind : FieldKind::kBytes;
}

std::unexpected<Error> cannot_be(const WantedField& spec, const std::string& feature, const FeatureSeen& seen) {
  return config_error("fields: the feature '" + feature + "' holds " + std::string(name_of(seen.kind)) +
                      " values, so the field '" + spec.name + "' cannot be of kind " +
                      std::string(name_of(*spec.said)));
}

Result<void> choose_bytes(const WantedField& spec, const std::string& feature, const FeatureSeen& seen,
                          FeatureChoice& field) {
  field.description.kind = spec.said.value_or(usual_kind_of_bytes(feature, seen));
  if (seen.most <= 1) return {};
  return config_error("fields: the feature '" + feature + "' holds up to " + std::to_string(seen.most) +
                      " byte strings in a record, but a field needs exactly one");
}

Result<void> choose_numbers(const WantedField& spec, const std::string& feature, const FeatureSeen& seen,
                            FeatureChoice& field) {
  const bool always_one = seen.fewest == 1 && seen.most == 1 && !seen.is_list;
  const bool is_int = seen.kind == ValueKind::kInts;
  const FieldKind kind = spec.said.value_or(always_one && is_int ? FieldKind::kInteger : FieldKind::kArray);
  field.is_scalar = !spec.said ? always_one : kind == FieldKind::kInteger;
  field.description.kind = kind;
  if (seen.is_list && seen.columns > 1) field.columns = seen.columns;
  switch (kind) {
    case FieldKind::kInteger:
      if (seen.is_list) return cannot_be(spec, feature, seen);
      if (!is_int) field.description.kind = FieldKind::kArray;  // a scalar
      return {};
    case FieldKind::kArray:
      return {};
    case FieldKind::kBoxes:
      field.columns = 4;
      return {};
    case FieldKind::kKeypoints:
      field.columns = 2;
      return {};
    default:
      return cannot_be(spec, feature, seen);
  }
}

Result<FeatureChoice> choose(const WantedField& spec, const FeatureSurvey& survey) {
  FeatureChoice field;
  field.description.name = spec.name;
  field.alternatives = spec.alternatives;
  for (const std::string& feature : spec.alternatives) {
    const auto found = survey.features().find(feature);
    if (found == survey.features().end() || found->second.kind == ValueKind::kNone) continue;
    const FeatureSeen& seen = found->second;
    if (field.values == ValueKind::kNone) {
      field.values = seen.kind;
      FEEDLINE_CHECK_OK(seen.kind == ValueKind::kBytes ? choose_bytes(spec, feature, seen, field)
                                                       : choose_numbers(spec, feature, seen, field));
    }
    if (seen.kind != field.values)
      return config_error("fields: '" + spec.name + "' mixes " + std::string(name_of(field.values)) + " and " +
                          std::string(name_of(seen.kind)) + " values in the feature '" + feature + "'");
  }
  if (field.values != ValueKind::kNone) return field;
  return config_error("no sample has the field '" + spec.name + "' (" + spec.names() + ") among the " +
                      std::to_string(survey.records()) + " examined records; the features are " + survey.names());
}

// Returns the feature with a common name, or the only feature that is an image.
Result<FeatureChoice> default_image(const FeatureSurvey& survey) {
  WantedField spec{"image", {}, FieldKind::kImage};
  static const std::vector<std::string_view> names = image_column_names({"image/encoded", "image"});
  for (const std::string_view name : names) {
    const auto found = survey.features().find(std::string(name));
    if (found == survey.features().end() || found->second.kind != ValueKind::kBytes) continue;
    spec.alternatives.emplace_back(name);
    break;
  }
  if (spec.alternatives.empty())
    for (const auto& [name, seen] : survey.features())
      if (seen.is_image && seen.most == 1 && !is_of_labels(name)) spec.alternatives.push_back(name);
  if (spec.alternatives.size() == 1) return choose(spec, survey);
  return config_error(std::string(spec.alternatives.empty() ? "no feature" : "not exactly one feature") +
                      " can be recognised as the image; choose the fields, as in fields=(\"image=" +
                      (spec.alternatives.empty() ? "photo" : spec.alternatives.front()) +
                      ":image\", \"label\"); the features are " + survey.names());
}

std::optional<WantedField> default_label(const FeatureSurvey& survey) {
  for (const std::string_view name : kLabels) {
    const auto found = survey.features().find(std::string(name));
    if (found == survey.features().end() || found->second.is_list) continue;
    if (found->second.kind == ValueKind::kInts && found->second.most == 1)
      return WantedField{"label", {std::string(name)}, FieldKind::kInteger};
  }
  return {};
}

Result<std::vector<FeatureChoice>> default_features(const FeatureSurvey& survey) {
  std::vector<FeatureChoice> fields;
  FEEDLINE_TRY(fields.emplace_back(), default_image(survey));
  if (const auto label = default_label(survey)) {
    FEEDLINE_TRY(fields.emplace_back(), choose(*label, survey));
  }
  return fields;
}

}  // namespace

Result<std::vector<FeatureChoice>> choose_features(const std::vector<std::string>& specs, const FeatureSurvey& survey) {
  if (specs.empty()) return default_features(survey);
  std::vector<FeatureChoice> fields;
  for (const std::string& text : specs) {
    FEEDLINE_TRY(const WantedField spec, parse_wanted_field(text, "feature"));
    for (const FeatureChoice& other : fields)
      if (other.description.name == spec.name)
        return config_error("fields: two fields are called '" + spec.name + "'; put NAME= before one of them");
    FEEDLINE_TRY(fields.emplace_back(), choose(spec, survey));
  }
  return fields;
}

}  // namespace feedline::format
