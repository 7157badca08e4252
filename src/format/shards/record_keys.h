// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keys of samples without names. Such keys consist of the shard's prefix and the sample's number:
// "train-00000-of-01024/00000017".

#include <cstdint>
#include <string>
#include <vector>

namespace feedline::format {

// Returns the key prefixes of a dataset's shards, which are their names without folder and extension. Dots are replaced
// by "_", because they would end the key in a tar. Duplicate names get the shard's number as a suffix.
std::vector<std::string> key_stems(std::vector<std::string> names);
std::string record_key(const std::string& stem, std::uint64_t record);

}  // namespace feedline::format
