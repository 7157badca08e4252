// SPDX-License-Identifier: Apache-2.0
#pragma once

// Predicts the cost of reading compressed blocks in a loader's order.

#include <string>

#include "pipeline/sample/source.h"
#include "plan/order.h"

namespace feedline::pipeline {

// Returns a description with the argument to pass instead, if reading the source in this order would decompress more
// than 4 bytes per byte delivered. Otherwise returns an empty string.
std::string costly_block_reads(const Source& source, const plan::OrderConfig& order);

}  // namespace feedline::pipeline
