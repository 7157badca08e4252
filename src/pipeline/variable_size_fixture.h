// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: batches of dense, padded and list fields that any number of threads fill, as worker processes do.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/batch_scheduler.h"
#include "pipeline/fake_device.h"
#include "pipeline/fake_format.h"

namespace feedline::pipeline {

// The number of words and boxes of sample i depends on i; samples whose number is a multiple of seven have no boxes.
// Each sample has an image of a different size.
class VariableSizeSamples {
 public:
  std::set<std::uint64_t> bad;
  std::function<void(std::uint64_t)> before_row = [](std::uint64_t) {};
  std::function<std::uint64_t(std::uint64_t)> words = [](std::uint64_t sample) { return sample * 31 % 17; };

  // The image and label of a FakeFormat with this many samples, followed by the variable-size fields.
  static std::shared_ptr<const Recipe> recipe(std::uint64_t size, bool with_dense = true) {
    auto made = make_recipe({"fake", std::make_shared<FakeFormat>(size)}, {op::CenterCrop{{4, 4}}}, std::nullopt,
                            Layout::kNchw);
    EXPECT_TRUE(made) << made.error().message();
    auto recipe = std::make_shared<Recipe>(**made);
    if (!with_dense) recipe->schema.clear();
    recipe->schema.push_back({"text", {DType::kUint8, {kAnyLength}}, BatchForm::kList, Content::kText});
    recipe->schema.push_back(
        {"boxes", {DType::kFloat32, {kAnyLength, 4}}, BatchForm::kPadded, Content::kArray, element_of(-1.f)});
    recipe->schema.push_back({"picture", {DType::kUint8, {kAnyLength, kAnyLength, 3}}, BatchForm::kList});
    return recipe;
  }

  // Returns false for a bad sample, after half of the row was written.
  bool fill(std::uint64_t sample, std::span<const memory::Row> rows) const {
    before_row(sample);
    std::size_t next = 0;
    for (; rows[next].item == nullptr; ++next)
      std::memset(rows[next].view.data, static_cast<int>(sample % 251), rows[next].view.spec.bytes());
    std::array<char, 24> word{};  // no std::string: a test counts allocations
    const auto length = static_cast<std::size_t>(std::snprintf(word.data(), word.size(), "%lu ", sample));
    const auto text = rows[next].item->take({static_cast<std::int64_t>(words(sample) * length)}, DType::kUint8);
    for (std::size_t at = 0; at < text.size(); at += length) std::memcpy(text.data() + at, word.data(), length);
    if (bad.contains(sample)) return false;
    fill_boxes(sample, *rows[next + 1].item);
    const auto side = static_cast<std::int64_t>(1 + sample % 5);
    const auto pixels = rows[next + 2].item->make_room({side, side + 1, 3}, DType::kUint8, 1 << 20);
    EXPECT_TRUE(pixels);
    std::memset(pixels->data(), static_cast<int>(sample % 256), pixels->size());
    return true;
  }

 private:
  static void fill_boxes(std::uint64_t sample, memory::ListItem& item) {
    if (sample % 7 == 0) return item.clear(true);
    const auto boxes = item.take({static_cast<std::int64_t>(sample % 6), 4}, DType::kFloat32);
    for (std::size_t at = 0; at + 4 <= boxes.size(); at += 4) {
      const auto value = static_cast<float>(sample) + static_cast<float>(at);
      std::memcpy(boxes.data() + at, &value, sizeof value);
    }
  }
};

// Returns the content of a batch as text, which is equal if and only if the bytes are equal.
inline std::string contents_of(const Batch& batch) {
  std::string text = "batch " + std::to_string(batch.index()) + ":";
  for (const std::uint64_t sample : batch.samples()) text += " " + std::to_string(sample);
  const auto add = [&text](std::string_view what, const void* data, std::size_t bytes) {
    text.append("\n").append(what).append(": ").append(static_cast<const char*>(data), bytes);
  };
  for (const BatchField& field : batch.fields()) {
    text += "\n" + std::string(field.name) + " " + field.array.spec.shape.to_string();
    if (field.array.data != nullptr) add("array", field.array.data, field.array.spec.bytes());
    if (field.form == BatchForm::kPadded) add("lengths", field.lengths.data, field.lengths.spec.bytes());
    add("absent", field.absent.data(), field.absent.size());
    if (field.form != BatchForm::kList) continue;
    add("buffer", field.buffer.data(), field.buffer.size());
    add("offsets", field.offsets.data(), field.offsets.size_bytes());
    for (const Shape& shape : field.shapes) text += " " + shape.to_string();
  }
  for (const BadRow& bad : batch.bad()) text += "\nbad " + std::to_string(bad.row);
  return text;
}

// A scheduler with threads that fill rows with VariableSizeSamples.
class VariableSizeRun {
 public:
  VariableSizeRun(std::shared_ptr<const Recipe> recipe, const LoaderOptions& options, VariableSizeSamples samples,
                  std::shared_ptr<device::Device> device = std::make_shared<FakeDevice>())
      : recipe_(std::move(recipe)),
        samples_(std::move(samples)),
        policy_(options.on_error, options.error_budget),
        counters_(static_cast<std::size_t>(options.num_workers) + 1),
        progress_(static_cast<std::size_t>(options.num_workers)) {
    auto plan = plan_pipeline(*recipe_, options);
    EXPECT_TRUE(plan) << plan.error().message();
    plan_ = *plan;
    scheduler_ = std::make_unique<BatchScheduler>(
        BatchScheduler::Parts{*recipe_, plan_, policy_, counters_, progress_, nullptr, std::move(device)});
    for (std::size_t worker = 0; worker < progress_.size(); ++worker)
      threads_.emplace_back([this, worker] { work(worker); });
  }
  ~VariableSizeRun() {
    scheduler_->stop();
    for (std::thread& thread : threads_) thread.join();
    scheduler_->clear();
  }

  void begin(std::uint64_t epoch = 0, bool prepare_next = false) {
    EXPECT_TRUE(scheduler_->begin({.epoch = epoch}, make_epoch(epoch), prepare_next ? make_epoch(epoch + 1) : nullptr));
  }
  // Returns the next batch after its arrival, or nullopt at the end of the epoch.
  Result<std::optional<Batch>> next() {
    while (true) {
      Batch batch;
      FEEDLINE_TRY(const auto polled, scheduler_->poll(std::chrono::seconds(200), batch));
      if (polled == Loader::Polled::kEnd) return std::nullopt;
      if (polled == Loader::Polled::kPending) continue;
      FEEDLINE_CHECK_OK(batch.wait());
      return batch;
    }
  }
  // Returns the epoch's batches, or their errors, as text.
  std::vector<std::string> epoch(std::uint64_t number = 0) {
    std::vector<std::string> batches;
    begin(number);
    while (true) {
      const auto batch = next();
      if (batch && !*batch) return batches;
      batches.push_back(batch ? contents_of(**batch) : batch.error().what);
    }
  }
  BatchScheduler& scheduler() { return *scheduler_; }
  const PipelinePlan& plan() const { return plan_; }
  LoaderStats stats() const {
    LoaderStats stats;
    scheduler_->add_to(stats);
    return stats;
  }

 private:
  std::unique_ptr<Epoch> make_epoch(std::uint64_t number) const {
    Epoch::Config config;
    config.epoch = number;
    config.order = plan::make_order(plan_.order, number);
    config.plan = cut_of(plan_);
    config.in_order = plan_.in_order;
    config.prepares = scheduler_->prepares();
    return std::make_unique<Epoch>(config, policy_);
  }
  void work(std::size_t worker) {
    Task task;
    bool finished = false;
    std::vector<memory::Row> rows;
    std::vector<RowFiller::Noted> noted;
    while (scheduler_->next(worker, task, finished)) {
      std::uint64_t filled = 0;
      do {
        task.ticket.assign_samples();
        fill_row(task, rows, noted);
        ++filled;
      } while (!scheduler_->must_return(worker) && task.ticket.advance());
      finished = task.ticket.slot->tickets.finish(filled);
    }
  }
  void fill_row(const Task& task, std::vector<memory::Row>& rows, std::vector<RowFiller::Noted>& noted) {
    Slot& slot = *task.ticket.slot;
    const std::uint64_t row = task.ticket.row, size = recipe_->format->size();
    noted.clear();
    slot.rows_at(row, rows);
    std::uint64_t sample = slot.samples[row];
    if (!samples_.fill(sample, rows)) {
      const Error error{ErrorCode::kData, "bad", {}, 0};
      Outcome outcome{sample, {{row, {error, task.epoch, 0, sample}}}, {}};
      if (policy_.on_error() == OnError::kReplace) {
        outcome.replaced.swap(outcome.failed);
        while (samples_.bad.contains(sample)) sample = (sample + 1) % size;
        slot.rows_at(row, rows);
        EXPECT_TRUE(samples_.fill(sample, rows));
        outcome.sample = sample;
      }
      noted.push_back({row, std::move(outcome)});
    }
    scheduler_->note(task, noted);
  }

  const std::shared_ptr<const Recipe> recipe_;
  const VariableSizeSamples samples_;
  const BadSamplePolicy policy_;
  PipelinePlan plan_;
  std::vector<telemetry::ThreadCounters> counters_;
  std::vector<Progress> progress_;
  std::unique_ptr<BatchScheduler> scheduler_;
  std::vector<std::thread> threads_;
};

}  // namespace feedline::pipeline
