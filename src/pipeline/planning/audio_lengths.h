// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "feedline/error.h"
#include "pipeline/sample/recipe.h"

namespace feedline::pipeline {

// The lengths of the audio of all samples, as delivered.
struct AudioLengths {
  std::uint32_t rate = 0;              // of the first audio field
  std::vector<std::uint64_t> samples;  // of the longest audio field of each sample, at the slowest speed
};
// Uses the durations that the source states, otherwise those in the headers of the files, which several threads read
// and store; decodes nothing. kConfig: the samples have no audio. kData, kStorage: a header cannot be read.
Result<AudioLengths> audio_lengths(const Recipe& recipe);

}  // namespace feedline::pipeline
