// SPDX-License-Identifier: Apache-2.0
#pragma once

// Orders of epochs that repeat or omit some samples.
//
//   by weight     position -> the first sample whose cumulative weight exceeds a random number of (seed, epoch,
//                 position): O(log n) for any position
//   undersample   position -> a class, and a position in a permutation of that class: constant time
//   in order      position -> a given index

#include <cstdint>
#include <memory>

#include "feedline/sampling.h"
#include "plan/order.h"

namespace feedline::plan {

std::shared_ptr<const Order> make_sampled_order(const std::shared_ptr<const Sampling>& sampling, std::uint64_t seed,
                                                std::uint64_t epoch);

}  // namespace feedline::plan
