// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/epochs.h"

#include "base/check.h"

namespace feedline::pipeline {

DroppedEpochs Epochs::begin(std::unique_ptr<Epoch> epoch, std::unique_ptr<Epoch> following) {
  const bool prepared = following_.epoch && following_.epoch->delivers_as(*epoch);
  Running next = prepared ? std::move(following_) : Running{std::move(epoch), ++runs_};
  DroppedEpochs dropped{std::move(current_.epoch), std::move(following_.epoch)};
  current_ = std::move(next);
  following_ = Running{std::move(following), ++runs_};
  return dropped;
}

std::optional<DroppedEpochs> Epochs::drop_following() {
  if (current_.epoch && current_.epoch->can_open()) return std::nullopt;
  return DroppedEpochs{nullptr, std::move(following_.epoch)};
}

DroppedEpochs Epochs::clear() { return {std::move(current_.epoch), std::move(following_.epoch)}; }

const Epochs::Running* Epochs::claiming() const {
  if (!current_.epoch) return nullptr;
  if (current_.epoch->can_open()) return &current_;
  return following_.epoch && following_.epoch->can_open() ? &following_ : nullptr;
}

bool Epochs::can_open() const { return claiming() != nullptr; }

std::uint64_t Epochs::claiming_run() const {
  const Running* running = claiming();
  return running == nullptr ? 0 : running->run;
}

void Epochs::claim(const std::shared_ptr<Slot>& slot) {
  const Running* running = claiming();
  FEEDLINE_CHECK(running != nullptr);
  running->epoch->claim(slot);
}

bool Epochs::rows_follow() const {
  return (current_.epoch && current_.epoch->rows_follow()) || (following_.epoch && following_.epoch->rows_follow());
}

std::optional<Task> Epochs::take_task() {
  for (const Running* running : {&current_, &following_}) {
    if (!running->epoch) continue;
    if (auto ticket = running->epoch->take_ticket())
      return Task{std::move(*ticket), running->epoch->epoch(), running->run};
  }
  return std::nullopt;
}

bool Epochs::has_refill() const {
  return (current_.epoch && current_.epoch->has_refill()) || (following_.epoch && following_.epoch->has_refill());
}

Epoch* Epochs::epoch_of(const Task& task) const {
  if (current_.epoch && task.run == current_.run) return current_.epoch.get();
  return following_.epoch && task.run == following_.run ? following_.epoch.get() : nullptr;
}

std::size_t Epochs::open_slots() const {
  return (current_.epoch ? current_.epoch->open_slots() : 0) + (following_.epoch ? following_.epoch->open_slots() : 0);
}

std::uint64_t Epochs::variable_bytes() const {
  return (current_.epoch ? current_.epoch->variable_bytes() : 0) +
         (following_.epoch ? following_.epoch->variable_bytes() : 0);
}

}  // namespace feedline::pipeline
