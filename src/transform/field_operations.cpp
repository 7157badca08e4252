// SPDX-License-Identifier: Apache-2.0
#include "transform/field_operations.h"

#include <algorithm>

namespace feedline::transform {

std::vector<Operation> operations_for(std::span<const Operation> operations, std::string_view field) {
  std::vector<Operation> list(operations.begin(), operations.end());
  for (Operation& operation : list)
    if (!operation.fields.empty() && std::ranges::find(operation.fields, field) == operation.fields.end())
      operation = op::Skipped{};
  return list;
}

namespace {

template <typename... Ops>
bool is_any_of(const Operation& operation) {
  return (std::holds_alternative<Ops>(operation) || ...);
}

// Is it so of the operation, or of one in it?
template <typename Is>
bool is_within(const Operation& operation, Is is) {
  bool found = is(operation);
  for_each_nested(operation, [&](const Operation& nested) { found = found || is_within(nested, is); });
  return found;
}

}  // namespace

bool changes_size(const Operation& operation) {
  return is_within(operation, [](const Operation& o) {
    return is_any_of<op::Resize, op::CenterCrop, op::CornerCrop, op::TrimBorder, op::RandomCrop, op::RandomResizedCrop,
                     op::Pad, op::RandomRotation, op::RandomResize, op::RandomShortSide, op::ScaleJitter,
                     op::ResizeKeepRatio, op::RandomCropOrPad, op::PadTo, op::Letterbox, op::RandomIouCrop,
                     op::RandomZoomOut>(o);
  });
}

bool is_geometric(const Operation& operation) {
  return changes_size(operation) || draws_by_size(operation) || is_within(operation, [](const Operation& o) {
           return is_any_of<op::RandomHorizontalFlip, op::RandomVerticalFlip>(o);
         });
}

bool is_automatic(const Operation& operation) {
  return is_within(operation, [](const Operation& o) {
    return is_any_of<op::AutoAugment, op::RandAugment, op::TrivialAugmentWide, op::AugMix, op::TimmAugment>(o);
  });
}

bool draws_by_size(const Operation& operation) {
  return is_within(operation, [](const Operation& o) {
    return is_any_of<op::RandomCrop, op::RandomCropOrPad, op::RandomResizedCrop, op::RandomAffine,
                     op::RandomPerspective, op::ElasticTransform, op::RandomIouCrop, op::RandomZoomOut>(o);
  });
}

bool makes_values(const Operation& operation) {
  return is_within(operation, [](const Operation& o) {
    const auto* const convert = std::get_if<op::ToDtype>(&o);
    return is_any_of<op::Normalize>(o) || (convert != nullptr && convert->dtype != DType::kUint8);
  });
}

bool erases(const Operation& operation) {
  return is_within(operation, [](const Operation& o) { return is_any_of<op::RandomErasing>(o); });
}

}  // namespace feedline::transform
