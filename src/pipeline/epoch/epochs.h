// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "pipeline/epoch/epoch.h"

namespace feedline::pipeline {

// Rows to fill, and the epoch that they belong to.
struct Task {
  Ticket ticket;
  std::uint64_t epoch = 0;
  std::uint64_t run = 0;  // identifies the Epoch: an abandoned one and its successor may have the same number
};

// Abandoned epochs. The caller destroys these epochs outside the lock, because that frees memory.
struct DroppedEpochs {
  std::unique_ptr<Epoch> current, following;
  std::size_t open_slots() const {
    return (current ? current->open_slots() : 0) + (following ? following->open_slots() : 0);
  }
  std::uint64_t variable_bytes() const {
    return (current ? current->variable_bytes() : 0) + (following ? following->variable_bytes() : 0);
  }
};

// The current epoch and the next one. Batches of the next epoch are filled when the current one has no more rows for
// threads, so the epoch boundary causes no stall. Not thread-safe: called under the pipeline's lock.
class Epochs {
 public:
  // Starts `epoch`, or continues its prefetched part, and drops everything else. following: the epoch to prepare next,
  // or nullptr.
  DroppedEpochs begin(std::unique_ptr<Epoch> epoch, std::unique_ptr<Epoch> following);
  // Drops the prepared epoch if the next batch would be opened in it; returns nullopt if it would be opened in the
  // current epoch.
  std::optional<DroppedEpochs> drop_following();
  DroppedEpochs clear();

  Epoch* current() const { return current_.epoch.get(); }
  // Returns nullopt if the open batches have no rows left; the caller should then open() another batch, if there is
  // one.
  std::optional<Task> take_task();
  bool has_refill() const;
  // Returns the number of the epoch (Task::run) whose batch would be claimed next; 0 if there is none.
  std::uint64_t claiming_run() const;
  void claim(const std::shared_ptr<Slot>& slot);  // Requires: can_open(); see Epoch::claim()
  // See Epoch::rows_follow().
  bool rows_follow() const;
  // Returns the epoch of a task, or nullptr if it was abandoned.
  Epoch* epoch_of(const Task& task) const;
  // Returns whether another batch could be opened if there were room.
  bool can_open() const;
  std::size_t open_slots() const;
  std::uint64_t variable_bytes() const;

 private:
  struct Running {
    std::unique_ptr<Epoch> epoch;
    std::uint64_t run = 0;
  };
  // Returns the epoch that would open the next batch, or nullptr if neither would.
  const Running* claiming() const;

  Running current_;
  Running following_;
  std::uint64_t runs_ = 0;
};

}  // namespace feedline::pipeline
