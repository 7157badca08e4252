// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace feedline::storage {

// What must stay in memory until the kernel, or a thread, is done with it, though its owner has no use for it any more:
// reads that were cancelled, as nobody can stop a disk in the middle of one.
class Lingering {
 public:
  virtual ~Lingering() = default;
  virtual bool is_over() = 0;  // never waits; for one thread at a time
};

// Keeps it, and destroys what is over by now of all that was left. Any thread. What never gets over stays until the
// process ends, which waits for none of it; a child after fork() leaves its parent's alone.
void linger(std::unique_ptr<Lingering> left);
// How much is left, after destroying what is over.
std::size_t lingering();

}  // namespace feedline::storage
