// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: opens and inspects sources.

#include <memory>
#include <string>
#include <utility>

#include "format/format.h"

namespace feedline::format {

// Opens a source whose samples are records.
inline Result<std::shared_ptr<const RecordFormat>> open_records(const std::string& source,
                                                                const OpenOptions& options = {}) {
  FEEDLINE_TRY(auto format, open(source, options));
  return records_of(std::move(format));
}

// Returns the findings of an inspection as one line of "code:severity", in the order of detection.
inline std::string inspected(const std::string& source, const OpenOptions& options = {}) {
  const auto inspection = inspect(source, options);
  if (!inspection) return "error: " + inspection.error().message();
  std::string text;
  for (const InspectionFinding& finding : inspection->findings)
    text += (text.empty() ? "" : " ") + finding.code + ":" + finding.severity;
  return text;
}

}  // namespace feedline::format
