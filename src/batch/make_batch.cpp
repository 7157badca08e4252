// SPDX-License-Identifier: Apache-2.0
#include "batch/make_batch.h"

#include <algorithm>
#include <utility>

namespace feedline {

// Has access to Batch's private members.
class BatchAccess {
 public:
  static Batch make(std::vector<BatchField> fields, std::vector<std::uint64_t> samples, std::uint64_t index,
                    std::shared_ptr<batch::Parts> memory, std::vector<BadRow> bad) {
    Batch batch;
    batch.fields_ = std::move(fields);
    batch.samples_ = std::move(samples);
    batch.index_ = index;
    batch.bad_ = std::move(bad);
    batch.device_ = memory->device;
    batch.ready_ = memory->ready;
    batch.memory_ = std::move(memory);
    return batch;
  }
};

bool Batch::is_ready() const {
  return std::ranges::all_of(ready_, [](const auto& ready) { return !ready || ready->is_ready(); });
}

Result<void> Batch::wait() const {
  for (const auto& ready : ready_)
    if (ready) FEEDLINE_CHECK_OK(ready->wait());
  return {};
}

Result<void> Batch::let_wait(std::uintptr_t stream) const {
  for (const auto& ready : ready_)
    if (ready) FEEDLINE_CHECK_OK(ready->let_wait(stream));
  return {};
}

}  // namespace feedline

namespace feedline::batch {

Batch make_batch(Parts parts, std::uint64_t index, std::vector<std::uint64_t> samples, std::vector<BadRow> bad) {
  auto held = std::make_shared<Parts>(std::move(parts));
  const Schema& schema = held->layout->schema();
  std::vector<BatchField> fields;
  fields.reserve(schema.size());
  std::size_t variable = 0;
  for (std::size_t i = 0; i < schema.size(); ++i) {
    if (schema[i].has_variable_size())
      fields.push_back(held->composed.field(variable++, schema[i]));
    else
      fields.push_back({.name = schema[i].name,
                        .array = held->layout->field_view(held->lease->data(), i, samples.size()),
                        .content = schema[i].content});
  }
  return BatchAccess::make(std::move(fields), std::move(samples), index, std::move(held), std::move(bad));
}

}  // namespace feedline::batch
