// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slot.h"

#include <span>

namespace feedline::pipeline {

std::shared_ptr<Slot> Slot::make(std::uint64_t rows, bool prepares) {
  auto slot = std::make_shared<Slot>();
  slot->samples.resize(rows);
  slot->draws.resize(rows);
  slot->place_in_epoch.emplace_back();
  if (!prepares) return slot;
  slot->prepared = std::make_unique<Prepared>();
  slot->prepared->slot = slot;
  return slot;
}

void Slot::place() {
  for (const auto& rows_given : given)
    for (std::size_t row = 0; row < rows_given.size(); ++row) {
      samples[row] = rows_given[row].index;
      draws[row] = rows_given[row].draw;
    }
  given.clear();
  if (is_placed && plan) plan->place(first, samples, draws);
}

void Ticket::place() const {
  if (is_refill || slot->is_placed) return;
  const auto rows_of = [this](std::vector<std::uint64_t>& all) { return std::span(all).subspan(row, rows); };
  slot->plan->place(slot->first + row, rows_of(slot->samples), rows_of(slot->draws));
}

bool Ticket::advance() {
  const RowRun run = slot->tickets.take(slot->grain);
  row = run.first;
  rows = run.rows;
  is_refill = false;
  return rows > 0;
}

}  // namespace feedline::pipeline
