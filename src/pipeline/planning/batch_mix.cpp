// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/batch_mix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "batch/batch_layout.h"
#include "format/format.h"
#include "pipeline/sample/mapping.h"
#include "pipeline/sample/recipe.h"
#include "transform/chain.h"

namespace feedline::pipeline {
namespace {

// The first random stream of mixing, far above those of a sample's operations: row or pair r of a batch uses stream
// kStream + r.
constexpr std::uint32_t kStream = 0xFF000000u;
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostClasses = std::numeric_limits<std::int32_t>::max();

// The bounds of alpha in Beta(alpha, alpha). At the lower bound, every share is 0 or 1; at the upper bound, every share
// is 0.5 within 1e-5. Outside the bounds, the rejection methods (mixup.cpp) exceed the range of double and never accept
// a number.
constexpr double kLeastAlpha = 1e-9, kMostAlpha = 1e9;

std::string shown(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string_view name_of(MixMode mode) {
  switch (mode) {
    case MixMode::kBatch:
      return "batch";
    case MixMode::kElem:
      return "elem";
    case MixMode::kHalf:
      return "half";
    case MixMode::kPair:
      return "pair";
  }
  return "unknown";
}

Result<void> check_alpha(const char* name, double alpha) {
  if (alpha == 0 || (alpha >= kLeastAlpha && alpha <= kMostAlpha)) return {};
  return config_error(std::string("loader: ") + name + " is the alpha of Beta(alpha, alpha) and must be 0 or from " +
                      shown(kLeastAlpha) + " to " + shown(kMostAlpha) + ", got " + shown(alpha));
}

Result<void> check_share(const char* name, double value) {
  if (value >= 0 && value <= 1) return {};
  return config_error(std::string("loader: ") + name + " must be between 0 and 1, got " + shown(value));
}

// Returns the source's description of a field, or nullptr if a function created the field.
const format::FieldDescription* described(const Recipe& recipe, const std::string& name) {
  const auto& fields = recipe.format->fields();
  const auto found = std::ranges::find(fields, name, &format::FieldDescription::name);
  return found == fields.end() ? nullptr : &*found;
}

bool is_made(const Recipe& recipe, std::size_t field_index) {
  return recipe.mapping && std::ranges::find(recipe.mapping->gives, field_index) != recipe.mapping->gives.end();
}

bool is_class(const FieldSpec& field) {
  return !field.has_variable_size() && field.content == Content::kArray && field.array == ArraySpec{DType::kInt64, {}};
}

// Returns whether mixing leaves fields of this kind unchanged. For other kinds, such as masks, mixing is not defined.
bool may_stay(format::FieldKind kind) {
  using format::FieldKind;
  return kind == FieldKind::kInteger || kind == FieldKind::kArray || kind == FieldKind::kBytes ||
         kind == FieldKind::kText || kind == FieldKind::kJson || kind == FieldKind::kAudio || kind == FieldKind::kVideo;
}

// If there are several integer fields, selects the one whose name is usual for labels.
Result<std::size_t> find_label(const Schema& schema) {
  std::vector<std::size_t> classes;
  std::string names;
  for (std::size_t i = 0; i < schema.size(); ++i) {
    names += (names.empty() ? "" : ", ") + schema[i].name;
    if (is_class(schema[i])) classes.push_back(i);
  }
  if (classes.size() == 1) return classes.front();
  for (const char* name : {"label", "cls", "target"})
    for (const std::size_t i : classes)
      if (schema[i].name == name) return i;
  return config_error("loader: mixup and cutmix need an integer label, but the samples have " +
                      std::string(classes.empty() ? "none" : "several, and no field is named label, cls or target") +
                      "; their fields are " + names);
}

}  // namespace

// The rows of one batch.
struct BatchMix::Rows {
  const BatchMix& mix;
  const batch::BatchLayout& layout;
  std::byte* data;
  std::uint64_t count;
  std::vector<transform::RowMix>& later;  // empty if no image is left to a device
  std::span<const std::int64_t> classes = layout.classes(data);

  // Calls work(rows of a field) for each image field that the CPU mixes.
  template <typename Work>
  void each_image(Work work) const {
    for (std::size_t i = 0; i < mix.images_.size(); ++i) {
      if (mix.is_on_device_[i]) continue;
      transform::MixedRows rows = mix.shapes_[i];
      rows.data = layout.field_view(data, mix.images_[i], count).data;
      work(rows);
    }
  }
  // Computes a row's target, and records the mix for the device.
  void take_partner(std::uint64_t row, std::uint64_t partner, const transform::Mix& mixed) const {
    fill_target(row, partner, mixed.share);
    if (!later.empty()) later[row] = {row, partner, mixed};
  }
  void fill_target(std::uint64_t row, std::uint64_t partner, double share) const {
    const auto length = static_cast<std::size_t>(mix.classes_);
    auto* const targets = layout.field_view(data, mix.label_, count).as<float>();
    transform::fill_target({targets + row * length, length}, classes[row], classes[partner], share, mix.smoothing_);
  }
};

Result<std::shared_ptr<const BatchMix>> BatchMix::make(const Recipe& recipe, const LoaderOptions& options) {
  FEEDLINE_CHECK_OK(check_alpha("mixup", options.mixup));
  FEEDLINE_CHECK_OK(check_alpha("cutmix", options.cutmix));
  FEEDLINE_CHECK_OK(check_share("mix_probability", options.mix_probability));
  FEEDLINE_CHECK_OK(check_share("switch_probability", options.switch_probability));
  FEEDLINE_CHECK_OK(check_share("label_smoothing", options.label_smoothing));
  if (options.mixup == 0 && options.cutmix == 0) {
    if (options.label_smoothing > 0)
      return config_error("loader: label_smoothing needs mixup or cutmix; without them, pass it to the loss");
    return nullptr;
  }
  std::shared_ptr<BatchMix> mix(new BatchMix);
  FEEDLINE_CHECK_OK(mix->take_options(options));
  FEEDLINE_CHECK_OK(mix->take_fields(recipe, options.layout));
  FEEDLINE_CHECK_OK(mix->take_classes(recipe, options));
  return mix;
}

Result<void> BatchMix::take_options(const LoaderOptions& options) {
  rules_ = {options.mixup, options.cutmix, options.mix_probability, options.switch_probability};
  mode_ = options.mix_mode;
  smoothing_ = options.label_smoothing;
  partner_ = options.partner.value_or(mode_ == MixMode::kBatch ? MixPartner::kRoll : MixPartner::kFlip);
  const std::string mode = "mix_mode=\"" + std::string(name_of(mode_)) + "\"";
  if (mode_ != MixMode::kBatch && partner_ == MixPartner::kRoll)
    return config_error("loader: partner=\"roll\" needs mix_mode=\"batch\"; " + mode + " mixes row i with n - 1 - i");
  const std::uint64_t rows = options.batch_size.value_or(0);
  if (partner_ == MixPartner::kFlip && rows > 1 && rows % 2 != 0)
    return config_error("loader: " + (mode_ == MixMode::kBatch ? std::string("partner=\"flip\"") : mode) +
                        " mixes pairs of rows: batch_size must be even, got " + std::to_string(rows));
  if (rows > kMostRows)
    return config_error("loader: mixup and cutmix support batches of up to " + std::to_string(kMostRows) + " rows");
  if (options.on_error == OnError::kReport)
    return config_error("loader: mixup and cutmix need every row, but on_error=\"report\" leaves out bad rows");
  return {};
}

Result<void> BatchMix::take_fields(const Recipe& recipe, Layout layout) {
  if (recipe.views)
    return config_error("loader: mixup and cutmix need one image per sample, but these samples have views");
  schema_ = recipe.schema;
  for (std::size_t i = 0; i < schema_.size(); ++i) {
    const format::FieldDescription* field = described(recipe, schema_[i].name);
    if (field == nullptr) continue;
    if (field->kind == format::FieldKind::kImage)
      FEEDLINE_CHECK_OK(take_image(
          schema_[i], i < recipe.device_elements.size() ? recipe.device_elements[i].get() : nullptr, i, layout));
    else if (!may_stay(field->kind))
      return config_error("loader: mixup and cutmix mix images and their classes, but '" + field->name +
                          "' is of kind " + std::string(format::name_of(field->kind)) + "; omit this field in open()");
  }
  if (images_.empty())
    return config_error("loader: mixup and cutmix need images, but the samples of \"" + recipe.dataset +
                        "\" have none");
  FEEDLINE_TRY(label_, find_label(schema_));
  return {};
}

// elements: the device's work on the field's bytes; nullptr if the CPU computes the field.
Result<void> BatchMix::take_image(const FieldSpec& field, const transform::DeviceElements* elements,
                                  std::size_t field_index, Layout layout) {
  const auto refuse = [&](const std::string& why) {
    return config_error("loader: mixup and cutmix: '" + field.name + "' " + why);
  };
  if (field.has_variable_size())
    return refuse("has rows of different sizes, which cannot be mixed; resize or crop them to one size");
  const ArraySpec& array = elements ? elements->spec : field.array;
  const DType dtype = array.dtype;
  if (!elements && dtype == DType::kBfloat16)
    return refuse("is bfloat16, which only a GPU can mix; use float16 or float32");
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBfloat16)
    return refuse("is " + std::string(feedline::name_of(dtype)) +
                  ", in which mixed values would be rounded; use normalize, to_dtype or " +
                  (dtype == DType::kUint8 ? "dtype=\"float32\"" : "decode(dtype=\"float32\")"));
  if (array.shape.dims() != 3) return refuse("is not an image with channels, height and width");
  const std::int64_t* const extents = array.shape.begin();
  const bool planar = layout == Layout::kNchw;
  const Size size{static_cast<int>(extents[planar ? 1 : 0]), static_cast<int>(extents[planar ? 2 : 1])};
  const auto channels = static_cast<int>(extents[planar ? 0 : 2]);
  if (size.height < 1 || size.width < 1) return refuse("has no pixels");
  if (!shapes_.empty() && rules_.cutmix > 0 &&
      (size.height != shapes_[0].image.height || size.width != shapes_[0].image.width))
    return refuse("differs in size from '" + schema_[images_[0]].name + "', but cutmix uses one box for both");
  images_.push_back(field_index);
  shapes_.push_back({nullptr, dtype, size, channels, layout});
  is_on_device_.push_back(elements != nullptr);
  has_device_images_ = has_device_images_ || elements != nullptr;
  return {};
}

Result<void> BatchMix::take_classes(const Recipe& recipe, const LoaderOptions& options) {
  const std::uint64_t known = is_made(recipe, label_) ? 0 : source_of(recipe).classes().size();
  const std::uint64_t classes = options.num_classes > 0 ? options.num_classes : known;
  if (classes == 0)
    return config_error("loader: mixup and cutmix make targets for all classes: pass num_classes, which \"" +
                        recipe.dataset + "\" does not define");
  if (classes < known || classes > kMostClasses)
    return config_error("loader: num_classes=" + std::to_string(classes) + " is " +
                        (classes < known ? "less than the " + std::to_string(known) + " classes of the dataset"
                                         : std::string("over 2^31 - 1")));
  classes_ = static_cast<std::int64_t>(classes);
  schema_[label_].array = {DType::kFloat32, {classes_}};
  return {};
}

Result<void> BatchMix::check(std::span<const memory::Row> row) const {
  std::int64_t number = 0;
  std::memcpy(&number, row[label_].view.data, sizeof number);
  if (number >= 0 && number < classes_) return {};
  return data_error("field '" + schema_[label_].name + "': class " + std::to_string(number) +
                        " is out of range for num_classes=" + std::to_string(classes_),
                    "batch");
}

transform::Mix BatchMix::draw(const base::SampleKey& key, std::uint64_t unit) const {
  base::Random random(key, kStream + static_cast<std::uint32_t>(unit));
  return transform::draw_mix(rules_, shapes_.front().image, random);
}

std::vector<transform::RowMix> BatchMix::mix(const batch::BatchLayout& layout, std::byte* data, std::uint64_t rows,
                                             const base::SampleKey& key) const {
  std::vector<transform::RowMix> later;
  for (std::uint64_t row = 0; has_device_images_ && row < rows_of(rows); ++row) later.push_back({row, row, {}});
  const Rows all{*this, layout, data, rows, later};
  if (partner_ == MixPartner::kRoll)
    mix_whole(all, key);
  else
    mix_in_pairs(all, key);
  return later;
}

void BatchMix::mix_whole(const Rows& rows, const base::SampleKey& key) const {
  const transform::Mix mix = rows.count > 1 ? draw(key, 0) : transform::Mix();
  if (rows.count > 1) rows.each_image([&](const transform::MixedRows& images) { mix_rolled(images, rows.count, mix); });
  for (std::uint64_t row = 0; row < rows.count; ++row) rows.take_partner(row, (row + rows.count - 1) % rows.count, mix);
}

void BatchMix::mix_in_pairs(const Rows& rows, const base::SampleKey& key) const {
  for (std::uint64_t row = 0; row < rows.count / 2; ++row) mix_pair(rows, row, key);
  if (rows.count % 2 != 0) rows.take_partner(rows.count / 2, rows.count / 2, {});
}

void BatchMix::mix_pair(const Rows& rows, std::uint64_t first, const base::SampleKey& key) const {
  const std::uint64_t second = rows.count - 1 - first;
  const transform::Mix mix = draw(key, mode_ == MixMode::kBatch ? 0 : first);
  if (mode_ == MixMode::kHalf) {
    rows.each_image([&](const transform::MixedRows& images) { mix_one(images, first, second, mix); });
    rows.take_partner(first, second, mix);
    return;
  }
  const transform::Mix of_second = mode_ == MixMode::kElem ? draw(key, second) : mix;
  rows.each_image([&](const transform::MixedRows& images) { mix_both(images, first, second, mix, of_second); });
  rows.take_partner(first, second, mix);
  rows.take_partner(second, first, of_second);
}

std::string BatchMix::explain() const {
  const bool both = rules_.mixup > 0 && rules_.cutmix > 0;
  std::string text = rules_.mixup > 0 ? "mixup with alpha " + shown(rules_.mixup) : "";
  if (both) text += " or, with probability " + shown(rules_.switch_probability) + ", ";
  if (rules_.cutmix > 0) text += "cutmix with alpha " + shown(rules_.cutmix);
  text += ", drawn for each ";
  text += mode_ == MixMode::kBatch ? "batch" : mode_ == MixMode::kPair ? "pair of rows" : "row";
  if (rules_.probability < 1) text += " with probability " + shown(rules_.probability);
  text += partner_ == MixPartner::kRoll ? ", with the previous row" : ", row i with row n - 1 - i";
  if (mode_ == MixMode::kHalf) text += ", of which the first half is delivered";
  text += "; " + schema_[label_].name + " holds the shares of " + std::to_string(classes_) + " classes";
  return smoothing_ > 0 ? text + ", smoothed by " + shown(smoothing_) : text;
}

}  // namespace feedline::pipeline
