// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/feature_reader.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "format/field_kind.h"
#include "format/short_list.h"
#include "format/tfrecord/number_file.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Problem = std::unexpected<ReadProblem>;

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// The values that a record has for a field.
struct Found {
  std::size_t rank = kNowhere;  // index of the feature in the alternatives
  Feature feature;
  std::optional<FeatureList> list;  // used instead of the feature
  NumberShape shape;                // shape of numbers

  bool is_there() const { return rank != kNowhere; }
};

class FieldOfRecord {
 public:
  FieldOfRecord(const FeatureChoice& field, Found& found) : field_(field), found_(found) {}

  void offer(std::string_view name, const Feature& feature) {
    const std::size_t rank = rank_of(name);
    if (rank > found_.rank || rank == kNowhere) return;
    if (feature.kind() != ValueKind::kNone)
      found_ = {rank, feature, {}, {}};
    else if (rank == found_.rank)
      found_ = {};  // the last feature of a name is used, even if it is empty
  }
  void offer(std::string_view name, const FeatureList& list) {
    const std::size_t rank = rank_of(name);
    if (rank == kNowhere || rank > found_.rank) return;
    if (rank == found_.rank && !found_.list) return;  // a feature has priority over a list with the same name
    found_ = {rank, {}, list, {}};
  }

  // Determines the shape of the numbers, and checks that it matches the field.
  std::expected<void, ReadProblem> measure() {
    found_.shape.kind = field_.values;
    return found_.list ? measure_steps() : measure_feature();
  }
  // Writes the numbers as a .npy file to `out`.
  void write(std::byte* out) const {
    write_number_header(found_.shape, out);
    out += kNumberHeaderBytes;
    write_numbers(out);
  }
  void write_numbers(std::byte* out) const {
    if (!found_.list) return found_.feature.write_numbers(out);
    const std::uint64_t step_bytes = found_.shape.rows == 0 ? 0 : found_.shape.data_bytes() / found_.shape.rows;
    found_.list->each([&](const Feature& step) {
      step.write_numbers(out);
      out += step_bytes;
      return true;
    });
  }
  // Returns the byte string of a field, which must have exactly one.
  std::expected<Bytes, ReadProblem> bytes() const {
    std::uint64_t count = 0;
    Bytes value;
    bool is_of_kind = true;
    const auto take = [&](const Feature& feature) {
      is_of_kind = is_of_kind && feature.kind() == ValueKind::kBytes;
      return is_of_kind && feature.each_bytes([&](Bytes one) { return ++count, value = one, true; });
    };
    const bool is_whole = found_.list ? found_.list->each(take) : take(found_.feature);
    if (!is_of_kind) return other_kind();
    if (!is_whole) return damaged();
    if (count != 1) return differs("has " + std::to_string(count) + " byte strings, but one was expected");
    if (value.empty() && !may_be_empty(field_.description.kind)) return problem("empty_file", "an empty file");
    return value;
  }
  Problem problem(std::string_view code, const std::string& what) const {
    return Problem({code, data_error("field '" + field_.description.name + "': " + what, "format").error()});
  }

 private:
  std::size_t rank_of(std::string_view name) const {
    const auto found = std::ranges::find(field_.alternatives, name);
    return found == field_.alternatives.end() ? kNowhere
                                              : static_cast<std::size_t>(found - field_.alternatives.begin());
  }
  Problem differs(const std::string& how) const {
    return problem("feature_differs", "the feature '" + field_.alternatives[found_.rank] + "' " + how);
  }
  Problem damaged() const { return differs("has values that cannot be read: the record is malformed"); }
  Problem other_kind() const {
    return differs("does not hold " + std::string(name_of(field_.values)) + " values, unlike the first records");
  }

  std::expected<void, ReadProblem> measure_feature() {
    const Feature& feature = found_.feature;
    if (feature.kind() != field_.values) return other_kind();
    const auto count = feature.count();
    if (!count) return damaged();
    if (field_.is_scalar && *count != 1)
      return differs("has " + std::to_string(*count) +
                     " values, but one was expected; \":array\" after a spec of fields= accepts any number");
    if (field_.columns > 0 && *count % field_.columns != 0)
      return differs("has " + std::to_string(*count) + " values, which do not form rows of " +
                     std::to_string(field_.columns));
    found_.shape.dims = field_.is_scalar ? 0 : field_.columns > 0 ? 2 : 1;
    found_.shape.columns = std::max<std::uint64_t>(field_.columns, 1);
    found_.shape.rows = *count / found_.shape.columns;
    return {};
  }

  std::expected<void, ReadProblem> measure_steps() {
    const std::uint64_t wanted = std::max<std::uint64_t>(field_.columns, 1);
    std::uint64_t steps = 0;
    std::optional<Problem> wrong;
    const bool is_whole = found_.list->each([&](const Feature& step) {
      const auto count = step.kind() == field_.values ? step.count() : 0;
      if (step.kind() != field_.values)
        wrong = other_kind();
      else if (count && *count != wanted)
        wrong = differs("has " + std::to_string(*count) + " values at step " + std::to_string(steps) + ", but " +
                        std::to_string(wanted) + " in the first records");
      ++steps;
      return count && !wrong;
    });
    if (wrong) return *wrong;
    if (!is_whole) return damaged();
    if (field_.is_scalar) return differs("is a list of steps, but one value was expected");
    found_.shape = {field_.values, field_.columns > 0 ? std::size_t{2} : 1, steps, wanted};
    return {};
  }

  const FeatureChoice& field_;
  Found& found_;
};

bool find_all(Bytes data, const std::vector<FeatureChoice>& fields, std::span<Found> found) {
  const auto offer = [&](std::string_view name, const auto& feature) {
    for (std::size_t i = 0; i < fields.size(); ++i) FieldOfRecord(fields[i], found[i]).offer(name, feature);
    return true;
  };
  return walk_example(data, offer, offer);
}

std::expected<void, ReadProblem> fill_bytes(const FieldOfRecord& field, FieldKind kind, memory::Record::Field& out) {
  const auto bytes = field.bytes();
  if (!bytes) return Problem(bytes.error());
  out.bytes = *bytes;
  if (kind != FieldKind::kInteger) return {};
  const auto value = parse_integer(*bytes);
  if (!value) return field.problem("not_an_integer", not_an_integer(*bytes));
  out.value = *value;
  return {};
}

}  // namespace

std::expected<void, ReadProblem> FeatureReader::read(Bytes data, memory::Record& record) const {
  ShortList<Found> list(fields_.size());
  const std::span<Found> found = list.all();
  if (!find_all(data, fields_, found))
    return Problem({"not_an_example", data_error("the record is not a tf.train.Example", "format").error()});
  record.fields.assign(fields_.size(), {});
  std::uint64_t array_bytes = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    FieldOfRecord field(fields_[i], found[i]);
    record.fields[i].absent = !found[i].is_there();
    if (record.fields[i].absent && !fields_[i].description.may_be_absent)
      return field.problem("missing_field", "the record has no feature '" + fields_[i].alternatives.front() + "'");
    if (record.fields[i].absent) continue;
    auto done = fields_[i].values == ValueKind::kBytes
                    ? fill_bytes(field, fields_[i].description.kind, record.fields[i])
                    : field.measure();
    if (!done) return done;
    if (fields_[i].values == ValueKind::kBytes) continue;
    if (fields_[i].description.kind == FieldKind::kInteger)
      field.write_numbers(reinterpret_cast<std::byte*>(&record.fields[i].value));
    else
      array_bytes += found[i].shape.file_bytes();
  }
  if (array_bytes == 0) return {};
  record.more.resize(1);
  const auto made = record.more.front().make_room(array_bytes, record.most_bytes);
  if (!made) return Problem({"feature_differs", made.error()});
  std::span<std::byte> room = *made;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (record.fields[i].absent || fields_[i].values == ValueKind::kBytes) continue;
    if (fields_[i].description.kind == FieldKind::kInteger) continue;
    FieldOfRecord(fields_[i], found[i]).write(room.data());
    record.fields[i].bytes = room.first(found[i].shape.file_bytes());
    room = room.subspan(found[i].shape.file_bytes());
  }
  return {};
}

}  // namespace feedline::format
