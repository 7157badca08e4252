// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/function_rows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.h"
#include "pipeline/fields/field_path.h"
#include "pipeline/fields/row_shape.h"
#include "pipeline/sample/mapping.h"

namespace feedline::pipeline {
namespace {

// A function may retain its arguments, so memory is reused only if there is no other reference to it.
void make_own(std::shared_ptr<memory::ListItem>& item) {
  if (item == nullptr || item.use_count() != 1) item = std::make_shared<memory::ListItem>();
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with the last holder's release
}

Result<void> check(const FunctionValue& value, const FieldSpec& field) {
  const auto of = [&] { return "field '" + field.name + "': "; };
  if (value.content != field.content)
    return data_error(of() + "the function returned a different type than for the first sample", "map");
  if (value.content != Content::kArray) return {};
  return check_row(value.array.spec, field, of() + "the function returned", "map");
}

// is_given: the value can be used without a copy.
Result<void> write_row(const FunctionValue& value, const FieldSpec& field, memory::Row& row, std::uint64_t most_bytes,
                       bool is_given) {
  if (value.absent) {
    if (row.item == nullptr)
      return data_error("field '" + field.name +
                            "': the function returned None, which only a list can hold: use "
                            "collate(\"list\")",
                        "map");
    row.item->clear(true);
    return {};
  }
  FEEDLINE_CHECK_OK(check(value, field));
  std::span<std::byte> room{row.view.data, value.array.spec.bytes()};
  if (row.item != nullptr && is_given && room.size() <= most_bytes) {
    row.item->lend(value.array, value.memory);
    return {};
  }
  if (row.item != nullptr) {
    FEEDLINE_TRY(room, row.item->make_room(value.array.spec.shape, value.array.spec.dtype, most_bytes));
  }
  if (!room.empty()) std::memcpy(room.data(), value.array.data, room.size());
  return {};
}

}  // namespace

FunctionRows::FunctionRows(const Recipe& recipe, std::shared_ptr<FunctionWatch> watch)
    : recipe_(recipe), watch_(std::move(watch)), items_(recipe.mapping->takes.size()), spares_(items_.size()) {}

bool FunctionRows::takes(std::size_t field) const { return recipe_.mapping->schema_indices[field] == Mapping::kTaken; }

std::span<memory::Row> FunctionRows::stored_rows(std::span<memory::Row> rows) {
  const Mapping& mapping = *recipe_.mapping;
  stored_rows_.resize(mapping.schema_indices.size());
  for (std::size_t i = 0; i < stored_rows_.size(); ++i)
    if (!takes(i)) stored_rows_[i] = rows[mapping.schema_indices[i]];
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const FieldSpec& field = recipe_.stored_schema[mapping.takes[i]];
    if (own_[mapping.takes[i]].memory) continue;
    std::swap(items_[i], spares_[i]);
    make_own(items_[i]);
    memory::Row& row = stored_rows_[mapping.takes[i]];
    row = {{nullptr, field.array}, items_[i].get()};
    if (!field.has_variable_size())
      row = {{items_[i]->take(field.array.shape, field.array.dtype).data(), field.array}, nullptr};
  }
  return stored_rows_;
}

FunctionCall FunctionRows::call_of(const base::SampleKey& key) {
  FunctionCall call{.values = {}, .seed = key.seed, .epoch = key.epoch, .draw = key.sample};
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const FieldSpec& field = recipe_.stored_schema[recipe_.mapping->takes[i]];
    if (memory::OwnRow& own = own_[recipe_.mapping->takes[i]]; own.memory) {
      std::byte* const data = own.memory.get();
      call.values.push_back({field.name, field.content, {data, own.array}, false, std::move(own.memory)});
      continue;
    }
    memory::ListItem& item = *items_[i];
    const ArrayView view{item.bytes.resize(item.size).data(), {field.array.dtype, item.shape}};
    call.values.push_back({field.name, field.content, view, item.absent, items_[i]});
  }
  return call;
}

Result<FunctionResult> FunctionRows::call(const base::SampleKey& key, StageMeter& meter) {
  if (watch_ && !watch_->enter()) return std::unexpected(Error{ErrorCode::kCancelled, "the loader is closed", {}, 0});
  const std::uint64_t started = base::now_ns();
  auto made = recipe_.mapping->function->call(call_of(key));
  const std::uint64_t ended = base::now_ns();
  const std::uint64_t waited = made ? std::min(made->waited_ns, ended - started) : 0;
  if (watch_) watch_->leave(ended - started - waited, waited);
  // the thread was not abandoned: rows may be written
  meter.work(telemetry::Stage::kTransform, started + waited, ended);
  return made;
}

Result<void> FunctionRows::fill(const base::SampleKey& key, std::span<memory::Row> rows, std::uint64_t most_bytes,
                                StageMeter& meter) {
  FEEDLINE_TRY(const FunctionResult made, call(key, meter));
  return write(made.values, rows, most_bytes);
}

Result<void> FunctionRows::write(std::span<const FunctionValue> values, std::span<memory::Row> rows,
                                 std::uint64_t most_bytes) const {
  const auto& gives = recipe_.mapping->gives;
  std::size_t written = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto is_it = [&](std::size_t field) { return recipe_.schema[field].name == values[i].name; };
    // usually in the first sample's order
    const auto found = i < gives.size() && is_it(gives[i]) ? gives.begin() + static_cast<std::ptrdiff_t>(i)
                                                           : std::ranges::find_if(gives, is_it);
    if (found == gives.end())
      return data_error(
          "the function returned a field '" + values[i].name + "', which it did not return for the first sample",
          "map");
    FEEDLINE_CHECK_OK(write_row(values[i], recipe_.schema[*found], rows[*found], most_bytes,
                                recipe_.mapping->function->gives_away()));
    ++written;
  }
  if (written == gives.size()) return {};
  for (const std::size_t given : gives)
    if (std::ranges::find(values, recipe_.schema[given].name, &FunctionValue::name) == values.end())
      return data_error(
          "the function did not return the field '" + recipe_.schema[given].name + "', as it did for the first sample",
          "map");
  return data_error("the function returned a field twice", "map");
}

}  // namespace feedline::pipeline
