// SPDX-License-Identifier: Apache-2.0
#include "format/episodes/episode_format.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "format/arrays/named_arrays.h"
#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/rows/text_cells.h"
#include "format/shards/finding.h"
#include "memory/number.h"
#include "storage/registry.h"

namespace feedline::format {
namespace {

using Steps = std::span<const std::int64_t>;

constexpr std::int64_t kOwnRow = 0;

Steps steps_in(const EpisodeSteps& steps) { return steps ? Steps(*steps) : Steps(&kOwnRow, 1); }

Shape axes_of(const EpisodeSteps& steps) { return steps ? Shape{static_cast<std::int64_t>(steps->size())} : Shape(); }

const std::string& name_of_column(const EpisodeColumn& column) {
  return std::visit(
      [](const auto& one) -> const std::string& {
        if constexpr (requires { one.array; })
          return one.array.name;
        else
          return one.name;
      },
      column);
}

bool is_integer(DType dtype) {
  return dtype != DType::kFloat16 && dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kBfloat16;
}

template <typename Number>
Number number_at(const NamedArray& array, std::uint64_t row) {
  return memory::with_number(array.row.dtype, row_of(array, row).bytes, [](auto number) {
    if constexpr (std::is_arithmetic_v<decltype(number)>) return static_cast<Number>(number);
    return Number{};  // open() accepts no half floats here
  });
}

FieldDescription frames_field(const std::string& name, const EpisodeSteps& steps, std::optional<Size> size,
                              double tolerance) {
  return {.name = name,
          .kind = FieldKind::kVideo,
          .frames = std::make_shared<const ChosenByFormat>(ChosenByFormat{axes_of(steps), size, tolerance})};
}

// Returns the field of a column, after checking the column.
struct MakeField {
  std::uint64_t rows;
  std::size_t episodes;

  Result<void> check_rows(const std::string& name, std::uint64_t given, std::uint64_t wanted,
                          const std::string& of = "rows") const {
    if (given == wanted) return {};
    return config_error("the field '" + name + "' has " + std::to_string(given) + " " + of + ", not " +
                        std::to_string(wanted));
  }
  Result<FieldDescription> operator()(const EpisodeNumbers& column) const {
    const NamedArray& array = column.array;
    FEEDLINE_CHECK_OK(check_rows(array.name, array.rows, rows));
    const auto kind = field_kind_of(array.kind);
    if (kind == FieldKind::kInteger && array.row.shape.dims() == 0 && !column.steps && is_integer(array.row.dtype))
      return FieldDescription{.name = array.name, .kind = FieldKind::kInteger};
    if (kind != FieldKind::kArray || !array.offsets.empty())
      return config_error("the field '" + array.name + "' must be an array, or one integer for each row");
    ArraySpec spec = array.row;
    if (column.steps) spec.shape = spec.shape.with_front(static_cast<std::int64_t>(column.steps->size()));
    return FieldDescription{.name = array.name, .kind = FieldKind::kArray, .array = spec};
  }
  Result<FieldDescription> operator()(const EpisodePads& column) const {
    return FieldDescription{.name = column.name,
                            .kind = FieldKind::kArray,
                            .array = {DType::kBool, {static_cast<std::int64_t>(column.steps.size())}}};
  }
  Result<FieldDescription> operator()(const EpisodeTexts& column) const {
    FEEDLINE_CHECK_OK(check(*column.cells));
    if (column.cell_of_row.rows == 0) {
      FEEDLINE_CHECK_OK(check_rows(column.name, column.cells->rows, rows));
    } else {
      FEEDLINE_CHECK_OK(check_rows(column.name, column.cell_of_row.rows, rows));
      if (!is_integer(column.cell_of_row.row.dtype) || column.cell_of_row.row.shape.dims() != 0)
        return config_error("the numbers of the texts of '" + column.name + "' must be one integer for each row");
      for (std::uint64_t row = 0; row < rows; ++row)
        if (number_at<std::uint64_t>(column.cell_of_row, row) >= column.cells->rows)
          return config_error("row " + std::to_string(row) + " of the field '" + column.name + "' has text " +
                              std::to_string(number_at<std::int64_t>(column.cell_of_row, row)) + ", but there are " +
                              std::to_string(column.cells->rows) + " texts");
    }
    return FieldDescription{.name = column.name, .kind = FieldKind::kText};
  }
  Result<FieldDescription> operator()(const EpisodeVideos& column) const {
    FEEDLINE_CHECK_OK(check(*column.paths));
    FEEDLINE_CHECK_OK(check_rows(column.name, column.paths->rows, episodes, "paths"));
    FEEDLINE_CHECK_OK(check_rows(column.name, column.begins.size(), episodes, "start times"));
    FEEDLINE_CHECK_OK(check_rows(column.name, column.times.rows, rows, "times"));
    const DType dtype = column.times.row.dtype;
    if ((dtype != DType::kFloat32 && dtype != DType::kFloat64) || column.times.row.shape.dims() != 0 ||
        !(column.tolerance > 0))
      return config_error("the times of '" + column.name +
                          "' must be one float for each row, with a tolerance above 0");
    return frames_field(column.name, column.steps, column.size, column.tolerance);
  }
  Result<FieldDescription> operator()(const EpisodeImages& column) const {
    return frames_field(column.name, column.steps, column.size, 0);
  }
};

}  // namespace

Result<std::shared_ptr<const RecordFormat>> EpisodeFormat::open(EpisodeOptions options,
                                                                std::vector<std::shared_ptr<const RecordFormat>> images,
                                                                const Wrap& wrap) {
  if (options.columns.empty()) return config_error("a dataset of episodes needs at least one column");
  if (options.ends.empty() || options.ends.back() <= 0) return config_error("the dataset has no episodes");
  for (std::int64_t before = 0; const std::int64_t end : options.ends)
    if (std::exchange(before, end) > end) return config_error("the ends of the episodes do not ascend");
  std::vector<FieldDescription> fields;
  std::vector<Stored> stored;
  std::set<std::string> names;
  std::size_t next = 0;
  for (const EpisodeColumn& column : options.columns) {
    FEEDLINE_TRY(FieldDescription field,
                 std::visit(MakeField{static_cast<std::uint64_t>(options.ends.back()), options.ends.size()}, column));
    if (!names.insert(field.name).second) return config_error("two fields are called '" + field.name + "'");
    stored.emplace_back();
    if (const auto* const of = std::get_if<EpisodeImages>(&column)) {
      stored.back().format = images[next++];
      if (stored.back().format->size() != static_cast<std::uint64_t>(options.ends.back()))
        return config_error("the field '" + field.name + "' has " + std::to_string(stored.back().format->size()) +
                            " images, not " + std::to_string(options.ends.back()));
      const auto& there = stored.back().format->fields();
      const auto found = std::ranges::find(there, of->field, &FieldDescription::name);
      if (found == there.end()) return config_error("the images have no field '" + of->field + "'");
      stored.back().field = static_cast<std::size_t>(found - there.begin());
    }
    fields.push_back(std::move(field));
  }
  std::shared_ptr<EpisodeFormat> format(new EpisodeFormat(std::move(options), std::move(fields), std::move(stored)));
  FEEDLINE_TRY(auto location, storage::open(format->options_.source));
  FEEDLINE_TRY(format->storage_, wrap(std::move(location.storage)));
  format->folder_ = std::move(location.object);
  while (format->folder_.size() > 1 && format->folder_.ends_with('/')) format->folder_.pop_back();
  return format;
}

EpisodeFormat::EpisodeFormat(EpisodeOptions options, std::vector<FieldDescription> fields, std::vector<Stored> stored)
    : options_(std::move(options)),
      fields_(std::move(fields)),
      stored_(std::move(stored)),
      fingerprint_(make_fingerprint()) {}

std::uint64_t EpisodeFormat::make_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(options_.format);
  for (const std::int64_t end : options_.ends) fingerprint.add(static_cast<std::uint64_t>(end));
  std::string room;
  for (const EpisodeColumn& column : options_.columns) {
    fingerprint.add(name_of_column(column));
    std::visit(
        [&](const auto& one) {
          using Column = std::decay_t<decltype(one)>;
          if constexpr (std::is_same_v<Column, EpisodePads>)
            for (const std::int64_t step : one.steps) fingerprint.add(static_cast<std::uint64_t>(step));
          if constexpr (requires { one.steps.has_value(); })
            for (const std::int64_t step : steps_in(one.steps)) fingerprint.add(static_cast<std::uint64_t>(step));
          if constexpr (std::is_same_v<Column, EpisodeNumbers>) fingerprint.add(fingerprint_of({&one.array, 1}));
          if constexpr (std::is_same_v<Column, EpisodeVideos>)
            for (std::size_t i = 0; i < one.begins.size(); ++i) {
              fingerprint.add(text_of(*one.paths, i, room));
              fingerprint.add(std::bit_cast<std::uint64_t>(one.begins[i]));
            }
        },
        column);
  }
  return fingerprint.value();
}

std::string EpisodeFormat::summary() const { return std::to_string(options_.ends.size()) + " episodes"; }

ShuffleBlocks EpisodeFormat::shuffle_blocks() const {
  return {.name = "episodes", .ends = {options_.ends.begin(), options_.ends.end()}};
}

// ---- rows ----

std::uint64_t EpisodeFormat::Episode::row_at(std::uint64_t index, std::int64_t step) const {
  return static_cast<std::uint64_t>(std::clamp(static_cast<std::int64_t>(index) + step, begin, end - 1));
}

bool EpisodeFormat::Episode::has(std::uint64_t index, std::int64_t step) const {
  const std::int64_t row = static_cast<std::int64_t>(index) + step;
  return row >= begin && row < end;
}

EpisodeFormat::Episode EpisodeFormat::episode_of(std::uint64_t index) const {
  const auto& ends = options_.ends;
  const auto at =
      static_cast<std::size_t>(std::ranges::upper_bound(ends, static_cast<std::int64_t>(index)) - ends.begin());
  return {at, at == 0 ? 0 : ends[at - 1], ends[at]};
}

std::string EpisodeFormat::object_of(const EpisodeVideos& videos, std::size_t episode) const {
  std::string room;
  return storage_->below(folder_, text_of(*videos.paths, episode, room));
}

Where EpisodeFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  const Episode episode = episode_of(index);
  Where where;
  where.dataset = options_.source;
  where.key = "episode " + std::to_string(episode.number) + ", frame " +
              std::to_string(static_cast<std::int64_t>(index) - episode.begin);
  where.record = index;
  return where;
}

Where EpisodeFormat::where_field(std::uint64_t index, std::size_t field) const {
  if (stored_[field].format) return stored_[field].format->where_field(index, stored_[field].field);
  Where where = this->where(index);
  if (const auto* const videos = std::get_if<EpisodeVideos>(&options_.columns[field]))
    where.shard = object_of(*videos, episode_of(index).number);
  return where;
}

bool EpisodeFormat::find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                               std::string& room) const {
  const EpisodeColumn& column = options_.columns[field];
  value = {};
  if (const auto* const texts = std::get_if<EpisodeTexts>(&column)) {
    const std::uint64_t cell =
        texts->cell_of_row.rows == 0 ? index : number_at<std::uint64_t>(texts->cell_of_row, index);
    value.bytes = std::as_bytes(std::span(text_of(*texts->cells, cell, room)));
    return true;
  }
  const Episode episode = episode_of(index);
  if (const auto* const pads = std::get_if<EpisodePads>(&column)) {
    room.clear();
    for (const std::int64_t step : pads->steps) room.push_back(episode.has(index, step) ? '\0' : '\1');
  } else if (const auto* const numbers = std::get_if<EpisodeNumbers>(&column)) {
    if (fields_[field].kind == FieldKind::kInteger) {
      value.value = number_at<std::int64_t>(numbers->array, index);
      return true;
    }
    room.clear();
    for (const std::int64_t step : steps_in(numbers->steps)) {
      const auto bytes = row_of(numbers->array, episode.row_at(index, step)).bytes;
      room.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  } else {
    return false;
  }
  value.bytes = std::as_bytes(std::span(room));
  value.array = fields_[field].array;
  return true;
}

Result<void> EpisodeFormat::read_images(const Stored& stored, const EpisodeImages& column, std::uint64_t index,
                                        memory::Record& record, std::size_t& used, memory::Record::Field& field) const {
  const Episode episode = episode_of(index);
  memory::Record one;
  one.most_bytes = record.most_bytes;
  for (const std::int64_t step : steps_in(column.steps)) {
    const std::uint64_t row = episode.row_at(index, step);
    FEEDLINE_TRY(const bool is_alone, stored.format->read_field(row, stored.field, one));
    if (!is_alone) FEEDLINE_CHECK_OK(stored.format->read(row, one));
    const memory::Record::Field& image = is_alone ? one.fields.front() : one.fields[stored.field];
    if (image.absent || image.bytes.empty())
      return failed_at(stored.format->where_field(row, stored.field),
                       data_error("the image is empty", "format").error());
    record.more.resize(std::max(record.more.size(), used + 1));
    FEEDLINE_TRY(const auto room, record.more[used++].make_room(image.bytes.size(), record.most_bytes));
    std::ranges::copy(image.bytes, room.begin());
    field.images.emplace_back(room);
    record.bytes_read += room.size();
  }
  return {};
}

Result<void> EpisodeFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.bytes_read = 0;
  std::size_t used = 0;
  std::string room;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    memory::Record::Field& field = record.fields[i];
    if (const auto* const images = std::get_if<EpisodeImages>(&options_.columns[i])) {
      FEEDLINE_CHECK_OK(read_images(stored_[i], *images, index, record, used, field));
    } else if (const auto* const videos = std::get_if<EpisodeVideos>(&options_.columns[i])) {
      const Episode episode = episode_of(index);
      for (const std::int64_t step : steps_in(videos->steps))
        field.times.push_back(videos->begins[episode.number] +
                              number_at<double>(videos->times, episode.row_at(index, step)));
      field.storage = storage_.get();
      field.object = object_of(*videos, episode.number);
    } else {
      find_value(index, i, field, room);
      // a sample may outlive its dataset
      record.more.resize(std::max(record.more.size(), used + 1));
      FEEDLINE_TRY(const auto copy, record.more[used++].make_room(field.bytes.size(), record.most_bytes));
      std::ranges::copy(field.bytes, copy.begin());
      field.bytes = copy;
      record.bytes_read += copy.size();
    }
  }
  return {};
}

Result<Inspection> EpisodeFormat::inspect() const {
  Inspection inspection;
  inspection.format = options_.format;
  inspection.samples = size();
  Findings findings;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    inspection.fields.push_back(fields_[i].name);
    const auto* const videos = std::get_if<EpisodeVideos>(&options_.columns[i]);
    for (std::size_t episode = 0; videos != nullptr && episode < options_.ends.size(); ++episode) {
      const std::string object = object_of(*videos, episode);
      if (!seen.insert(object).second) continue;
      const auto report = [&](std::string_view code, const std::string& what) {
        findings.add({code,
                      Severity::kError,
                      object,
                      "episode " + std::to_string(episode),
                      {},
                      "field '" + fields_[i].name + "': " + what});
      };
      const auto stat = storage_->stat(object);
      if (!stat) {
        report("missing_file", stat.error().what);
      } else {
        if (stat->bytes == 0) report("empty_file", "'" + object + "' is empty");
        inspection.bytes += stat->bytes;
      }
    }
  }
  if (!seen.empty()) inspection.extensions.push_back({"mp4", seen.size()});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
