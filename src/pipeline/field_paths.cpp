// SPDX-License-Identifier: Apache-2.0
#include "pipeline/field_paths.h"

#include <utility>

#include "base/check.h"
#include "pipeline/pixel_cache.h"
#include "pipeline/pixels_path.h"
#include "pipeline/value_path.h"
#include "transform/chain.h"

namespace feedline::pipeline {
namespace {

Result<std::shared_ptr<const FieldPath>> make_pixels_path(const std::string& name, const FieldStages& stages) {
  const auto& [operations, dtype, layout, cache] = stages;
  FEEDLINE_TRY(auto chain, transform::Chain::compile(operations, dtype, layout));
  PixelsPath::Kept kept;
  if (cache != nullptr) {
    FEEDLINE_TRY(kept.rest, transform::Chain::compile_rest(operations, cache->position, dtype, layout));
    kept.preparation = cache->pixels->preparation();
  }
  return std::make_shared<const PixelsPath>(name, std::move(chain), std::move(kept));
}

}  // namespace

Result<std::shared_ptr<const FieldPath>> make_field_path(const format::FieldDescription& field,
                                                         const FieldStages& stages) {
  switch (field.kind) {
    case format::FieldKind::kImage:
      return make_pixels_path(field.name, stages);
    case format::FieldKind::kInteger:
      return std::make_shared<const ValuePath>(field.name);
    case format::FieldKind::kArray:
      break;
  }
  FEEDLINE_CHECK(!"a record has no field of this kind");
}

}  // namespace feedline::pipeline
