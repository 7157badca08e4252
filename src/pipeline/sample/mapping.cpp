// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/mapping.h"

#include <algorithm>
#include <cstdint>

#include "format/format.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/sample_reader.h"
#include "pipeline/sample/view_point.h"
#include "transform/operation/field_operations.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kTries = 16;  // samples tried to determine the function's output

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Converts a sample to the function's arguments.
FunctionCall call_of(Sample read, const std::vector<std::size_t>& takes, std::uint64_t index) {
  const auto sample = std::make_shared<Sample>(std::move(read));
  FunctionCall call{.values = {}, .draw = index};
  for (const std::size_t field : takes) {
    Sample::Field& from = sample->fields[field];
    call.values.push_back({from.name, from.content, {from.bytes(), from.array}, from.absent, sample});
  }
  return call;
}

Result<std::vector<GivenField>> fields_of(const FunctionResult& result) {
  std::vector<GivenField> fields;
  for (const FunctionValue& value : result.values) {
    if (value.absent)
      return data_error("field '" + value.name +
                            "': the function returned nothing for the first sample, which sets the type "
                            "of the field",
                        "map");
    if (value.array.spec.shape.dims() >= Shape::kMaxDims)
      return data_error(
          "field '" + value.name + "': an array of " + value.array.spec.shape.to_string() + " has too many dimensions",
          "map");
    fields.push_back({value.name, value.content, value.array.spec});
  }
  return fields;
}

Result<std::vector<GivenField>> ask(const Recipe& native, const SampleFunction& function,
                                    const std::vector<std::size_t>& takes, std::uint64_t index) {
  SampleReader reader(std::shared_ptr<const Recipe>(std::shared_ptr<const Recipe>(), &native));
  FEEDLINE_TRY(Sample sample, reader.read({index, index}, 0, 0, use_of(function)));
  auto made = function.call(call_of(std::move(sample), takes, index));
  auto fields = made ? fields_of(*made) : std::unexpected(std::move(made).error());
  if (!fields) return std::unexpected(with_location(std::move(fields).error(), native, index));
  return fields;
}

std::vector<std::size_t> taken(const Recipe& recipe, const SampleFunction& function) {
  const Schema& fields = recipe.stored_schema;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < fields.size() && function.takes().empty(); ++i) indices.push_back(i);
  for (const std::string& name : function.takes())
    indices.push_back(static_cast<std::size_t>(std::ranges::find(fields, name, &FieldSpec::name) - fields.begin()));
  return indices;
}

bool can_collate(const GivenField& field, BatchForm form) {
  const bool is_array = field.content == Content::kArray;
  if (form == BatchForm::kPadded) return is_array && field.array.shape.dims() > 0;
  return is_array || form == BatchForm::kList;
}

Result<BatchForm> form_of(const GivenField& field, const std::vector<Collation>& collations) {
  BatchForm form = field.content == Content::kArray ? BatchForm::kDense : BatchForm::kList;
  for (const Collation& collation : collations) {
    const bool can = can_collate(field, collation.form);
    if (!contains(collation.fields, field.name) && !(collation.is_for_all && can)) continue;
    if (!can && !collation.follows_map) continue;  // it referred to the function's arguments
    if (!can)
      return config_error("collate: the rows of '" + field.name +
                          "', which the function of map returns, do not support this form");
    form = collation.form;
  }
  return form;
}

Result<FieldSpec> spec_of(const GivenField& field, const std::vector<Collation>& collations, RowsFor rows_for) {
  FEEDLINE_TRY(BatchForm form, form_of(field, collations));
  if (rows_for == RowsFor::kSingleSamples) form = BatchForm::kList;
  FieldSpec spec{.name = field.name, .array = field.array, .form = form, .content = field.content};
  Shape& shape = spec.array.shape;
  if (form == BatchForm::kPadded) shape = shape.with_first(kAnyLength);
  if (form == BatchForm::kList) {
    Shape any;
    for (std::size_t i = 0; i < shape.dims(); ++i) any = any.with_front(kAnyLength);
    shape = any;
  }
  return spec;
}

// A collation after map() may name fields that do not exist, which can be detected only here.
Result<void> check_names(const std::vector<Collation>& collations, const Schema& schema) {
  for (const Collation& collation : collations)
    for (const std::string& name : collation.fields)
      if (collation.follows_map && std::ranges::find(schema, name, &FieldSpec::name) == schema.end())
        return config_error("collate: there is no field '" + name + "'");
  return {};
}

}  // namespace

Result<std::shared_ptr<const MapPoint>> MapPoint::make(std::shared_ptr<const SampleFunction> function,
                                                       const Source& source, std::size_t operations,
                                                       const MapPoint* before, const ViewPoint* views) {
  const auto fields = fields_behind(source.format()->fields(), views);
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.name);
  if (format::is_ragged(*source.format()))
    return config_error("map: the samples of \"" + source.name() +
                        "\" have different lengths, which map does not support");
  for (const std::string& name : function->takes())
    if (!contains(names, name)) {
      std::string there;
      for (const std::string& field : names) there += (there.empty() ? "" : ", ") + field;
      return config_error("map: there is no field '" + name + "'; the fields are " + there);
    }
  std::shared_ptr<MapPoint> point(new MapPoint(std::move(function)));
  if (before != nullptr) point->closed_ = before->closed_;
  for (const std::string& name : names)
    if (point->function_->takes().empty() || contains(point->function_->takes(), name))
      if (!point->takes(name)) point->closed_.emplace_back(name, operations);
  return point;
}

bool MapPoint::takes(const std::string& field) const {
  return std::ranges::any_of(closed_, [&](const auto& closed) { return closed.first == field; });
}

Result<void> MapPoint::check(const Operation& operation, std::size_t position, const std::vector<std::string>& images,
                             const std::vector<std::string>& followers) const {
  std::vector<std::string> names = operation.fields.empty() ? images : operation.fields;
  if (operation.fields.empty() && transform::is_geometric(operation))
    names.insert(names.end(), followers.begin(), followers.end());
  for (const auto& [name, closed_at] : closed_)
    if (position >= closed_at && contains(names, name))
      return config_error(std::string(name_of(operation)) + ": '" + name +
                          "' is an argument of an earlier map(); place the operation before map, or name "
                          "other fields");
  return {};
}

Result<std::vector<GivenField>> MapPoint::given(const Recipe& native, std::optional<DType> dtype, Layout layout) const {
  {
    const std::lock_guard lock(mutex_);
    for (const Found& found : found_)
      if (found.dtype == dtype && found.layout == layout) return found.fields;
  }
  const auto takes_fields = taken(native, *function_);
  std::optional<Error> failure;
  for (std::uint64_t index = 0; index < std::min(kTries, native.format->size()); ++index) {
    auto fields = ask(native, *function_, takes_fields, index);
    if (fields) {
      const std::lock_guard lock(mutex_);
      found_.push_back({dtype, layout, *fields});
      return fields;
    }
    if (!failure) failure = fields.error();
    if (fields.error().code == ErrorCode::kCancelled || fields.error().code == ErrorCode::kConfig) return fields;
  }
  if (failure) return std::unexpected(std::move(*failure));
  return config_error("map: the dataset \"" + native.dataset + "\" has no samples");
}

Result<void> take_function(Recipe& recipe, const MapPoint& map, std::optional<DType> dtype, Layout layout,
                           const std::vector<Collation>& collations, RowsFor rows_for) {
  FEEDLINE_TRY(const auto given, map.given(recipe, dtype, layout));
  auto mapping = std::make_shared<Mapping>();
  mapping->function = map.function();
  mapping->takes = taken(recipe, *mapping->function);
  const Schema& fields = recipe.stored_schema;
  mapping->schema_indices.assign(fields.size(), Mapping::kTaken);
  mapping->gives.resize(given.size());
  Schema schema;
  const auto add_given = [&](std::size_t number) -> Result<void> {
    FEEDLINE_TRY(auto spec, spec_of(given[number], collations, rows_for));
    mapping->gives[number] = schema.size();
    schema.push_back(std::move(spec));
    return {};
  };
  if (mapping->function->takes().empty())
    for (std::size_t i = 0; i < given.size(); ++i) FEEDLINE_CHECK_OK(add_given(i));
  for (std::size_t i = 0; i < fields.size() && !mapping->function->takes().empty(); ++i) {
    const auto number = std::ranges::find(given, fields[i].name, &GivenField::name);
    if (number != given.end()) {
      FEEDLINE_CHECK_OK(add_given(static_cast<std::size_t>(number - given.begin())));
      continue;
    }
    mapping->schema_indices[i] = schema.size();
    schema.push_back(recipe.schema[i]);
  }
  FEEDLINE_CHECK_OK(check_names(collations, schema));
  recipe.schema = std::move(schema);
  recipe.mapping = std::move(mapping);
  return {};
}

Result<std::shared_ptr<const Recipe>> of_loader(std::shared_ptr<const Recipe> recipe) {
  if (!recipe->mapping) return recipe;
  FEEDLINE_TRY(auto function, recipe->mapping->function->for_loader());
  if (!function) return recipe;
  auto mapping = std::make_shared<Mapping>(*recipe->mapping);
  mapping->function = std::move(function);
  auto own = std::make_shared<Recipe>(*recipe);
  own->mapping = std::move(mapping);
  return own;
}

}  // namespace feedline::pipeline
