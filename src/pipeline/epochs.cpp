// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epochs.h"

#include "base/check.h"

namespace feedline::pipeline {

void Epochs::begin(std::unique_ptr<Epoch> epoch, std::unique_ptr<Epoch> following) {
  const bool prepared = following_.epoch && following_.epoch->delivers_as(*epoch);
  current_ = prepared ? std::move(following_) : Running{std::move(epoch), ++runs_};
  following_ = Running{std::move(following), ++runs_};
}

bool Epochs::drop_following() {
  if (current_.epoch && current_.epoch->can_open()) return false;
  following_.epoch.reset();
  return true;
}

void Epochs::clear() {
  current_.epoch.reset();
  following_.epoch.reset();
}

Epoch* Epochs::opening() const {
  if (!current_.epoch) return nullptr;
  if (current_.epoch->can_open()) return current_.epoch.get();
  return following_.epoch && following_.epoch->can_open() ? following_.epoch.get() : nullptr;
}

bool Epochs::can_open() const { return opening() != nullptr; }

Slot& Epochs::open(std::shared_ptr<memory::Lease> lease) {
  Epoch* epoch = opening();
  FEEDLINE_CHECK(epoch != nullptr);
  return epoch->open(std::move(lease));
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

}  // namespace feedline::pipeline
