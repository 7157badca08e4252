// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/feature_survey.h"

#include <algorithm>
#include <utility>

#include "decode/image_formats.h"

namespace feedline::format {
namespace {

// Merges the values of one or more records into the summary.
void merge(FeatureSeen& seen, const FeatureSeen& more) {
  if (more.kind == ValueKind::kNone) return;  // ignored
  const bool is_first = seen.records == 0;
  seen.fewest = is_first ? more.fewest : std::min(seen.fewest, more.fewest);
  seen.most = std::max(seen.most, more.most);
  seen.records += more.records;
  seen.is_list = is_first ? more.is_list : seen.is_list;
  if (seen.columns == 0) seen.columns = more.columns;
  if (seen.kind != ValueKind::kNone) return;
  seen.kind = more.kind;
  seen.is_image = more.is_image;
}

FeatureSeen seen_of(const Feature& feature) {
  FeatureSeen seen{.kind = feature.kind(), .records = 1};
  seen.fewest = seen.most = feature.count().value_or(0);
  if (seen.kind == ValueKind::kBytes)
    feature.each_bytes([&](std::span<const std::byte> bytes) {
      seen.is_image = !decode::image_extension(bytes).empty();
      return false;
    });
  return seen;
}

FeatureSeen seen_of(const FeatureList& list) {
  FeatureSeen seen{.is_list = true, .records = 1};
  std::uint64_t values = 0;
  list.each([&](const Feature& feature) {
    const FeatureSeen one = seen_of(feature);
    values += one.most;
    if (seen.kind == ValueKind::kNone) seen.kind = one.kind, seen.is_image = one.is_image, seen.columns = one.most;
    return true;
  });
  seen.fewest = seen.most = values;
  return seen;
}

}  // namespace

bool FeatureSurvey::add(std::span<const std::byte> record) {
  std::map<std::string, FeatureSeen> found;  // the last feature of a name is used
  const auto feature = [&](std::string_view name, const Feature& one) {
    return found.insert_or_assign(std::string(name), seen_of(one)), true;
  };
  // a feature has priority over a list with the same name, in any order
  std::map<std::string, FeatureSeen> lists;
  const auto list = [&](std::string_view name, const FeatureList& one) {
    return lists.insert_or_assign(std::string(name), seen_of(one)), true;
  };
  if (!walk_example(record, feature, list)) return false;
  found.merge(lists);
  for (const auto& [name, seen] : found) merge(features_[name], seen);
  ++records_;
  return true;
}

void FeatureSurvey::add(const FeatureSurvey& other) {
  for (const auto& [name, seen] : other.features_) merge(features_[name], seen);
  records_ += other.records_;
}

std::string FeatureSurvey::names() const {
  constexpr std::size_t kShown = 20;
  std::string text;
  std::size_t shown = 0;
  for (const auto& [name, seen] : features_) {
    if (shown++ == kShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + name + " (" + (seen.is_list ? "steps of " : "") +
            std::string(name_of(seen.kind)) + ")";
  }
  return text.empty() ? "no features" : text;
}

}  // namespace feedline::format
