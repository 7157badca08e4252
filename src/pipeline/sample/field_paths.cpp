// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/field_paths.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "decode/deep_decoder.h"
#include "decode/labels.h"
#include "decode/text/json.h"
#include "decode/video/ffmpeg_library.h"
#include "memory/volume.h"
#include "pipeline/fields/array_path.h"
#include "pipeline/fields/audio_path.h"
#include "pipeline/fields/clip_path.h"
#include "pipeline/fields/deep_path.h"
#include "pipeline/fields/device_cache_path.h"
#include "pipeline/fields/device_decode_path.h"
#include "pipeline/fields/device_rows.h"
#include "pipeline/fields/mask_path.h"
#include "pipeline/fields/mask_stack_path.h"
#include "pipeline/fields/pixel_cache.h"
#include "pipeline/fields/pixels_path.h"
#include "pipeline/fields/stored_array.h"
#include "pipeline/fields/stored_path.h"
#include "pipeline/fields/target_path.h"
#include "pipeline/fields/value_path.h"
#include "pipeline/fields/views_path.h"
#include "pipeline/fields/volume_path.h"
#include "pipeline/media/audio_source.h"
#include "pipeline/media/video_source.h"
#include "pipeline/sample/mapping.h"
#include "pipeline/sample/view_point.h"
#include "text/utf8.h"
#include "transform/chain.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/image_operation.h"
#include "transform/shared_steps.h"
#include "transform/targets/label_chain.h"
#include "transform/targets/target_chain.h"

namespace feedline::pipeline {
namespace {

using Field = format::FieldDescription;
using format::FieldKind;

using Made = Result<std::shared_ptr<const FieldPath>>;

bool is_stored(const Field& field) {
  return field.kind == FieldKind::kBytes || field.kind == FieldKind::kText || field.kind == FieldKind::kJson;
}

// Returns whether the EXIF orientation is applied to the image to which the sample's targets and masks belong.
bool turns_image(const FieldStages& stages) {
  for (const Field& field : stages.records.fields()) {
    if (field.kind != FieldKind::kImage) continue;
    for (const Operation& operation : transform::operations_for(stages.operations, field.name))
      if (const op::Decode* decode = operation->properties().decode) return decode->applies_exif;
    return false;
  }
  return false;
}

// If the chain can produce rows of varying size, the error suggests collate("list").
template <typename Compile>
auto compiled(BatchForm form, Compile compile) -> decltype(compile(transform::Chain::OutputSize::kFixed)) {
  using OutputSize = transform::Chain::OutputSize;
  if (form == BatchForm::kList) return compile(OutputSize::kAny);
  auto chain = compile(OutputSize::kFixed);
  if (!chain && compile(OutputSize::kAny)) chain.error().what += ", or use collate(\"list\")";
  return chain;
}

bool is_target(const Field& field) { return field.kind == FieldKind::kBoxes || field.kind == FieldKind::kKeypoints; }

// Returns whether the field contains a sample's object masks, with shape (N, height, width).
bool is_stack(const Field& field) { return field.kind == FieldKind::kMask && field.array.shape.dims() == 3; }

// Calls read() with the field's value in one sample after another, until a value is not damaged.
template <typename Read>
auto first_of(const Field& field, const FieldStages& stages, Read read)
    -> decltype(read(std::declval<const memory::Record::Field&>())) {
  constexpr std::uint64_t kTries = 16;
  const format::RecordFormat& records = stages.records;
  const auto index = static_cast<std::size_t>(std::ranges::find(records.fields(), field.name, &Field::name) -
                                              records.fields().begin());
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  record.defers_audio = record.defers_videos = true;
  std::optional<Error> failure;
  const std::uint64_t tries = std::min(kTries, records.size());
  const auto note = [&](Error error, std::uint64_t sample) {
    if (!failure) failure = with_location(std::move(error), records, stages.dataset, sample);
  };
  for (std::uint64_t sample = 0; sample < tries; ++sample) {
    if (auto done = records.read(sample, record); !done) {
      note(std::move(done).error(), sample);
      continue;
    }
    if (record.fields[index].absent) continue;
    auto known = read(record.fields[index]);
    if (known) return known;
    known.error().what.insert(0, "field '" + field.name + "': ");
    note(std::move(known).error(), sample);
  }
  if (!failure) return config_error("'" + field.name + "': the first samples do not have this field");
  if (tries > 1) failure->what += "; none of the first " + std::to_string(tries) + " samples can be read";
  return std::unexpected(std::move(*failure));
}

Result<void> refuse_absent(const Field& field, BatchForm form) {
  if (!field.may_be_absent || form != BatchForm::kDense) return {};
  return config_error("'" + field.name +
                      "' is absent in some samples (missing=\"none\"), and an array cannot hold None: use "
                      "collate(\"list\", fields=[\"" +
                      field.name + "\"]), or missing=\"skip\" to leave out these samples");
}

// Functions receive images in their final dtype and layout.
transform::Chain::Elements elements_of(const FieldStages& stages, BatchForm form) {
  const bool are_on_device = stages.has_device_elements && form == BatchForm::kDense && stages.map == nullptr;
  return are_on_device ? transform::Chain::Elements::kOnDevice : transform::Chain::Elements::kMade;
}

int channels_of(const Shape& shape, Layout layout) { return static_cast<int>(shape[layout == Layout::kNchw ? 0 : 2]); }

Made make_device_cache_path(const Field& field, const FieldStages& stages, BatchForm form) {
  if (form != BatchForm::kDense)
    return config_error("cache(\"device\"): '" + field.name +
                        "' is collated as lists, which a GPU does not support; omit collate, or use cache(\"memory\")");
  const auto operations = transform::operations_for(stages.operations, field.name);
  const std::size_t first = stages.cache->position;
  const auto after = std::span(operations).subspan(first);
  FEEDLINE_CHECK_OK(check_device_operations(after));
  FEEDLINE_TRY(auto rest, transform::Chain::compile_rest(operations, first, stages.dtype, stages.layout,
                                                         transform::Chain::OutputSize::kFixed,
                                                         transform::Chain::Elements::kOnDeviceUnderRectangles));
  const auto elements = rest->device_elements();
  const Shape& shape = rest->output().shape;
  if (stages.cache->pixels->preparation()->channels() !=
      (elements ? elements->channels : channels_of(shape, stages.layout)))
    return config_error(
        "cache(\"device\"): a GPU cannot change the number of channels; place grayscale before the cache");
  const bool is_planar = !elements && stages.layout == Layout::kNchw;
  const Size size = elements
                        ? elements->size
                        : Size{static_cast<int>(shape[is_planar ? 1 : 0]), static_cast<int>(shape[is_planar ? 2 : 1])};
  const bool needs_size = std::ranges::any_of(operations, &transform::draws_by_size);
  const std::size_t row_bytes =
      device_row_bytes(after, size) + rectangles_bytes(elements ? elements->most_rectangles : 0);
  return std::make_shared<const DeviceCachePath>(field.name, stages.cache->pixels->preparation(), std::move(rest),
                                                 stages.layout, row_bytes, needs_size);
}

Made make_decoded_path(const Field& field, const FieldStages& stages, BatchForm form) {
  if (form != BatchForm::kDense)
    return config_error("decode(device=\"cuda\"): '" + field.name +
                        "' is collated as lists, which a GPU does not support; omit collate, or device= in decode");
  const auto operations = transform::operations_for(stages.operations, field.name);
  const auto compile = [&](Layout layout) {
    return transform::Chain::compile_rest(operations, 1, stages.dtype, layout, transform::Chain::OutputSize::kFixed,
                                          transform::Chain::Elements::kOnDeviceUnderRectangles);
  };
  FEEDLINE_TRY(auto rest, compile(stages.layout));
  FEEDLINE_TRY(auto on_host, compile(Layout::kNhwc));
  const Shape& shape = on_host->output().shape;
  const Size size{static_cast<int>(shape[0]), static_cast<int>(shape[1])};
  const bool needs_size = std::ranges::any_of(operations, &transform::draws_by_size);
  const auto elements = rest->device_elements();
  const std::size_t row_bytes = device_row_bytes(std::span(operations).subspan(1), size) +
                                rectangles_bytes(elements ? elements->most_rectangles : 0);
  return std::make_shared<const DeviceDecodePath>(field.name, stages.decoder, std::move(rest), std::move(on_host),
                                                  stages.layout, row_bytes,
                                                  operations.front()->properties().decode->applies_exif, needs_size);
}

Made make_deep_path(const Field& field, const FieldStages& stages, BatchForm form) {
  auto operations = transform::operations_for(stages.operations, field.name);
  const auto input_of = [&](const memory::Record::Field& stored) -> Result<transform::DeepInput> {
    decode::DeepDecoder decoder;
    FEEDLINE_TRY(const decode::DeepHeader header, open_deep_image(stored, operations, decoder));
    return transform::DeepInput{header.channels, header.dtype};
  };
  FEEDLINE_TRY(const transform::DeepInput input, first_of(field, stages, input_of));
  FEEDLINE_TRY(auto chain, compiled(form, [&](auto size) {
                 return transform::DeepChain::compile(operations, input, stages.dtype, stages.layout, size);
               }));
  return std::make_shared<const DeepPath>(field.name, std::move(chain), form);
}

Made make_pixels_path(const Field& field, const FieldStages& stages, BatchForm form) {
  if (transform::keeps_stored_values(transform::operations_for(stages.operations, field.name)))
    return make_deep_path(field, stages, form);
  if (stages.decoder != nullptr) return make_decoded_path(field, stages, form);
  if (stages.cache != nullptr && stages.cache->pixels->is_on_device())
    return make_device_cache_path(field, stages, form);
  const auto operations = transform::operations_for(stages.operations, field.name);
  const auto size =
      form == BatchForm::kList ? transform::Chain::OutputSize::kAny : transform::Chain::OutputSize::kFixed;
  const auto elements = elements_of(stages, form);
  FEEDLINE_TRY(auto chain, compiled(form, [&](auto of_size) {
                 return transform::Chain::compile(operations, stages.dtype, stages.layout, of_size, elements);
               }));
  PixelsPath::CacheSplit split;
  if (stages.cache != nullptr) {
    FEEDLINE_TRY(split.rest, transform::Chain::compile_rest(operations, stages.cache->position, stages.dtype,
                                                            stages.layout, size, elements));
    split.preparation = stages.cache->pixels->preparation();
  }
  const bool needs_size = std::ranges::any_of(operations, &transform::draws_by_size);
  return std::make_shared<const PixelsPath>(field.name, std::move(chain), std::move(split), form, needs_size);
}

bool belongs_to_boxes(const Field& field, const FieldStages& stages) {
  return std::ranges::count(labels_of_boxes(stages.operations), field.name) > 0;
}

// Transforms all masks of a sample, one after another.
Made make_mask_stack_path(const Field& field, const FieldStages& stages, BatchForm form) {
  if (stages.cache != nullptr)
    return config_error("cache: '" + field.name +
                        "' has a mask for each object, which a cache does not support; omit the field or the cache");
  FEEDLINE_TRY(auto chain, transform::LabelChain::compile(transform::operations_for(stages.operations, field.name)));
  const Size size = form == BatchForm::kPadded ? chain->size().value_or(Size{0, 0}) : Size{kAnyLength, kAnyLength};
  if (size.height == 0)
    return config_error("'" + field.name +
                        "': the chain has no fixed output size: add resize((height, width)), center_crop or a random "
                        "crop, or use collate(\"list\")");
  return std::make_shared<const MaskStackPath>(
      FieldSpec{.name = field.name, .array = {DType::kUint8, {kAnyLength, size.height, size.width}}, .form = form},
      std::move(chain), belongs_to_boxes(field, stages), turns_image(stages));
}

Made make_mask_path(const Field& field, const FieldStages& stages, BatchForm form) {
  const auto operations = transform::operations_for(stages.operations, field.name);
  FEEDLINE_TRY(auto chain, transform::LabelChain::compile(operations));
  MaskPath::CacheSplit split;
  if (stages.cache != nullptr) {
    const auto before = operations.begin(), after = before + static_cast<std::ptrdiff_t>(stages.cache->position);
    FEEDLINE_TRY(split.preparation, transform::LabelChain::compile({before, after}));
    FEEDLINE_TRY(split.rest, transform::LabelChain::compile(operations, stages.cache->position));
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
      std::move(split), turns_image(stages));
}

Made make_array_path(const Field& field, const FieldStages& stages, BatchForm form) {
  FEEDLINE_TRY(const ArraySpec first,
               first_of(field, stages, [](const memory::Record::Field& stored) -> Result<ArraySpec> {
                 FEEDLINE_TRY(const decode::NpyArray array, read_array(stored));
                 return array.spec;
               }));
  Shape shape = first.shape;
  if (form == BatchForm::kPadded && shape.dims() == 0)
    return config_error("collate: '" + field.name + "' holds scalars, which have no length to pad");
  if (form == BatchForm::kPadded) shape = shape.with_first(kAnyLength);
  if (form == BatchForm::kList) {
    Shape any;
    for (std::size_t i = 0; i < shape.dims(); ++i) any = any.with_front(kAnyLength);
    shape = any;
  }
  return std::make_shared<const ArrayPath>(
      FieldSpec{.name = field.name, .array = {first.dtype, shape}, .form = form, .pad = field.pad},
      belongs_to_boxes(field, stages));
}

// A batch's rows are padded unless audio(duration=) gives all the same length and collate("stack") requires it.
Made make_audio_path(const Field& field, const FieldStages& stages, BatchForm form) {
  if (stages.cache != nullptr)
    return config_error("cache: '" + field.name +
                        "' is audio, which a cache does not support; omit the field or the cache");
  FEEDLINE_TRY(const decode::AudioInfo first,
               first_of(field, stages, [](const memory::Record::Field& stored) -> Result<decode::AudioInfo> {
                 AudioSource source;
                 FEEDLINE_CHECK_OK(source.open(stored));
                 FEEDLINE_TRY(const auto reader, open_sample(source, stored));
                 return reader->info();
               }));
  FEEDLINE_TRY(AudioPlan plan, plan_audio(transform::operations_for(stages.operations, field.name), first));
  Shape shape{std::int64_t{plan.channels}, kAnyLength};
  if (form == BatchForm::kList) shape = {kAnyLength, kAnyLength};
  if (form == BatchForm::kDense) {
    if (!plan.audio.duration)
      return config_error("collate: '" + field.name +
                          "' has samples of any length; use audio(duration=) or collate(\"pad\")");
    shape = {std::int64_t{plan.channels}, std::llround(*plan.audio.duration * plan.rate)};
  }
  const DType dtype = plan.audio.dtype;
  return std::make_shared<const AudioPath>(FieldSpec{.name = field.name, .array = {dtype, shape}, .form = form},
                                           std::move(plan));
}

Result<void> take_any(std::span<const std::byte> /*stored*/) { return {}; }

// Returns the plan of clip() or frames() if a video's operations include one.
Result<std::optional<ClipPlan>> clip_plan_of(const Field& field, const FieldStages& stages) {
  std::optional<ClipPlan> plan;
  if (field.frames) plan.emplace(ClipPlan{.given = *field.frames});
  const auto operations = transform::operations_for(stages.operations, field.name);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const transform::Properties properties = operations[i]->properties();
    if (!properties.is_for_videos()) continue;
    if (field.frames)
      return config_error(std::string(name_of(operations[i])) + ": open() has chosen the frames of '" + field.name +
                          "'; pass delta_timestamps= to open()");
    if (plan) return config_error(std::string(name_of(operations[i])) + ": '" + field.name + "' already has a clip");
    plan.emplace(ClipPlan{.stream = static_cast<std::uint32_t>(i)});
    if (properties.clip != nullptr) plan->clip = *properties.clip;
    if (properties.frames != nullptr) plan->frames = *properties.frames;
  }
  return plan;
}

// Returns the path that delivers the sound of clips.
Result<std::unique_ptr<const AudioPath>> make_sound_path(const Field& video, const ClipPlan& plan,
                                                         const FieldStages& stages, BatchForm of_video) {
  const std::string name = sound_of(video.name);
  if (std::ranges::count(stages.records.fields(), name, &Field::name) > 0)
    return config_error("clip: the sound of '" + video.name + "' is delivered as '" + name +
                        "', but the samples have a field with this name; rename it in fields= of open()");
  FEEDLINE_TRY(const decode::AudioInfo first,
               first_of(video, stages, [&](const memory::Record::Field& stored) -> Result<decode::AudioInfo> {
                 VideoSource source;
                 FEEDLINE_CHECK_OK(source.open(stored));
                 FEEDLINE_TRY(const auto indexed, stages.videos->find(source, plan.video_stream()));
                 FEEDLINE_TRY(const auto sound, stages.videos->find_sound(source, *indexed));
                 return decode::AudioInfo{.rate = sound->rate, .channels = sound->channels};
               }));
  FEEDLINE_TRY(AudioPlan audio, plan_audio(transform::operations_for(stages.operations, name), first));
  if (audio.audio.offset != 0 || audio.audio.duration || audio.speed)
    return config_error(std::string(audio.speed ? "speed_perturbation" : "audio: offset= and duration=") +
                        ": the sound of a clip has the times of its frames; omit " +
                        (audio.speed ? "the operation" : "them"));
  const bool is_list = of_video == BatchForm::kList || stages.rows_for == RowsFor::kSingleSamples ||
                       (stages.map != nullptr && stages.map->takes(name));
  Shape shape{is_list ? kAnyLength : std::int64_t{audio.channels}, kAnyLength};
  if (plan.clips() > 1) shape = shape.with_front(is_list ? kAnyLength : std::int64_t{plan.clips()});
  const BatchForm form = is_list ? BatchForm::kList : BatchForm::kPadded;
  const DType dtype = audio.audio.dtype;
  return std::make_unique<const AudioPath>(FieldSpec{.name = name, .array = {dtype, shape}, .form = form},
                                           std::move(audio));
}

// Without clip() or frames(), videos are delivered as they are stored.
Made make_clip_path(const Field& field, const FieldStages& stages, BatchForm form) {
  FEEDLINE_TRY(auto plan, clip_plan_of(field, stages));
  if (!plan) return std::make_shared<const StoredPath>(field.name, Content::kBytes, &take_any);
  if (stages.cache != nullptr)
    return config_error("cache: '" + field.name +
                        "' is a video, which a cache does not support; omit the field or the cache");
  if (const auto& library = decode::ffmpeg_library(); !library && !plan->are_images())
    return std::unexpected(library.error());
  const auto operations = transform::operations_for(stages.operations, field.name);
  FEEDLINE_TRY(auto chain, compiled(form, [&](auto of_size) {
                 return transform::Chain::compile(operations, stages.dtype, stages.layout, of_size,
                                                  transform::Chain::Elements::kMade,
                                                  plan->given ? plan->given->size : std::nullopt);
               }));
  const ArraySpec& one = chain->output();
  // the rows of facts are lists if a sample may lack the video
  const BatchForm of_facts = field.may_be_absent ? BatchForm::kList : BatchForm::kDense;
  std::vector<FieldSpec> specs{{.name = field.name, .array = {one.dtype, plan->shape_of(one.shape)}, .form = form}};
  if (plan->has_timestamps())
    specs.push_back({.name = field.name + "_timestamps", .array = {DType::kFloat64, plan->shape()}, .form = of_facts});
  if (plan->has_pads())
    specs.push_back({.name = field.name + "_is_pad", .array = {DType::kBool, plan->shape()}, .form = of_facts});
  std::unique_ptr<const AudioPath> sound;
  if (plan->has_sound()) {
    FEEDLINE_TRY(sound, make_sound_path(field, *plan, stages, form));
    specs.push_back(sound->spec());
  }
  return std::make_shared<const ClipPath>(std::move(specs), *std::move(plan), std::move(chain), stages.videos,
                                          std::move(sound));
}

// The delivered patch has the dtype and, in dense batches, the shape of the first sample's.
Made make_volume_path(const Field& field, const FieldStages& stages, BatchForm form) {
  if (stages.cache != nullptr)
    return config_error("cache: '" + field.name + "' is a volume, which a cache does not support; omit the cache");
  std::vector<PatchField> fields;
  for (const Field& other : stages.records.fields()) fields.push_back({other.name, other.kind == FieldKind::kVolume});
  FEEDLINE_TRY(auto plan, plan_patch(stages.operations, fields, stages.foreground));
  auto own = transform::operations_for(stages.operations, field.name);
  Shape chunk;
  FEEDLINE_TRY(const ArraySpec first,
               first_of(field, stages, [&](const memory::Record::Field& stored) -> Result<ArraySpec> {
                 ArraySpec spec = stored.volume->spec();
                 chunk = stored.volume->chunk();
                 const std::size_t dims = spec.shape.dims(), count = plan->count(dims);
                 if (count > dims)
                   return config_error("the volume has " + std::to_string(dims) + " dimensions, but the patches have " +
                                       std::to_string(count));
                 if (spec.dtype == DType::kFloat16)
                   return config_error("volumes of float16 are not supported; convert them to float32");
                 const std::size_t start = stored.volume->has_spatial_axes_first() ? 0 : dims - count;
                 if (plan->patch)
                   for (std::size_t i = 0; i < count; ++i)
                     spec.shape = spec.shape.with_extent(start + i, plan->patch->size[i]);
                 return spec;
               }));
  const DType dtype = delivered_dtype(*plan, own, first.dtype, field.has_labels);
  Shape shape = first.shape;
  if (form == BatchForm::kList)
    for (std::size_t i = 0; i < shape.dims(); ++i) shape = shape.with_extent(i, kAnyLength);
  std::vector<FieldSpec> specs{{.name = field.name, .array = {dtype, shape}, .form = form}};
  const bool is_first = std::ranges::find(fields, true, &PatchField::is_volume)->name == field.name;
  if (plan->is_grid && is_first)
    for (const char* name : {"patch_position", "volume_shape"})
      specs.push_back({.name = name,
                       .array = {DType::kInt64, {static_cast<std::int64_t>(plan->patch->size.size())}},
                       .form = BatchForm::kDense});
  return std::make_shared<const VolumePath>(std::move(specs), std::move(plan), std::move(own), field.has_labels, chunk);
}

TargetPath::Part part_of(const Field& field, const FieldStages& stages) {
  if (belongs_to_boxes(field, stages)) return TargetPath::Part::kBelongsToBoxes;
  const bool is_only = std::ranges::count(stages.records.fields(), FieldKind::kBoxes, &Field::kind) == 1;
  return field.kind == FieldKind::kBoxes && is_only ? TargetPath::Part::kLeads : TargetPath::Part::kAlone;
}

// Returns the shape of all rows: for dense batches, the shape of the first row; otherwise, a shape in which the number
// of boxes or points may vary.
Shape shape_of_targets(const ArraySpec& first, transform::TargetKind kind, BatchForm form) {
  if (form == BatchForm::kDense) return first.shape;
  if (kind == transform::TargetKind::kBoxes) return {kAnyLength, 4};
  if (first.shape.dims() < 3) return {kAnyLength, 2};
  return {kAnyLength, form == BatchForm::kList ? kAnyLength : first.shape[1], 2};
}

Made make_target_path(const Field& field, const FieldStages& stages, BatchForm form) {
  const auto kind = field.kind == FieldKind::kBoxes ? transform::TargetKind::kBoxes : transform::TargetKind::kPoints;
  const auto operations = transform::operations_for(stages.operations, field.name);
  const op::Boxes boxes = transform::boxes_of(operations);
  FEEDLINE_TRY(auto chain, transform::TargetChain::compile(kind, boxes, operations));
  TargetPath::CacheSplit split;
  if (stages.cache != nullptr) {
    const auto before = operations.begin(), after = before + static_cast<std::ptrdiff_t>(stages.cache->position);
    FEEDLINE_TRY(split.preparation, transform::TargetChain::compile(kind, boxes, {before, after}));
    FEEDLINE_TRY(split.rest, transform::TargetChain::compile(kind, boxes, operations, stages.cache->position));
  }
  const bool sanitizes = std::ranges::any_of(
      operations, [](const Operation& operation) { return operation->properties().sanitize != nullptr; });
  const bool refuses_unsound = field.kind == FieldKind::kBoxes && !boxes.takes_unsound && !sanitizes;
  // an empty list in JSON does not define the shape
  const auto first = first_of(field, stages, [kind](const memory::Record::Field& stored) -> Result<ArraySpec> {
    FEEDLINE_TRY(const ArraySpec spec, read_target_spec(kind, stored));
    if (spec.shape.dims() == 1) return config_error("the field has no rows in the first samples");
    return spec;
  });
  if (!first) return std::unexpected(first.error());
  return std::make_shared<const TargetPath>(
      FieldSpec{.name = field.name, .array = {first->dtype, shape_of_targets(*first, kind, form)}, .form = form},
      std::move(chain), std::move(split), part_of(field, stages), refuses_unsound, turns_image(stages));
}

bool has_clip(const Field& field, const FieldStages& stages) {
  return field.frames != nullptr ||
         std::ranges::any_of(transform::operations_for(stages.operations, field.name),
                             [](const Operation& operation) { return operation->properties().is_for_videos(); });
}

bool has_patch(const std::vector<Operation>& operations) {
  return std::ranges::any_of(operations,
                             [](const Operation& operation) { return operation->properties().patch != nullptr; });
}

// Returns the BatchForm of a field. Functions receive the fields of one sample, in any shape. source: the image of a
// view; nullptr if the field is not a view.
BatchForm form_of(const Field& field, const FieldStages& stages, const std::string* source = nullptr) {
  if (field.kind == FieldKind::kVideo && !has_clip(field, stages)) return BatchForm::kList;
  const bool is_whole_volume = field.kind == FieldKind::kVolume && !has_patch(stages.operations);
  if (stages.map != nullptr && stages.map->takes(field.name))
    return can_collate(field, BatchForm::kList) ? BatchForm::kList : BatchForm::kDense;
  // stored arrays with a row per object are lists, like boxes
  const bool is_ragged = field.kind == FieldKind::kArray && field.array.is_ragged();
  const bool is_padded = is_ragged && stages.records.is_in_memory();
  const bool has_lengths =
      is_target(field) || is_stack(field) || (is_ragged && !is_padded) || belongs_to_boxes(field, stages);
  BatchForm form = is_stored(field) || has_lengths || is_whole_volume ? BatchForm::kList
                   : is_padded || field.kind == FieldKind::kAudio     ? BatchForm::kPadded
                                                                      : BatchForm::kDense;
  // collations of an image apply to each of its views
  const auto names = [&](const Collation& collation, const std::string& name) {
    return std::ranges::find(collation.fields, name) != collation.fields.end();
  };
  for (const Collation& collation : stages.collations)
    if (names(collation, field.name) || (source != nullptr && names(collation, *source)) ||
        (collation.is_for_all && can_collate(field, collation.form)))
      form = collation.form;
  if (stages.rows_for == RowsFor::kSingleSamples && can_collate(field, BatchForm::kList)) return BatchForm::kList;
  return form;
}

ArraySpec spec_delivered(const transform::Chain& chain) {
  const auto elements = chain.device_elements();
  return elements ? elements->spec : chain.output();
}

// Views that are stacked in one array must share one conversion table.
bool are_left_alike(std::span<const ViewsPath::View> views) {
  const auto elements_of_view = [](const ViewsPath::View& view) { return view.chain->device_elements(); };
  const auto first = elements_of_view(views.front());
  return std::ranges::all_of(views, [&](const ViewsPath::View& view) {
    const auto elements = elements_of_view(view);
    return (elements == nullptr) == (first == nullptr) && (!elements || elements->tables == first->tables);
  });
}

// Adds a field of views, and the chain of each view.
Result<FieldSpec> add_views(const Field& image, const FieldStages& stages, std::size_t number,
                            std::vector<ViewsPath::View>& views, bool has_device_elements = true) {
  const ViewPoint::Field& field = stages.views->fields[number];
  Field described = image;
  described.name = field.name;
  const BatchForm form = form_of(described, stages, &image.name);
  FEEDLINE_CHECK_OK(refuse_absent(described, form));
  const auto elements = has_device_elements ? elements_of(stages, form) : transform::Chain::Elements::kMade;
  const std::size_t before = views.size();
  for (std::size_t i = 0; i < field.views.size(); ++i) {
    const auto operations = stages.views->operations_of(stages.operations, number, i);
    const auto compile = [&](auto size) {
      return transform::Chain::compile_view(operations, stages.views->position,
                                            static_cast<std::uint32_t>(views.size()), stages.dtype, stages.layout, size,
                                            field.drawn_as, elements);
    };
    auto chain = field.is_stacked ? compile(transform::Chain::OutputSize::kFixed) : compiled(form, compile);
    if (!chain) return config_error("'" + field.name + "': " + chain.error().what);
    if (i > 0 && spec_delivered(**chain) != spec_delivered(*views.back().chain))
      return config_error("'" + field.name + "': its views differ in shape");
    views.push_back({std::move(*chain), field.is_stacked ? field.name + "[" + std::to_string(i) + "]" : field.name,
                     number, i, field.is_stacked});
  }
  if (!are_left_alike(std::span(views).subspan(before))) {
    views.erase(views.begin() + static_cast<std::ptrdiff_t>(before), views.end());
    return add_views(image, stages, number, views, false);
  }
  ArraySpec array = views.back().chain->output();
  if (field.is_stacked) array.shape = array.shape.with_front(static_cast<std::int64_t>(field.views.size()));
  return FieldSpec{.name = field.name, .array = array, .form = form};
}

Made make_views_path(const Field& image, const FieldStages& stages) {
  const ViewPoint& point = *stages.views;
  const auto operations = point.shared(stages.operations);
  FEEDLINE_TRY(auto shared, transform::SharedSteps::compile(operations));
  ViewsPath::CacheSplit split;
  if (stages.cache != nullptr) {
    FEEDLINE_TRY(split.shared, transform::SharedSteps::compile(operations, stages.cache->position));
    split.preparation = stages.cache->pixels->preparation();
  }
  std::vector<FieldSpec> specs;
  std::vector<ViewsPath::View> views;
  for (std::size_t i = 0; i < point.fields.size(); ++i) {
    FEEDLINE_TRY(auto spec, add_views(image, stages, i, views));
    specs.push_back(std::move(spec));
  }
  const bool needs_size = std::ranges::any_of(operations, &transform::draws_by_size);
  return std::make_shared<const ViewsPath>(image.name, std::move(specs), std::move(views), std::move(shared),
                                           std::move(split), needs_size);
}

}  // namespace

bool can_collate(const Field& field, BatchForm form) {
  switch (form) {
    case BatchForm::kDense:
      return !is_stored(field) && !is_stack(field);
    case BatchForm::kPadded:
      return field.kind == FieldKind::kArray || field.kind == FieldKind::kAudio || is_stack(field) || is_target(field);
    case BatchForm::kList:
      return field.kind != FieldKind::kInteger || field.may_be_absent;
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

std::string sound_of(const std::string& video) { return video == "video" ? "audio" : video + "_audio"; }

std::vector<std::string> labels_of_boxes(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations)
    if (const auto* sanitize = operation->properties().sanitize) return sanitize->labels;
  return {};
}

Made make_field_path(const Field& field, const FieldStages& stages) {
  if (stages.views != nullptr && field.name == stages.views->image) return make_views_path(field, stages);
  const BatchForm form = form_of(field, stages);
  FEEDLINE_CHECK_OK(refuse_absent(field, form));
  switch (field.kind) {
    case FieldKind::kImage:
      return make_pixels_path(field, stages, form);
    case FieldKind::kMask:
      return is_stack(field) ? make_mask_stack_path(field, stages, form) : make_mask_path(field, stages, form);
    case FieldKind::kInteger:
      return std::make_shared<const ValuePath>(field.name, form);
    case FieldKind::kArray:
      return make_array_path(field, stages, form);
    case FieldKind::kBoxes:
    case FieldKind::kKeypoints:
      return make_target_path(field, stages, form);
    case FieldKind::kAudio:
      return make_audio_path(field, stages, form);
    case FieldKind::kVideo:
      return make_clip_path(field, stages, form);
    case FieldKind::kVolume:
      return make_volume_path(field, stages, form);
    case FieldKind::kBytes:
      return std::make_shared<const StoredPath>(field.name, Content::kBytes, &take_any);
    case FieldKind::kText:
      return std::make_shared<const StoredPath>(field.name, Content::kText, &text::check_utf8);
    case FieldKind::kJson:
      return std::make_shared<const StoredPath>(field.name, Content::kJson, &decode::check_json);
  }
  FEEDLINE_CHECK(!"a field without a kind");
}

}  // namespace feedline::pipeline
