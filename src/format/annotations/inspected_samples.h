// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "feedline/inspection.h"
#include "format/finding.h"
#include "format/format.h"
#include "memory/record.h"

namespace feedline::format {

// Reads every sample of annotated images for inspect(). A sample's error becomes a finding; for the others, bytes and
// sizes are counted. image_bytes: returns the size of the image in a sample that was read.
void inspect_samples(const RecordFormat& format, std::span<const std::string> keys,
                     const std::function<std::uint64_t(std::uint64_t index, const memory::Record&)>& image_bytes,
                     Inspection& inspection, Findings& findings);

}  // namespace feedline::format
