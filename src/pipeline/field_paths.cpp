// SPDX-License-Identifier: Apache-2.0
#include "pipeline/field_paths.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "decode/labels.h"
#include "decode/npy/npy.h"
#include "decode/text/json.h"
#include "decode/text/utf8.h"
#include "pipeline/array_path.h"
#include "pipeline/mapping.h"
#include "pipeline/mask_path.h"
#include "pipeline/pixel_cache.h"
#include "pipeline/pixels_path.h"
#include "pipeline/stored_path.h"
#include "pipeline/value_path.h"
#include "transform/chain.h"
#include "transform/field_operations.h"
#include "transform/label_chain.h"

namespace feedline::pipeline {
namespace {

using Field = format::FieldDescription;
using format::FieldKind;

using Made = Result<std::shared_ptr<const FieldPath>>;

bool is_stored(const Field& field) {
  return field.kind == FieldKind::kBytes || field.kind == FieldKind::kText || field.kind == FieldKind::kJson;
}

// The field as the first samples have it, of which some may be damaged. read(): what is to be known of it as stored.
template <typename Read>
auto first_of(const Field& field, const FieldStages& stages, Read read)
    -> decltype(read(std::declval<const memory::Record::Field&>())) {
  constexpr std::uint64_t kTries = 16;
  const format::RecordFormat& records = stages.records;
  const auto place = static_cast<std::size_t>(std::ranges::find(records.fields(), field.name, &Field::name) -
                                              records.fields().begin());
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  Error failure = config_error("'" + field.name + "': no sample of the first has it").error();
  for (std::uint64_t sample = 0; sample < std::min(kTries, records.size()); ++sample) {
    if (auto done = records.read(sample, record); !done) {
      failure = with_place(std::move(done).error(), records, stages.dataset, sample);
      continue;
    }
    if (record.fields[place].absent) continue;
    auto known = read(record.fields[place]);
    if (known) return known;
    failure = with_place(std::move(known).error(), records, stages.dataset, sample);
    failure.what = "field '" + field.name + "': " + failure.what;
  }
  return std::unexpected(std::move(failure));
}

Result<void> refuse_absent(const Field& field, BatchForm form) {
  if (!field.may_be_absent || form != BatchForm::kDense) return {};
  return config_error("'" + field.name + "' is absent in some samples (missing=\"none\"), which only a list can say" +
                      (can_collate(field, BatchForm::kList) ? ": use collate(\"list\", fields=[\"" + field.name + "\"])"
                                                            : std::string("; use missing=\"skip\"")));
}

Made make_pixels_path(const Field& field, const FieldStages& stages, BatchForm form) {
  const auto operations = transform::operations_for(stages.operations, field.name);
  const auto size =
      form == BatchForm::kList ? transform::Chain::OutputSize::kAny : transform::Chain::OutputSize::kFixed;
  FEEDLINE_TRY(auto chain, transform::Chain::compile(operations, stages.dtype, stages.layout, size));
  PixelsPath::Kept kept;
  if (stages.cache != nullptr) {
    FEEDLINE_TRY(kept.rest,
                 transform::Chain::compile_rest(operations, stages.cache->position, stages.dtype, stages.layout, size));
    kept.preparation = stages.cache->pixels->preparation();
  }
  const bool needs_size = std::ranges::any_of(operations, &transform::draws_by_size);
  return std::make_shared<const PixelsPath>(field.name, std::move(chain), std::move(kept), form, needs_size);
}

Made make_mask_path(const Field& field, const FieldStages& stages, BatchForm form) {
  const auto operations = transform::operations_for(stages.operations, field.name);
  FEEDLINE_TRY(auto chain, transform::LabelChain::compile(operations));
  MaskPath::Kept kept;
  if (stages.cache != nullptr) {
    const auto before = operations.begin(), behind = before + static_cast<std::ptrdiff_t>(stages.cache->position);
    FEEDLINE_TRY(kept.preparation, transform::LabelChain::compile({before, behind}));
    FEEDLINE_TRY(kept.rest, transform::LabelChain::compile(operations, stages.cache->position));
  }
  if (!chain->size() && form == BatchForm::kDense)
    return config_error("'" + field.name +
                        "': the chain has no fixed output size: add resize((height, width)), center_crop or a random "
                        "crop, or use collate(\"list\")");
  decode::LabelDecoder decoder;
  FEEDLINE_TRY(const decode::LabelHeader header, first_of(field, stages, [&](const memory::Record::Field& stored) {
                 return open_labels(stored, decoder);
               }));
  const Size size = chain->size().value_or(Size{kAnyLength, kAnyLength});
  return std::make_shared<const MaskPath>(
      FieldSpec{.name = field.name, .array = {header.dtype, {size.height, size.width}}, .form = form}, std::move(chain),
      std::move(kept));
}

Made make_array_path(const Field& field, const FieldStages& stages, BatchForm form) {
  FEEDLINE_TRY(const ArraySpec first,
               first_of(field, stages, [](const memory::Record::Field& stored) -> Result<ArraySpec> {
                 FEEDLINE_TRY(const decode::NpyArray array, decode::read_npy(stored.bytes));
                 return array.spec;
               }));
  Shape shape = first.shape;
  if (form == BatchForm::kPadded && shape.dims() == 0)
    return config_error("collate: '" + field.name + "' holds single numbers, which have no length to pad");
  if (form == BatchForm::kPadded) shape = shape.with_first(kAnyLength);
  if (form == BatchForm::kList) {
    Shape any;
    for (std::size_t i = 0; i < shape.dims(); ++i) any = any.with_front(kAnyLength);
    shape = any;
  }
  return std::make_shared<const ArrayPath>(FieldSpec{.name = field.name, .array = {first.dtype, shape}, .form = form});
}

Result<void> take_any(std::span<const std::byte> /*stored*/) { return {}; }

// What goes to a function is one sample's, of any shape.
BatchForm form_of(const Field& field, const FieldStages& stages) {
  if (stages.map != nullptr && stages.map->takes(field.name))
    return can_collate(field, BatchForm::kList) ? BatchForm::kList : BatchForm::kDense;
  BatchForm form = is_stored(field) ? BatchForm::kList : BatchForm::kDense;
  for (const Collation& collation : stages.collations)
    if (std::ranges::find(collation.fields, field.name) != collation.fields.end() ||
        (collation.is_for_all && can_collate(field, collation.form)))
      form = collation.form;
  return form;
}

}  // namespace

bool can_collate(const Field& field, BatchForm form) {
  switch (form) {
    case BatchForm::kDense:
      return !is_stored(field);
    case BatchForm::kPadded:
      return field.kind == FieldKind::kArray;
    case BatchForm::kList:
      return field.kind != FieldKind::kInteger;
  }
  return false;
}

std::string what_can(const Field& field) {
  std::string text;
  const auto add = [&](BatchForm form, const char* name) {
    if (can_collate(field, form)) text += std::string(text.empty() ? "" : " or ") + "\"" + name + "\"";
  };
  add(BatchForm::kDense, "stack");
  add(BatchForm::kPadded, "pad");
  add(BatchForm::kList, "list");
  return "use " + text;
}

Made make_field_path(const Field& field, const FieldStages& stages) {
  const BatchForm form = form_of(field, stages);
  FEEDLINE_CHECK_OK(refuse_absent(field, form));
  switch (field.kind) {
    case FieldKind::kImage:
      return make_pixels_path(field, stages, form);
    case FieldKind::kMask:
      return make_mask_path(field, stages, form);
    case FieldKind::kInteger:
      return std::make_shared<const ValuePath>(field.name);
    case FieldKind::kArray:
      return make_array_path(field, stages, form);
    case FieldKind::kBytes:
      return std::make_shared<const StoredPath>(field.name, Content::kBytes, &take_any);
    case FieldKind::kText:
      return std::make_shared<const StoredPath>(field.name, Content::kText, &decode::check_utf8);
    case FieldKind::kJson:
      return std::make_shared<const StoredPath>(field.name, Content::kJson, &decode::check_json);
  }
  FEEDLINE_CHECK(!"a field of no kind");
}

}  // namespace feedline::pipeline
