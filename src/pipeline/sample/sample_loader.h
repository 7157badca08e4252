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
#include "format/format.h"
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

class ClipReader;

// Loads samples: reads the record, and then each field's path fills its row. For formats that store samples as rows,
// the format fills the rows. Contains the scratch memory of one thread and must not be shared.
class SampleLoader {
 public:
  // counters: the thread's counters, which must outlive the loader, or nullptr to count nothing. reader: reads records
  // that may be prefetched; nullptr to read them from the recipe's format. most_bytes: the maximum size of a stored
  // sample (see memory/sample_limit.h). watch: tracks the thread's calls to the recipe's function, or nullptr.
  // decoders: bounds the memory of the loader's video decoders, or nullptr. clips: the read-ahead of clips, or nullptr.
  SampleLoader(std::shared_ptr<const Recipe> recipe, telemetry::ThreadCounters* counters,
               std::unique_ptr<RecordReader> reader = nullptr, std::uint64_t most_bytes = memory::usual_sample_limit(),
               std::shared_ptr<FunctionWatch> watch = nullptr, std::shared_ptr<VideoDecoders> decoders = nullptr,
               ClipReader* clips = nullptr);

  struct Job {
    std::uint64_t index = 0;
    base::SampleKey key;
    std::span<memory::Row> rows;  // one per field of the schema
    PlanRow plan_row{};           // the sample's position in the plan, if any
    // Empty, or one per field of the stored schema: fields whose row has memory need not be filled.
    std::span<const memory::OwnRow> own = {};
  };
  // Finds the stored rows of sample `index` that need not be copied, one per field of the stored schema; rows of other
  // fields have no memory. If the recipe has a function, kKept finds rows of fields that are not its arguments, and
  // other values find rows of fields that are.
  Result<void> find_own_rows(std::uint64_t index, memory::RowUse use, std::vector<memory::OwnRow>& rows) const;
  // Fills the rows. The result depends only on `key` and the stored bytes of sample `index`. After an error, which
  // includes the location, the contents of the rows are unspecified.
  Result<void> load(const Job& job);

  // Like load(), for two samples at once, which is faster because their JPEGs are decoded alternately. takes_turns()
  // returns whether the recipe supports this. First call begin() for each sample, which reads the sample. Then call
  // finish_in_turn() with the two results, which it replaces with the final results. Both loaders must have the same
  // recipe and run on the same thread.
  static bool takes_turns(const Recipe& recipe);
  Result<void> begin(const Job& job);
  static void finish_in_turn(SampleLoader& first, const Job& first_job, SampleLoader& second, const Job& second_job,
                             std::array<Result<void>, 2>& results);

  // Like load(), for an encoded or decoded image in memory; writes to the row of an image field.
  Result<void> load_image(const base::SampleKey& key, const memory::Record::Field& stored, memory::Row& row);

  // Fills consecutive rows, for samples that are stored as rows or whose numbers are gathered. first_rows: the views of
  // the first row.
  Result<void> fill(std::span<const std::uint64_t> samples, std::span<const ArrayView> first_rows);

  // Reads and draws without decoding: returns the encoded image and the regions that would be decoded, for the field
  // with views or else the first image field.
  struct Drawn {
    std::span<const std::byte> encoded;          // valid until the next call; empty if stored as pixels
    std::span<const ViewsPath::Region> regions;  // valid until the next call
  };
  Result<Drawn> draw(const base::SampleKey& key);
  // Returns the drawn values as text.
  Result<std::vector<DrawnValue>> draw_values(const base::SampleKey& key);

 private:
  Result<void> read(const Job& job);
  // Reads the whole sample and fills its fields, after decoding a part of the image has failed.
  Result<void> fill_whole(const Job& job);
  std::unexpected<Error> located(Error error, std::uint64_t index) const;
  // Reads a sample into record_, prepared from the cache, or as stored. Returns true if the sample is prepared.
  Result<bool> fetch(const Job& job);
  Result<void> prepare(const Job& job);
  Result<void> prepare_field(std::size_t field, const Job& job, FieldWork& work);
  FieldWork work_of(const Job& job, bool is_prepared = false) {
    return {job.key, scratch_, meter_, is_prepared, record_.most_bytes, &record_};
  }
  Result<const memory::Record::Field*> drawn_image(const base::SampleKey& key);
  Result<const transform::Drawing*> draw_image(const memory::Record::Field& field, const base::SampleKey& key);
  Result<std::vector<DrawnValue>> draw_deep_values(const base::SampleKey& key);
  std::size_t drawn_field() const;
  const memory::Record::Field& image() const { return record_.fields[recipe_->image_field]; }
  Result<void> fill_fields(const Job& job, bool is_prepared);
  Result<void> fill_field(std::size_t field, const Job& job, std::span<memory::Row> stored_rows, FieldWork& work);
  Result<void> draw_boxes(FieldWork& work, std::uint64_t index);
  Result<void> fill_all_but_image(const Job& job, std::span<memory::Row> stored_rows, FieldWork& work);
  // The destinations of a job's stored fields, the rows that need not be copied, and the steps after all fields are
  // filled.
  Result<std::span<memory::Row>> stored_rows_of(const Job& job);
  std::span<const memory::OwnRow> own_rows_of(const Job& job) const;
  Result<void> finish_fields(const Job& job);
  Result<void> finish_image(const Job& job, transform::Workspace& workspace);
  Error named(Error error, std::size_t field, std::uint64_t index) const;

  std::shared_ptr<const Recipe> recipe_;
  const std::unique_ptr<RecordReader> reader_;
  ClipReader* const clips_;
  StageMeter meter_;
  memory::Record record_;
  format::PixelRecordBuilder prepared_;
  FieldScratch scratch_;
  std::vector<ArrayView> views_;  // of one sample's rows
  std::vector<format::SampleRow> gathered_;
  std::vector<ViewsPath::Region> regions_;
  std::optional<FunctionRows> function_;  // nullopt: the recipe has none
};

}  // namespace feedline::pipeline
