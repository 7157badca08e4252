// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keys of unnamed samples: the shard's key and the sample's number, "train-00000-of-01024/00000017".

#include <cstdint>
#include <string>
#include <vector>

namespace feedline::format {

// The key prefixes of a dataset's shards: their names without folder and extension. Dots become "_", because in a tar
// they would end the key. Duplicate names get the shard's number as a suffix.
std::vector<std::string> key_stems(std::vector<std::string> names);
std::string record_key(const std::string& stem, std::uint64_t record);

}  // namespace feedline::format
