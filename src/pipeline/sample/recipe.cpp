// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/recipe.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "device/device.h"
#include "format/format.h"
#include "pipeline/fields/deep_path.h"
#include "pipeline/fields/device_rows.h"
#include "pipeline/fields/foreground.h"
#include "pipeline/fields/pixel_cache.h"
#include "pipeline/fields/pixels_path.h"
#include "pipeline/fields/target_path.h"
#include "pipeline/fields/views_path.h"
#include "pipeline/media/video_indexes.h"
#include "pipeline/sample/field_paths.h"
#include "pipeline/sample/image_checkpoints.h"
#include "pipeline/sample/mapping.h"
#include "pipeline/sample/view_point.h"
#include "transform/chain.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/image_operation.h"
#include "transform/shared_steps.h"
#include "transform/targets/target_chain.h"

namespace feedline::pipeline {
namespace {

// length(i): returns the extent of ragged field i.
template <typename Length>
Schema with_lengths(Schema schema, Length length) {
  for (std::size_t i = 0; i < schema.size(); ++i) {
    Shape& shape = schema[i].array.shape;
    if (schema[i].array.is_ragged() && !schema[i].has_variable_size())
      shape = shape.with_first(static_cast<std::int64_t>(length(i)));
  }
  return schema;
}

bool is_video(const format::FieldDescription& field) { return field.kind == format::FieldKind::kVideo; }

bool is_pixels(const format::FieldDescription& field) {
  return field.kind == format::FieldKind::kImage || field.kind == format::FieldKind::kMask || is_video(field);
}

bool is_for_videos(const Operation& operation) { return operation->properties().is_for_videos(); }

// Adds the sound of clips to the fields.
std::vector<format::FieldDescription> with_sounds(std::vector<format::FieldDescription> fields,
                                                  const std::vector<Operation>& operations) {
  const std::size_t stored = fields.size();
  for (std::size_t i = 0; i < stored; ++i) {
    if (!is_video(fields[i])) continue;
    const auto own = transform::operations_for(operations, fields[i].name);
    const auto has_sound = [](const Operation& operation) {
      const op::Clip* const clip = operation->properties().clip;
      return clip != nullptr && clip->audio;
    };
    if (!std::ranges::any_of(own, has_sound)) continue;
    fields.push_back({.name = sound_of(fields[i].name), .kind = format::FieldKind::kAudio});
  }
  return fields;
}

bool is_target(const format::FieldDescription& field) {
  return field.kind == format::FieldKind::kBoxes || field.kind == format::FieldKind::kKeypoints;
}

bool is_boxes(const format::FieldDescription& field) { return field.kind == format::FieldKind::kBoxes; }

bool draws_by_boxes(const Operation& operation) { return operation->properties().draws_by_boxes; }

bool is_audio(const format::FieldDescription& field) { return field.kind == format::FieldKind::kAudio; }

bool is_for_audio(const Operation& operation) { return operation->properties().stage == transform::Stage::kAudio; }

bool is_volume(const format::FieldDescription& field) { return field.kind == format::FieldKind::kVolume; }

bool is_for_volumes(const Operation& operation) { return operation->properties().stage == transform::Stage::kVolume; }

// Returns whether the operation is or contains a crop that depends on the sample's boxes. An operation that is applied
// with a probability has no access to boxes.
bool holds_crop_by_boxes(const Operation& operation) {
  bool found = false;
  transform::for_each_nested(operation, [&](const Operation& nested) {
    found = found || draws_by_boxes(nested) || holds_crop_by_boxes(nested);
  });
  return found;
}

// Checks that the boxes that an operation needs exist, and that the operation applies to them.
Result<void> check_boxes(const std::vector<format::FieldDescription>& fields, const Operation& operation) {
  const std::string start = std::string(name_of(operation)) + ": ";
  const auto boxes = std::ranges::count_if(fields, &is_boxes);
  if (boxes != 1)
    return config_error(start + "the operation needs the boxes of a sample, but there " +
                        (boxes == 0 ? "are none: mark their field with \":boxes\" in fields= of open()"
                                    : "are " + std::to_string(boxes) + " boxes fields; open only one"));
  const std::string& name = std::ranges::find_if(fields, &is_boxes)->name;
  if (!operation.fields.empty() && std::ranges::find(operation.fields, name) == operation.fields.end())
    return config_error(start + "fields: the operation needs '" + name + "', which must be included");
  return {};
}

// Checks that the named labels are fields with one row per box.
Result<void> check_labels(const std::vector<format::FieldDescription>& fields, const op::SanitizeBoundingBoxes& o,
                          const std::vector<std::string>& before) {
  for (const std::string& name : o.labels) {
    const auto field = std::ranges::find(fields, name, &format::FieldDescription::name);
    if (field == fields.end()) return config_error("sanitize_bounding_boxes: labels: there is no field '" + name + "'");
    const bool has_rows = field->kind == format::FieldKind::kArray || field->kind == format::FieldKind::kKeypoints;
    const bool is_stack = field->kind == format::FieldKind::kMask && field->array.shape.dims() == 3;
    if (!has_rows && !is_stack)
      return config_error("sanitize_bounding_boxes: labels: '" + name + "' is " +
                          std::string(format::name_of(field->kind)) + ", not an array with a row for each box");
  }
  if (o.labels != before)
    return config_error(
        "sanitize_bounding_boxes: labels: must be the same in all of this chain's sanitize_bounding_boxes");
  return {};
}

// Checks operations that depend on boxes, which requires a dataset.
Result<void> check_targets(const std::vector<format::FieldDescription>& fields,
                           const std::vector<Operation>& operations) {
  const bool has_image = std::ranges::count(fields, format::FieldKind::kImage, &format::FieldDescription::kind) > 0;
  const std::vector<std::string> labels = labels_of_boxes(operations);
  for (const Operation& operation : operations) {
    const transform::Properties properties = operation->properties();
    const auto* const sanitize = properties.sanitize;
    if (sanitize != nullptr || properties.draws_by_boxes) FEEDLINE_CHECK_OK(check_boxes(fields, operation));
    if (sanitize != nullptr) FEEDLINE_CHECK_OK(check_labels(fields, *sanitize, labels));
    if (properties.draws_by_boxes && !has_image)
      return config_error(std::string(name_of(operation)) + ": the samples have no image");
  }
  return {};
}

// Checks that the fields that an operation names exist and support it.
Result<void> check_chosen(const std::vector<format::FieldDescription>& fields, const Operation& operation) {
  for (const std::string& name : operation.fields) {
    const std::string start = std::string(name_of(operation)) + ": fields: ";
    const auto field = std::ranges::find(fields, name, &format::FieldDescription::name);
    if (field == fields.end()) {
      std::string names;
      for (const auto& there : fields) names += (names.empty() ? "" : ", ") + there.name;
      return config_error(start + "there is no field '" + name + "'; the fields are " + names);
    }
    if (operation->properties().boxes != nullptr) {
      if (field->kind == format::FieldKind::kBoxes) continue;
      return config_error("boxes: '" + name + "' is " + std::string(format::name_of(field->kind)) +
                          "; mark boxes with \":boxes\" after the spec in fields= of open()");
    }
    if (is_for_audio(operation)) {
      if (is_audio(*field)) continue;
      return config_error(start + "'" + name + "' is " + std::string(format::name_of(field->kind)) + ", not audio");
    }
    if (is_for_videos(operation) && !is_video(*field))
      return config_error(start + "'" + name + "' is " + std::string(format::name_of(field->kind)) + ", not a video");
    if (!is_pixels(*field) && !is_target(*field))
      return config_error(start + "'" + name + "' is not an image, mask, boxes or keypoints");
    if (field->kind == format::FieldKind::kMask && !transform::is_geometric(operation))
      return config_error(start + "'" + name + "' is a mask, and its labels are not colours");
    if (is_target(*field) && !transform::is_geometric(operation))
      return config_error(start + "'" + name + "' is " + std::string(format::name_of(field->kind)) +
                          ", which have no colours");
  }
  return {};
}

// Checks that no operation names a field that is an argument of an earlier function.
Result<void> check_map(const Source& source, const std::vector<Operation>& operations, const MapPoint& map,
                       const ViewPoint* views) {
  std::vector<std::string> images, followers;
  for (const format::FieldDescription& field : fields_behind(source.format()->fields(), views)) {
    if (field.kind == format::FieldKind::kImage) images.push_back(field.name);
    if (field.kind == format::FieldKind::kMask || is_target(field)) followers.push_back(field.name);
  }
  for (std::size_t i = 0; i < operations.size(); ++i) FEEDLINE_CHECK_OK(map.check(operations[i], i, images, followers));
  return {};
}

// Checks the operations of each view, and the operations shared by all views.
Result<void> check_views(const std::vector<Operation>& operations, const ViewPoint& views) {
  FEEDLINE_CHECK_OK(transform::SharedSteps::compile(views.shared(operations)));
  for (std::size_t field = 0; field < views.fields.size(); ++field)
    for (std::size_t view = 0; view < views.fields[field].views.size(); ++view) {
      const auto own = views.operations_of(operations, field, view);
      if (const auto crop = std::ranges::find_if(own, &draws_by_boxes); crop != own.end())
        return config_error(std::string(name_of(*crop)) +
                            ": the boxes of a sample cannot follow several views of its image");
      auto checked = transform::Chain::check(own);
      if (checked) continue;
      if (views.fields.size() > 1) checked.error().what = "'" + views.fields[field].name + "': " + checked.error().what;
      return checked;
    }
  return {};
}

// Checks that the device supports all operations after its cache.
Result<void> check_device_cache(const std::vector<Operation>& operations, const CachePoint& cache, const MapPoint* map,
                                const ViewPoint* views) {
  if (map != nullptr)
    return config_error("cache(\"device\"): functions of map need fields on the host; use cache(\"memory\")");
  if (views != nullptr) return config_error("cache(\"device\"): a GPU does not support views; use cache(\"memory\")");
  return check_device_operations(std::span(operations).subspan(cache.position));
}

// Checks that the decoding device supports all operations after decode.
Result<void> check_decoded(const std::vector<Operation>& operations, const std::optional<CachePoint>& cache,
                           const MapPoint* map, const ViewPoint* views) {
  const std::string what = std::string(kDecodedOnDevice.what) + ": ";
  const std::string instead = "; " + std::string(kDecodedOnDevice.instead);
  const op::Decode* const decode = operations.front()->properties().decode;
  if (decode == nullptr || decode->fidelity != Fidelity::kNvjpeg)
    return config_error("decode: must be the first operation");
  if (decode->mode != ColorMode::kRgb)
    return config_error(what + "the GPU decoder produces RGB, not mode \"L\"" + instead);
  if (!operations.front().fields.empty())
    return config_error(what + "the GPU decoder decodes all images of a sample, so fields= is not supported" + instead);
  if (cache) return config_error(what + "cache stores pixels that the CPU decodes" + instead);
  if (map != nullptr) return config_error(what + "functions of map need fields on the host" + instead);
  if (views != nullptr) return config_error(what + "a GPU does not support views" + instead);
  return check_device_operations(std::span(operations).subspan(1), kDecodedOnDevice);
}

// ---- the stages of make_recipe(), each of which uses the results of the previous ones ----

void take_source(Recipe& recipe, const Source& source) {
  recipe.dataset = source.name();
  recipe.format = source.format();
  recipe.records = format::records_of(recipe.format);
  recipe.rows = format::rows_of(recipe.format);
  recipe.mixture = source.mixture();
  recipe.seen_depth = source.seen_depth();
  recipe.checkpoints = source.checkpoints();
  recipe.videos = source.videos();
  recipe.audio_headers = source.audio_headers();
  recipe.foreground = source.foreground();
  recipe.ragged = format::is_ragged(*recipe.format);
}

// For formats that store samples as rows: the rows are delivered as stored.
Result<void> take_rows(Recipe& recipe, const std::vector<Operation>& operations, std::optional<DType> dtype) {
  if (!operations.empty())
    return config_error(
        std::string(name_of(operations.front())) + ": the samples of \"" + recipe.dataset +
        "\" are arrays, but operations need images; use map(function) for arrays, or volumes=True to crop .npy files");
  if (dtype) return config_error("dtype needs images: the samples of \"" + recipe.dataset + "\" are arrays");
  for (const format::FieldDescription& field : recipe.format->fields())
    recipe.stored_schema.push_back({field.name, field.array});
  return {};
}

// Operations need pixels or audio, and videos need clips for operations on pixels.
Result<void> check_pixels(const Recipe& recipe, const std::vector<Operation>& operations, std::optional<DType> dtype) {
  const auto& fields = recipe.format->fields();
  const auto of_audio = std::ranges::find_if(operations, &is_for_audio);
  if (of_audio != operations.end() && std::ranges::none_of(with_sounds(fields, operations), &is_audio))
    return config_error(std::string(name_of(*of_audio)) + ": the samples of \"" + recipe.dataset + "\" have no audio");
  const auto of_videos = std::ranges::find_if(operations, &is_for_videos);
  if (of_videos != operations.end() && std::ranges::none_of(fields, &is_video))
    return config_error(std::string(name_of(*of_videos)) + ": the samples of \"" + recipe.dataset +
                        "\" have no video; mark one with \":video\" in fields= of open()");
  const auto of_volumes = std::ranges::find_if(operations, &is_for_volumes);
  if (of_volumes != operations.end() && std::ranges::none_of(fields, &is_volume))
    return config_error(std::string(name_of(*of_volumes)) + ": the samples of \"" + recipe.dataset +
                        "\" have no volumes");
  const auto of_pixels = std::ranges::find_if_not(
      operations, [](const Operation& operation) { return is_for_audio(operation) || is_for_volumes(operation); });
  const bool are_only_videos = std::ranges::none_of(
      fields, [](const format::FieldDescription& field) { return is_pixels(field) && !is_video(field); });
  const auto needs_clip = [](const format::FieldDescription& field) { return is_video(field) && !field.frames; };
  if (std::ranges::any_of(fields, needs_clip) && are_only_videos && of_videos == operations.end() &&
      of_pixels != operations.end())
    return config_error(std::string(name_of(*of_pixels)) +
                        ": operations apply to the frames of a clip; add clip() or frames()");
  if (std::ranges::any_of(fields, &is_pixels)) return {};
  if (of_pixels == operations.end() && !dtype) return {};
  const std::string what = of_pixels == operations.end() ? "dtype" : std::string(name_of(*of_pixels));
  return config_error(what + ": the samples of \"" + recipe.dataset + "\" have no image");
}

Result<void> take_fields(Recipe& recipe, const FieldStages& stages) {
  for (const format::FieldDescription& field : recipe.format->fields()) {
    FEEDLINE_TRY(auto path, make_field_path(field, stages));
    recipe.first_rows.push_back(recipe.stored_schema.size());
    if (stages.has_device_elements)
      for (std::size_t i = 0; i < path->specs().size(); ++i) recipe.device_elements.push_back(path->device_elements(i));
    recipe.stored_schema.insert(recipe.stored_schema.end(), path->specs().begin(), path->specs().end());
    recipe.paths.push_back(std::move(path));
  }
  const auto is_decoded = [](const format::FieldDescription& field) {
    return field.kind != format::FieldKind::kInteger;
  };
  recipe.names_fields = std::ranges::count_if(recipe.format->fields(), is_decoded) > 1;
  return {};
}

void find_images(Recipe& recipe) {
  for (std::size_t i = 0; i < recipe.paths.size(); ++i) {
    auto image = std::dynamic_pointer_cast<const PixelsPath>(recipe.paths[i]);
    auto views = std::dynamic_pointer_cast<const ViewsPath>(recipe.paths[i]);
    if (auto deep = std::dynamic_pointer_cast<const DeepPath>(recipe.paths[i]); deep && !recipe.deep) {
      recipe.deep = std::move(deep);
      recipe.deep_field = i;
    }
    if (!image && !views) continue;
    if (recipe.images++ == 0) recipe.image_field = i;
    if (image && !recipe.image) recipe.image = std::move(image);
    if (views) recipe.views = std::move(views);
  }
}

// Boxes need the size of an image or mask, so fields are ordered by their dependencies.
void order_fields(Recipe& recipe, const std::vector<Operation>& operations) {
  const auto& fields = recipe.format->fields();
  const std::vector<std::string> labels = labels_of_boxes(operations);
  const auto stage_of = [&](std::size_t i) {
    if (is_boxes(fields[i])) return 1;
    return is_target(fields[i]) || std::ranges::find(labels, fields[i].name) != labels.end() ? 2 : 0;
  };
  for (const int stage : {0, 1, 2})
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (stage_of(i) == stage && !(recipe.images > 0 && i == recipe.image_field)) recipe.others.push_back(i);
}

void find_boxes(Recipe& recipe, const std::vector<Operation>& operations) {
  if (std::ranges::none_of(operations, &draws_by_boxes)) return;
  const auto& fields = recipe.format->fields();
  recipe.boxes_field = static_cast<std::size_t>(std::ranges::find_if(fields, &is_boxes) - fields.begin());
  recipe.boxes = std::dynamic_pointer_cast<const TargetPath>(recipe.paths[recipe.boxes_field]);
}

}  // namespace

Result<CachePoint> make_cache_point(const std::string& where, std::uint64_t budget, const Source& source,
                                    const std::vector<Operation>& operations) {
  const auto records = format::records_of(source.format());
  if (!records || records->is_in_memory())
    return config_error("cache: the samples of \"" + source.name() +
                        "\" are arrays, which are in memory or mapped already: a cache would be a second copy");
  for (const Operation& operation : operations)
    if (!operation.fields.empty() && operation->properties().boxes == nullptr)
      return config_error("cache: " + std::string(name_of(operation)) +
                          " before it applies only to some fields; place it after cache");
  FEEDLINE_TRY(auto pixels, PixelCache::make(where, budget, source.name(), *records, source.fingerprint(), operations));
  return CachePoint{std::move(pixels), where, operations.size()};
}

bool decodes_there(const std::vector<Operation>& operations) {
  return std::ranges::any_of(operations, [](const Operation& operation) {
    const op::Decode* const decode = operation->properties().decode;
    return decode != nullptr && decode->fidelity == Fidelity::kNvjpeg;
  });
}

Result<OnDevice> on_device(device::Device& device, const std::vector<Operation>& operations) {
  OnDevice there{device.makes_elements(), nullptr};
  if (!decodes_there(operations)) return there;
  if (device.is_host())
    return config_error(
        "decode(device=\"cuda\") decodes on a GPU, but this loader's batches stay on the host: pass loader() "
        "device=\"cuda\", or omit device= in decode");
  FEEDLINE_TRY(there.decoder, device.decode_images());
  return there;
}

Result<void> open_cache(const CachePoint& cache) { return cache.pixels->open(); }

bool is_on_device(const CachePoint& cache) { return cache.pixels->is_on_device(); }

Result<CachePoint> cache_on(device::Device& device, const CachePoint& cache, const Source& source) {
  FEEDLINE_TRY(auto pixels, cache.pixels->on(device, *format::records_of(source.format())));
  return CachePoint{std::move(pixels), cache.where, cache.position};
}

Result<Collation> make_collation(BatchForm form, std::vector<std::string> names, const Source& source,
                                 const MapPoint* map, const ViewPoint* views) {
  const auto records = format::records_of(source.format());
  if (!records && map == nullptr)
    return config_error("collate: the samples of \"" + source.name() +
                        "\" are arrays, which are always stacked, or padded if their lengths differ");
  const auto fields = fields_behind(source.format()->fields(), views);
  Collation collation{form, {}};
  collation.follows_map = map != nullptr;
  collation.is_for_all = map != nullptr && names.empty();
  for (const std::string& name : names) {
    const auto field = std::ranges::find(fields, name, &format::FieldDescription::name);
    if (map != nullptr && (field == fields.end() || map->takes(name))) {
      collation.fields.push_back(name);
      continue;
    }
    if (field == fields.end()) return config_error("collate: there is no field '" + name + "'");
    if (!can_collate(*field, form))
      return config_error("collate: '" + name + "' is " + std::string(format::name_of(field->kind)) +
                          ", which does not support this form; " + what_can(*field));
    collation.fields.push_back(name);
  }
  for (const format::FieldDescription& field : fields)
    if (names.empty() && can_collate(field, form)) collation.fields.push_back(field.name);
  if (collation.fields.empty() && !collation.is_for_all) {
    if (form == BatchForm::kPadded)
      return config_error(
          "collate: no field can be padded, because none is an array of varying length; resize images "
          "to one size, or use collate(\"list\")");
    std::string kinds;
    for (const format::FieldDescription& field : fields)
      kinds += (kinds.empty() ? "'" : ", '") + field.name + "' is " + std::string(format::name_of(field.kind));
    return config_error("collate: no field of \"" + source.name() + "\" supports this form (" + kinds +
                        "); omit collate, which such fields do not need");
  }
  return collation;
}

Result<void> check_operations(const Source& source, const std::vector<Operation>& operations,
                              const std::optional<CachePoint>& cache, const MapPoint* map, const ViewPoint* views) {
  const auto& stored = source.format()->fields();
  const auto fields = with_sounds(fields_behind(stored, views), operations);
  if (map != nullptr) FEEDLINE_CHECK_OK(check_map(source, operations, *map, views));
  bool is_chosen = false;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    FEEDLINE_CHECK_OK(check_chosen(views != nullptr && i < views->position ? stored : fields, operations[i]));
    is_chosen = is_chosen || !operations[i].fields.empty();
    if (holds_crop_by_boxes(operations[i]))
      return config_error(std::string(name_of(operations[i])) +
                          ": random_iou_crop cannot be part of a chain; call it on the dataset");
  }
  if (views != nullptr) FEEDLINE_CHECK_OK(check_views(operations, *views));
  if (!is_chosen && views == nullptr) FEEDLINE_CHECK_OK(transform::Chain::check(operations));
  for (const format::FieldDescription& field : stored)
    if ((is_chosen || views != nullptr) && is_pixels(field) && (views == nullptr || field.name != views->image))
      FEEDLINE_CHECK_OK(transform::Chain::check(transform::operations_for(operations, field.name)));
  for (std::size_t i = cache ? cache->position : operations.size(); i < operations.size(); ++i)
    if (operations[i]->properties().decode != nullptr)
      return config_error("decode: must be the first operation; the cache before it stores decoded pixels");
  if (cache && cache->pixels->is_on_device()) FEEDLINE_CHECK_OK(check_device_cache(operations, *cache, map, views));
  if (decodes_there(operations)) FEEDLINE_CHECK_OK(check_decoded(operations, cache, map, views));
  for (std::size_t i = cache ? cache->position : operations.size(); i < operations.size(); ++i)
    if (operations[i]->properties().boxes != nullptr)
      return config_error("boxes: the cache before it stores transformed boxes; place it before cache");
  return {};
}

Result<std::shared_ptr<const Recipe>> make_recipe(const Source& source, const std::vector<Operation>& operations,
                                                  std::optional<DType> dtype, Layout layout,
                                                  const std::optional<CachePoint>& cache,
                                                  const std::vector<Collation>& collations, const MapPoint* map,
                                                  const ViewPoint* views, const OnDevice& there, RowsFor rows_for) {
  auto recipe = std::make_shared<Recipe>();
  take_source(*recipe, source);
  if (recipe->rows) {
    FEEDLINE_CHECK_OK(take_rows(*recipe, operations, dtype));
    recipe->schema = recipe->stored_schema;
    if (map != nullptr) FEEDLINE_CHECK_OK(take_function(*recipe, *map, dtype, layout, collations, rows_for));
    return recipe;
  }
  // from here on the samples are records
  FEEDLINE_CHECK_OK(check_operations(source, operations, cache, map, views));
  FEEDLINE_CHECK_OK(check_pixels(*recipe, operations, dtype));
  FEEDLINE_CHECK_OK(check_targets(recipe->format->fields(), operations));
  FEEDLINE_CHECK_OK(take_fields(*recipe, {operations, dtype, layout, cache ? &*cache : nullptr, collations, map, views,
                                          *recipe->records, recipe->dataset, there.makes_elements && map == nullptr,
                                          there.decoder, rows_for, recipe->videos, source.foreground()}));
  recipe->has_clips =
      std::ranges::any_of(operations, &is_for_videos) ||
      std::ranges::any_of(recipe->format->fields(), [](const auto& field) { return field.frames != nullptr; });
  recipe->decoder = there.decoder;
  find_images(*recipe);
  order_fields(*recipe, operations);
  find_boxes(*recipe, operations);
  recipe->schema = recipe->stored_schema;
  if (map != nullptr) FEEDLINE_CHECK_OK(take_function(*recipe, *map, dtype, layout, collations, rows_for));
  if (cache) recipe->cache = cache->pixels;
  recipe->gathers = recipe->records->grain() > 1 && !cache && map == nullptr &&
                    std::ranges::all_of(recipe->paths, [](const auto& path) { return path->copies_numbers(); });
  return recipe;
}

std::vector<FieldRole> roles_of(const Source& source, const std::vector<Operation>& operations) {
  std::vector<FieldRole> roles;
  for (const format::FieldDescription& field : source.format()->fields()) {
    const auto own = transform::operations_for(operations, field.name);
    const op::Boxes boxes = transform::boxes_of(own);
    roles.push_back({field.name, std::string(format::name_of(field.kind)), boxes.format, boxes.clamps});
  }
  return roles;
}

std::uint64_t rows_at_once(const Recipe& recipe) {
  if (recipe.rows ? recipe.mapping != nullptr : !recipe.gathers) return 1;
  return std::max<std::uint64_t>(recipe.format->grain(), 1);
}

Source source_of(const Recipe& recipe) { return {recipe.dataset, recipe.format, recipe.mixture}; }

bool is_one_image(const Recipe& recipe) {
  return recipe.images == 1 && recipe.image && recipe.paths.size() == 1 && recipe.mapping == nullptr;
}

Fidelity fidelity_of(const Recipe& recipe) {
  if (recipe.decoder) return Fidelity::kNvjpeg;
  if (recipe.views) return recipe.views->fidelity();
  return recipe.image ? recipe.image->chain().fidelity() : Fidelity::kExact;
}

std::optional<Error> lasting_failure(const Recipe& recipe) {
  if (recipe.decoder) return recipe.decoder->failure();
  return recipe.cache ? recipe.cache->failure() : std::nullopt;
}

std::optional<CacheStats> cache_stats(const Recipe& recipe) {
  if (!recipe.cache) return std::nullopt;
  return recipe.cache->stats();
}

std::optional<CheckpointStats> checkpoint_stats(const Recipe& recipe) {
  if (!recipe.checkpoints) return std::nullopt;
  CheckpointStats stats = recipe.checkpoints->stats();
  if (stats.images == 0 && stats.damaged == 0) return std::nullopt;
  return stats;
}

std::optional<BlockStats> block_stats(const Recipe& recipe) {
  const format::BlockCounts counts = recipe.format->block_counts();
  if (counts.blocks == 0) return std::nullopt;
  return BlockStats{counts.blocks, counts.bytes, counts.delivered};
}

void write_checkpoints(const Recipe& recipe) {
  if (recipe.videos) recipe.videos->write();
  if (recipe.foreground) recipe.foreground->write();
  if (recipe.checkpoints) (void)recipe.checkpoints->write();  // a failure is in the statistics
}

namespace {

// Describes each field separately, unless the sample consists of one image and numbers.
std::vector<std::string> explain_fields(const Recipe& recipe) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < recipe.paths.size(); ++i)
    for (const std::string& line : recipe.paths[i]->explain())
      lines.push_back(recipe.format->fields()[i].name + ": " + line);
  return lines;
}

}  // namespace

std::vector<std::string> explain_map(const Recipe& recipe) {
  return recipe.mapping ? recipe.mapping->function->explain() : std::vector<std::string>();
}

std::vector<std::string> explain_images(const Recipe& recipe) {
  std::vector<std::string> lines;
  if (recipe.cache) {
    lines = recipe.cache->preparation()->explain();
    lines.push_back(recipe.cache->explain());
  }
  std::vector<std::string> of_fields;
  if (recipe.names_fields)
    of_fields = explain_fields(recipe);
  else if (recipe.images > 0)
    of_fields = recipe.paths[recipe.image_field]->explain();
  else
    for (const auto& path : recipe.paths) std::ranges::move(path->explain(), std::back_inserter(of_fields));
  std::ranges::move(of_fields, std::back_inserter(lines));
  if (std::string made = recipe.checkpoints ? recipe.checkpoints->explain() : ""; !made.empty())
    lines.push_back(std::move(made));
  return lines;
}

Schema schema_of(const Recipe& recipe, std::span<const std::uint64_t> samples) {
  return with_lengths(recipe.schema, [&](std::size_t field) {
    std::uint64_t longest = 0;
    for (const std::uint64_t sample : samples) longest = std::max(longest, recipe.rows->length(sample, field));
    return longest;
  });
}

Schema longest_schema(const Recipe& recipe) {
  return with_lengths(recipe.schema, [&](std::size_t field) { return recipe.rows->longest(field); });
}

Schema schema_of_length(const Recipe& recipe, std::uint64_t length) {
  return with_lengths(recipe.schema, [length](std::size_t) { return length; });
}

Result<std::vector<DrawnValue>> draw_values(const Recipe& recipe, Size image, const base::SampleKey& key) {
  if (recipe.views) return recipe.views->values(image, key);
  transform::Drawing drawing;
  if (!recipe.image && recipe.deep) {
    FEEDLINE_CHECK_OK(recipe.deep->chain().draw(image, key, drawing));
    return recipe.deep->chain().values(drawing);
  }
  if (!recipe.image) return config_error("draw: the samples have no image to draw for");
  FEEDLINE_CHECK_OK(recipe.image->chain().draw(image, key, drawing));
  return recipe.image->chain().values(drawing);
}

Error with_location(Error error, const Recipe& recipe, std::uint64_t sample) {
  return with_location(std::move(error), *recipe.format, recipe.dataset, sample);
}

}  // namespace feedline::pipeline
