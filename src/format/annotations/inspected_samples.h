// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "feedline/inspection.h"
#include "format/format.h"
#include "format/shards/finding.h"
#include "memory/record.h"

namespace feedline::format {

// Reads every sample of a dataset of annotated images for inspect(). Adds a finding for each sample that cannot be
// read, and counts the bytes and image sizes of the other samples. `image_bytes` returns the size of the image in a
// sample.
void inspect_samples(const RecordFormat& format, std::span<const std::string> keys,
                     const std::function<std::uint64_t(std::uint64_t index, const memory::Record&)>& image_bytes,
                     Inspection& inspection, Findings& findings);

}  // namespace feedline::format
