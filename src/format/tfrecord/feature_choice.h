// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses the features that become fields, and the kinds of these fields.

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
  std::vector<std::string> alternatives;  // names of features, in order of preference
  ValueKind values = ValueKind::kNone;    // type of their values
  bool is_scalar = false;                 // for numbers: every sample has exactly one, so the field has no dimension
  std::uint64_t columns = 0;              // for numbers: values per row of a two-dimensional field; 0: one-dimensional
};

// Chooses one field per spec, "FEATURE" or "NAME=FEATURE;ALTERNATIVE:KIND". Without specs, chooses an image and, if
// there is one, a label. The choice depends on the records in `survey`. Fails with kConfig if a feature does not exist,
// its values cannot have the kind in the spec, or two fields have the same name.
Result<std::vector<FeatureChoice>> choose_features(const std::vector<std::string>& specs, const FeatureSurvey& survey);

}  // namespace feedline::format
