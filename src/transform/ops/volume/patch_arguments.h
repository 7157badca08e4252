// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arguments of the three operations that crop patches. Functions without state; thread-safe.

#include <string>
#include <string_view>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "transform/operation/argument_checks.h"

namespace feedline::transform {

// Returns the beginning of a description: "(64, 64, 64)" or "(64, 64, 64), " and `padded`.
inline std::string describe_patch(const op::Patch& patch, std::string_view padded) {
  std::string text = "(";
  for (const int extent : patch.size) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  text += ")";
  return patch.pad && !padded.empty() ? text + ", " + std::string(padded) : text;
}

inline Result<void> check_patch(const op::Patch& patch) {
  if (patch.size.empty()) return config_error("size must have one number of voxels per cropped axis");
  for (const int extent : patch.size) FEEDLINE_CHECK_OK(check_side("size", extent));
  return {};
}

}  // namespace feedline::transform
