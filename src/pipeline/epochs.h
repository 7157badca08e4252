// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "pipeline/epoch.h"

namespace feedline::pipeline {

// Rows to fill, and the epoch that they are of.
struct Task {
  Ticket ticket;
  std::uint64_t epoch = 0;
  std::uint64_t run = 0;  // of the Epoch: an abandoned one and its successor may have the same number
};

// Epochs that are given up: for their caller to destroy where it holds no lock, as that gives memory back.
struct DroppedEpochs {
  std::unique_ptr<Epoch> current, following;
  std::size_t open_slots() const {
    return (current ? current->open_slots() : 0) + (following ? following->open_slots() : 0);
  }
  std::uint64_t late_bytes() const {
    return (current ? current->late_bytes() : 0) + (following ? following->late_bytes() : 0);
  }
};

// The epoch that is delivered, and the one after it, whose first batches are filled once the last ones of the former
// need no thread any more: at the border nobody waits. Not thread-safe: the pipeline calls it under its lock.
class Epochs {
 public:
  // Goes on with `epoch`, or with what was prepared of it, and drops whatever else there is. following: nullptr, or
  // what comes next.
  DroppedEpochs begin(std::unique_ptr<Epoch> epoch, std::unique_ptr<Epoch> following);
  // Gives up what is prepared, where that is what would be opened. nullopt: the current epoch would.
  std::optional<DroppedEpochs> drop_following();
  DroppedEpochs clear();

  Epoch* current() const { return current_.epoch.get(); }
  // nullopt: no row is left in the open batches; open() another where one is planned.
  std::optional<Task> take_task();
  bool has_refill() const;
  // Which epoch a batch would be claimed of, as in Task::run; 0: none has another one.
  std::uint64_t claiming_run() const;
  void claim(const std::shared_ptr<Slot>& slot);  // Requires: can_open(); see Epoch::claim()
  // See Epoch::rows_follow().
  bool rows_follow() const;
  // The epoch of a task; nullptr: it was abandoned.
  Epoch* epoch_of(const Task& task) const;
  // Could more be opened if there were room?
  bool can_open() const;
  std::size_t open_slots() const;
  std::uint64_t late_bytes() const;

 private:
  struct Running {
    std::unique_ptr<Epoch> epoch;
    std::uint64_t run = 0;
  };
  // Of the two, the one whose turn it is to open a batch; nullptr: neither.
  const Running* claiming() const;

  Running current_;
  Running following_;
  std::uint64_t runs_ = 0;
};

}  // namespace feedline::pipeline
