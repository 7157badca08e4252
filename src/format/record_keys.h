// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keys of samples that have no names of their own: the shard's and the number in it, "train-00000-of-01024/00000017".

#include <cstdint>
#include <string>
#include <vector>

namespace feedline::format {

// What the keys of a dataset's shards begin with, out of their names without folders and ends: dots are "_", as in a
// tar they would end the key, and those that are the same have the shard's number behind them.
std::vector<std::string> key_stems(std::vector<std::string> names);
std::string record_key(const std::string& stem, std::uint64_t record);

}  // namespace feedline::format
