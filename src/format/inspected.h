// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: an inspection's findings in one line, "code:severity" in the order found.

#include <string>

#include "format/format.h"

namespace feedline::format {

inline std::string inspected(const std::string& source, const OpenOptions& options = {}) {
  const auto inspection = inspect(source, options);
  if (!inspection) return "error: " + inspection.error().message();
  std::string text;
  for (const InspectionFinding& finding : inspection->findings)
    text += (text.empty() ? "" : " ") + finding.code + ":" + finding.severity;
  return text;
}

}  // namespace feedline::format
