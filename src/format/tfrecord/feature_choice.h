// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which features make a field, and what the field is.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/tfrecord/feature_survey.h"

namespace feedline::format {

struct FeatureChoice {
  FieldDescription description;
  std::vector<std::string> alternatives;  // names of features, the one preferred first
  ValueKind values = ValueKind::kNone;    // what they hold
  bool is_scalar = false;                 // of numbers: every sample has one, and the field no length
  std::uint64_t columns = 0;              // of numbers: in a row of two-dimensional ones; 0: they have one dimension
};

// One field per spec, "FEATURE", "NAME=FEATURE;ALTERNATIVE:KIND"; none: an image and, where there is one, a label. By
// what the records of `survey` have. kConfig: no such feature, values that cannot be what the spec says, two fields of
// one name.
Result<std::vector<FeatureChoice>> choose_features(const std::vector<std::string>& specs, const FeatureSurvey& survey);

}  // namespace feedline::format
