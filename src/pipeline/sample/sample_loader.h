// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "feedline/array.h"
#include "format/pixels/pixel_record.h"
#include "memory/record.h"
#include "pipeline/fields/field_path.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/stage_meter.h"
#include "pipeline/fields/views_path.h"
#include "pipeline/sample/function_rows.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/record_reader.h"
#include "telemetry/stage_counters.h"

namespace feedline::pipeline {

// Loads samples: fetches the record, then each field's path fills its row. Formats fill samples that are stored as
// rows. Holds the scratch memory of one thread and must not be shared.
class SampleLoader {
 public:
  // counters: this thread's, or nullptr to count nothing. Must outlive the loader.
  // reader: of records that may be prefetched; nullptr reads them from the recipe.
  // most_bytes: maximum size of a stored sample, see memory/sample_limit.h.
  // watch: of the thread's calls of the recipe's function, or nullptr.
  SampleLoader(std::shared_ptr<const Recipe> recipe, telemetry::ThreadCounters* counters,
               std::unique_ptr<RecordReader> reader = nullptr, std::uint64_t most_bytes = memory::usual_sample_limit(),
               std::shared_ptr<FunctionWatch> watch = nullptr);

  struct Job {
    std::uint64_t index = 0;
    base::SampleKey key;
    std::span<memory::Row> rows;  // one per field of the schema
    PlanRow plan_row{};           // the sample's position in the plan, if any
    // Empty, or one per field of the stored schema: rows with memory need not be filled.
    std::span<const memory::OwnRow> own = {};
  };
  // Finds the stored rows of sample `index` that need no copy, one per field of the stored schema; the others have no
  // memory. If the recipe has a function: kKept finds those that it does not take, other values those that it takes.
  Result<void> find_own_rows(std::uint64_t index, memory::RowUse use, std::vector<memory::OwnRow>& rows) const;
  // Fills the rows. The result depends only on `key` and the stored bytes of sample `index`. After an error, which
  // includes its location, the rows' contents are unspecified.
  Result<void> load(const Job& job);

  // The same for two samples of a recipe that takes turns, but faster: their JPEGs are decoded in turn. First call
  // begin() for each sample, which reads the sample, then finish_in_turn() with the results, which replaces them with
  // the final results. Both loaders must have the same recipe and thread.
  static bool takes_turns(const Recipe& recipe);
  Result<void> begin(const Job& job);
  static void finish_in_turn(SampleLoader& first, const Job& first_job, SampleLoader& second, const Job& second_job,
                             std::array<Result<void>, 2>& results);

  // The same for an image in memory, encoded or decoded, into the row of an image field.
  Result<void> load_image(const base::SampleKey& key, const memory::Record::Field& stored, memory::Row& row);

  // Fills consecutive rows with samples stored as rows: `first_rows` are the views of the first one.
  Result<void> fill(std::span<const std::uint64_t> samples, std::span<const ArrayView> first_rows);

  // Reads and draws, but does not decode: returns the encoded image and the regions that would be decoded, for the
  // field with views, else for the first image field.
  struct Drawn {
    std::span<const std::byte> encoded;          // valid until the next call; empty if stored as pixels
    std::span<const ViewsPath::Region> regions;  // valid until the next call
  };
  Result<Drawn> draw(const base::SampleKey& key);
  // The same as text.
  Result<std::vector<DrawnValue>> draw_values(const base::SampleKey& key);

 private:
  Result<void> read(std::uint64_t index, const PlanRow& row);
  std::unexpected<Error> located(Error error, std::uint64_t index) const;
  // Fills record_ with a sample: from the cache, prepared for it, or as stored. Returns true if prepared.
  Result<bool> fetch(const Job& job);
  Result<void> prepare(const Job& job);
  Result<void> prepare_field(std::size_t field, const Job& job, FieldWork& work);
  FieldWork work_of(const Job& job, bool is_prepared = false) {
    return {job.key, scratch_, meter_, is_prepared, record_.most_bytes};
  }
  Result<const memory::Record::Field*> drawn_image(const base::SampleKey& key);
  Result<const transform::Drawing*> draw_image(const memory::Record::Field& field, const base::SampleKey& key);
  std::size_t drawn_field() const;
  const memory::Record::Field& image() const { return record_.fields[recipe_->image_field]; }
  Result<void> fill_fields(const Job& job, bool is_prepared);
  Result<void> fill_field(std::size_t field, const Job& job, std::span<memory::Row> stored_rows, FieldWork& work);
  Result<void> draw_boxes(FieldWork& work, std::uint64_t index);
  Result<void> fill_all_but_image(const Job& job, std::span<memory::Row> stored_rows, FieldWork& work);
  // The destination of a job's stored fields, those that need no copy, and the steps after all are filled.
  Result<std::span<memory::Row>> stored_rows_of(const Job& job);
  std::span<const memory::OwnRow> own_rows_of(const Job& job) const;
  Result<void> finish_fields(const Job& job);
  Result<void> finish_image(const Job& job, transform::Workspace& workspace);
  Error named(Error error, std::size_t field, std::uint64_t index) const;

  std::shared_ptr<const Recipe> recipe_;
  const std::unique_ptr<RecordReader> reader_;
  StageMeter meter_;
  memory::Record record_;
  format::PixelRecordBuilder prepared_;
  FieldScratch scratch_;
  std::vector<ArrayView> views_;  // of one sample's rows
  std::vector<ViewsPath::Region> regions_;
  std::optional<FunctionRows> function_;  // nullopt: the recipe has none
};

}  // namespace feedline::pipeline
