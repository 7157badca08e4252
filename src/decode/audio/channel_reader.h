// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "decode/audio/audio_reader.h"

namespace feedline::decode {

// Returns a reader of one channel of a file. It owns `reader`, and is used by one thread at a time. kData: the file
// does not have this channel.
Result<std::unique_ptr<AudioReader>> only_channel(std::unique_ptr<AudioReader> reader, std::uint32_t channel);

}  // namespace feedline::decode
