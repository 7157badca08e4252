// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/volume_path.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "memory/sample_limit.h"
#include "memory/strided_copy.h"
#include "memory/volume.h"
#include "pipeline/fields/field_scratch.h"
#include "transform/operation/image_operation.h"

namespace feedline::pipeline {
namespace {

using Extents = std::array<std::int64_t, Shape::kMaxDims>;

std::span<const std::int64_t> span_of(const Shape& shape) { return {shape.begin(), shape.dims()}; }

std::size_t bytes_of(std::span<const std::int64_t> size, std::size_t element) {
  for (const std::int64_t extent : size) element *= static_cast<std::size_t>(extent);
  return element;
}

// Patches that decode more are reported: chunks as large as the patch decode 7.8.
constexpr double kMostDecoded = 10;

// Returns the mean number of decoded voxels for each voxel of a patch at a random position. Requires: the same number
// of axes.
double decoded_per_voxel(const Shape& chunk, const Shape& patch) {
  double voxels = 1;
  for (std::size_t i = 0; i < chunk.dims(); ++i) {
    const auto along = static_cast<double>(patch[i]);
    voxels *= (along + static_cast<double>(chunk[i]) - 1) / along;
  }
  return voxels;
}

bool is_identity(const transform::Matrix3& matrix) { return matrix == transform::VolumeGeometry{}.matrix; }

}  // namespace

// The axes of a volume and of its patch.
struct VolumePath::Axes {
  std::size_t dims = 0;
  std::size_t first = 0, count = 0;           // cropped
  std::size_t geometric = 0, geometrics = 0;  // the first of up to three axes that flips and rotations use
  Shape patch;                                // extents of the patch, with those of axes that are not cropped
  std::int64_t outer = 1, inner = 1;          // product of the extents before and after the geometric axes

  Axes(const PatchPlan& plan, const memory::Volume& volume) {
    const Shape& shape = volume.spec().shape;
    dims = shape.dims();
    count = plan.count(dims);
    first = volume.has_spatial_axes_first() ? 0 : dims - count;
    patch = shape;
    if (plan.patch)
      for (std::size_t i = 0; i < count; ++i) patch = patch.with_extent(first + i, plan.patch->size[i]);
    geometrics = std::min<std::size_t>(count, 3);
    geometric = volume.has_spatial_axes_first() ? 0 : dims - geometrics;
    for (std::size_t i = 0; i < geometric; ++i) outer *= patch[i];
    for (std::size_t i = geometric + geometrics; i < dims; ++i) inner *= patch[i];
  }
  // The extents of the geometric axes, with leading ones for missing axes.
  std::array<std::int64_t, 3> three(const Shape& shape, std::int64_t missing) const {
    std::array<std::int64_t, 3> result{missing, missing, missing};
    for (std::size_t i = 0; i < geometrics; ++i) result[3 - geometrics + i] = shape[geometric + i];
    return result;
  }
};

bool PatchPlan::may_interpolate() const {
  return std::ranges::any_of(geometry, [](const Step& step) { return step.operation->may_interpolate(); });
}

Result<std::shared_ptr<const PatchPlan>> plan_patch(const std::vector<Operation>& operations,
                                                    const std::vector<PatchField>& fields,
                                                    std::shared_ptr<ForegroundIndex> index) {
  auto plan = std::make_shared<PatchPlan>();
  plan->operations = operations;
  plan->index = std::move(index);
  bool has_steps = false;
  for (std::uint32_t i = 0; i < plan->operations.size(); ++i) {
    const Operation& operation = plan->operations[i];
    const transform::Properties properties = operation->properties();
    const std::string name(name_of(operation));
    if (properties.patch != nullptr) {
      if (plan->patch) return config_error(name + ": the samples already are patches");
      if (has_steps) return config_error(name + ": crop the patch before the operations on it");
      if (!operation.fields.empty())
        return config_error(name + ": all volumes of a sample are cropped alike; omit fields=");
      plan->patch = *properties.patch;
      plan->stream = i;
      plan->is_grid = properties.is_grid_patch;
      if (properties.random_patch != nullptr) plan->random = *properties.random_patch;
    }
    if (properties.volume == nullptr) continue;
    has_steps = true;
    if (!properties.volume->is_geometric()) continue;
    if (!operation.fields.empty())
      return config_error(name + ": all volumes of a sample have one geometry; omit fields=");
    plan->geometry.push_back({properties.volume, i});
  }
  if (has_steps && !plan->patch)
    return config_error(
        "operations on volumes need patches: crop first, with random_crop, center_crop or grid_patches");
  for (const PatchPlan::Step& step : plan->geometry) {
    const int axes = static_cast<int>(std::min<std::size_t>(plan->patch->size.size(), 3));
    const std::string name(name_of(plan->operations[step.stream]));
    if (step.operation->may_interpolate() && axes < 3)
      return config_error(name + ": the patches must have three axes, not " + std::to_string(axes));
    if (step.operation->largest_axis() >= axes)
      return config_error(name + ": axis " + std::to_string(step.operation->largest_axis()) +
                          " does not exist; the patches have " + std::to_string(axes));
    if (const auto equal = step.operation->equal_axes()) {
      // operations use the last three axes, or the first three for NIfTI; only patches with more axes differ
      const auto& size = plan->patch->size;
      const std::size_t skipped = size.size() - static_cast<std::size_t>(axes);
      const int a = size[skipped + static_cast<std::size_t>(equal->first)],
                b = size[skipped + static_cast<std::size_t>(equal->second)];
      if (a != b)
        return config_error(name + ": the axes " + std::to_string(equal->first) + " and " +
                            std::to_string(equal->second) + " of a patch have " + std::to_string(a) + " and " +
                            std::to_string(b) + " voxels; rotations need equal numbers");
    }
  }
  if (plan->random && !plan->random->foreground.empty()) {
    const auto found = std::ranges::find(fields, plan->random->foreground, &PatchField::name);
    if (found == fields.end() || !found->is_volume)
      return config_error("random_crop: foreground: the volume '" + plan->random->foreground + "' does not exist");
    plan->foreground = static_cast<std::size_t>(found - fields.begin());
  }
  return plan;
}

DType delivered_dtype(const PatchPlan& plan, const std::vector<Operation>& own, DType stored, bool has_labels) {
  if (has_labels) return stored;
  const bool changes = std::ranges::any_of(own, [](const Operation& operation) {
    const transform::VolumeOperation* const volume = operation->properties().volume;
    return volume != nullptr && !volume->is_geometric();
  });
  return changes || plan.may_interpolate() ? DType::kFloat32 : stored;
}

VolumePath::VolumePath(std::vector<FieldSpec> specs, std::shared_ptr<const PatchPlan> plan, std::vector<Operation> own,
                       bool has_labels, Shape chunk)
    : FieldPath(std::move(specs)),
      plan_(std::move(plan)),
      own_(std::move(own)),
      has_labels_(has_labels),
      chunk_(chunk) {
  for (std::uint32_t i = 0; i < own_.size() && !has_labels_; ++i) {
    const transform::VolumeOperation* const operation = own_[i]->properties().volume;
    if (operation != nullptr && !operation->is_geometric()) values_.push_back({operation, i});
  }
}

void VolumePath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.volumes) scratch.volumes = std::make_unique<VolumeScratch>();
}

// Draws the patch for the first volume of a sample; the others must have the same size.
Result<void> VolumePath::draw(const memory::Record::Field& stored, FieldWork& work) const {
  VolumeScratch& scratch = *work.scratch.volumes;
  const memory::Volume& volume = *stored.volume;
  const Shape& shape = volume.spec().shape;
  if (plan_->patch && plan_->patch->size.size() > shape.dims())
    return data_error("the volume has " + std::to_string(shape.dims()) + " dimensions, but the patches have " +
                          std::to_string(plan_->patch->size.size()),
                      "transform");
  const Axes axes(*plan_, volume);
  Shape cropped;
  for (std::size_t i = axes.count; i-- > 0;) cropped = cropped.with_front(shape[axes.first + i]);
  if (scratch.is_drawn && plan_->patch) {  // whole volumes may differ
    if (cropped == scratch.shape) return {};
    return data_error("the volume has " + cropped.to_string() + " voxels, and another volume of the sample has " +
                          scratch.shape.to_string() + "; all must have the same number",
                      "transform");
  }
  scratch.shape = cropped;
  scratch.geometry = {};
  Shape origin = cropped;
  base::Random random(work.key, plan_->stream);
  std::optional<std::uint64_t> centre;  // a foreground voxel
  const Axes* label_axes = nullptr;
  std::optional<Axes> axes_of_labels;
  const memory::Volume* labels = nullptr;
  if (plan_->random && !plan_->random->foreground.empty() && random.uniform() < plan_->random->share) {
    labels = work.record->fields[plan_->foreground].volume.get();
    if (labels == nullptr) return data_error("foreground: the sample has no volume with labels", "transform");
    axes_of_labels.emplace(*plan_, *labels);
    label_axes = &*axes_of_labels;
    Result<std::shared_ptr<const Foreground>> found = plan_->index->find(*labels, plan_->random->values);
    if (!found) {
      Error error = std::move(found).error();
      error.what = "foreground of '" + plan_->random->foreground + "': " + error.what;
      if (error.where.shard.empty()) error.where.shard = labels->name();
      return std::unexpected(std::move(error));
    }
    if (!(*found)->is_empty()) centre = (*found)->draw(random);
  }
  Extents voxel{};  // of the foreground, along the cropped axes
  if (centre) {
    std::uint64_t rest = *centre;
    const Shape& extents = labels->spec().shape;
    for (std::size_t i = extents.dims(); i-- > 0;) {
      const auto extent = static_cast<std::uint64_t>(extents[i]);
      if (i >= label_axes->first && i < label_axes->first + label_axes->count)
        voxel[i - label_axes->first] = static_cast<std::int64_t>(rest % extent);
      rest /= extent;
    }
  }
  for (std::size_t i = 0; i < axes.count; ++i) {
    const std::int64_t extent = cropped[i], size = axes.patch[axes.first + i], room = extent - size;
    std::int64_t at = 0;
    if (stored.origin) {
      at = (*stored.origin)[axes.first + i];
    } else if (plan_->patch && room < 0) {
      if (!plan_->patch->pad)
        return data_error("the volume has " + cropped.to_string() + " voxels, fewer than a patch along axis " +
                              std::to_string(i) + ", which has " + std::to_string(size) +
                              "; use smaller patches, or pad_if_needed=True",
                          "transform");
      at = room / 2 - (room % 2 != 0 ? 1 : 0);
    } else if (plan_->patch && !plan_->random) {
      at = room / 2;
    } else if (plan_->random) {
      const auto drawn = static_cast<std::int64_t>(random.uniform() * static_cast<double>(room + 1));
      at = centre ? std::clamp<std::int64_t>(voxel[i] - size / 2, 0, room) : std::min(drawn, room);
    }
    origin = origin.with_extent(i, at);
  }
  for (const PatchPlan::Step& step : plan_->geometry)
    step.operation->draw_geometry(base::Random(work.key, step.stream), scratch.geometry);
  scratch.origin = origin;
  scratch.is_drawn = true;
  return {};
}

Result<std::uint64_t> VolumePath::read_patch(const memory::Volume& volume, const Axes& axes, FieldWork& work,
                                             const ArrayView& out) const {
  const DType stored = volume.spec().dtype;
  if (work.scratch.volumes->geometry.interpolates) return interpolate(volume, axes, work, out.data);
  if (stored == out.spec.dtype) return copy_patch(volume, axes, work, out.data);
  const auto elements = static_cast<std::size_t>(axes.patch.elements());
  std::byte* const native = work.scratch.volumes->native.resize(elements * size_of(stored)).data();
  FEEDLINE_TRY(const std::uint64_t read, copy_patch(volume, axes, work, native));
  transform::to_floats(stored, native, elements, out.as<float>());
  return read;
}

// Copies the patch, flipped and rotated by 90 degrees, in the dtype of the volume.
Result<std::uint64_t> VolumePath::copy_patch(const memory::Volume& volume, const Axes& axes, FieldWork& work,
                                             std::byte* out) const {
  VolumeScratch& scratch = *work.scratch.volumes;
  const Shape& shape = volume.spec().shape;
  const std::size_t dims = axes.dims, element = size_of(volume.spec().dtype);
  const auto patch = span_of(axes.patch);
  Extents begin{}, size{};
  bool is_inside = true, is_empty = false;
  std::ptrdiff_t offset = 0;  // in the patch, of the part that exists
  const auto strides = memory::c_strides(patch, element);
  for (std::size_t i = 0; i < dims; ++i) {
    const bool is_cropped = i >= axes.first && i < axes.first + axes.count;
    const std::int64_t origin = is_cropped ? scratch.origin[i - axes.first] : 0;
    begin[i] = std::max<std::int64_t>(origin, 0);
    size[i] = std::min(origin + patch[i], shape[i]) - begin[i];
    is_inside = is_inside && begin[i] == origin && size[i] == patch[i];
    is_empty = is_empty || size[i] <= 0;
    offset += (begin[i] - origin) * strides[i];
  }
  const std::span<const std::int64_t> from(begin.data(), dims), extents(size.data(), dims);
  const bool is_moved = !is_identity(scratch.geometry.matrix);
  const std::size_t bytes = bytes_of(patch, element);
  std::byte* const whole = is_moved ? scratch.patch.resize(bytes).data() : out;
  std::uint64_t read = 0;
  if (is_inside) {
    FEEDLINE_TRY(read, volume.read_box(from, extents, whole, scratch.buffers));
  } else {
    std::memset(whole, 0, bytes);
    if (!is_empty) {
      const auto part = scratch.box.resize(bytes_of(extents, element));
      FEEDLINE_TRY(read, volume.read_box(from, extents, part.data(), scratch.buffers));
      const auto dense = memory::c_strides(extents, element);
      memory::copy_strided(part.data(), std::span(dense).first(dims), whole + offset, std::span(strides).first(dims),
                           extents, element);
    }
  }
  if (!is_moved) return read;
  // element v of the result is element matrix * v of the patch, relative to the centre
  memory::Strides moved = strides;
  std::ptrdiff_t first = 0;
  for (std::size_t j = 0; j < axes.geometrics; ++j) {
    moved[axes.geometric + j] = 0;
    for (std::size_t i = 0; i < axes.geometrics; ++i) {
      const auto sign = static_cast<std::ptrdiff_t>(scratch.geometry.matrix[i][j]);
      moved[axes.geometric + j] += sign * strides[axes.geometric + i];
      if (sign < 0) first += (patch[axes.geometric + i] - 1) * strides[axes.geometric + i];
    }
  }
  memory::copy_strided(whole + first, std::span(moved).first(dims), out, std::span(strides).first(dims), patch,
                       element);
  return read;
}

// Interpolates the patch from the part of the volume that it needs.
Result<std::uint64_t> VolumePath::interpolate(const memory::Volume& volume, const Axes& axes, FieldWork& work,
                                              std::byte* out) const {
  VolumeScratch& scratch = *work.scratch.volumes;
  const Shape& shape = volume.spec().shape;
  if (axes.inner != 1)
    return data_error("the volume has axes after the spatial ones, which interpolation does not support", "transform");
  const auto size = axes.three(axes.patch, 1);
  std::array<std::int64_t, 3> origin{};
  for (std::size_t i = 0; i < 3; ++i) origin[i] = scratch.origin[axes.geometric + i - axes.first];
  const auto grid = transform::grid_of(scratch.geometry, origin, size);
  const auto extents = axes.three(shape, 1);
  transform::VolumeBox box{.dtype = volume.spec().dtype};
  bool is_empty = false;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double low = grid.first[axis], high = low;
    for (std::size_t j = 0; j < 3; ++j) {
      const double reach = grid.steps[axis][j] * static_cast<double>(size[j] - 1);
      (reach < 0 ? low : high) += reach;
    }
    const auto begin = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(low)), 0);
    const auto end = std::min<std::int64_t>(static_cast<std::int64_t>(std::floor(high)) + 2, extents[axis]);
    box.begin[axis] = begin;
    box.size[axis] = end - begin;
    is_empty = is_empty || end <= begin;
  }
  const std::size_t element = size_of(box.dtype);
  const std::size_t voxels = static_cast<std::size_t>(size[0] * size[1] * size[2]);
  std::uint64_t read = 0;
  std::size_t channel_bytes = 0;
  if (!is_empty) {
    Extents begin{}, count{};
    for (std::size_t i = 0; i < axes.dims; ++i) {
      const bool is_geometric = i >= axes.geometric;
      const bool is_cropped = i >= axes.first;
      begin[i] = is_geometric ? box.begin[i - axes.geometric] : is_cropped ? scratch.origin[i - axes.first] : 0;
      count[i] = is_geometric ? box.size[i - axes.geometric] : axes.patch[i];
      if (begin[i] < 0 || begin[i] + count[i] > shape[i])
        return data_error("interpolation does not support padding along axis " + std::to_string(i), "transform");
    }
    const std::span<const std::int64_t> counts(count.data(), axes.dims);
    std::optional<memory::Volume::View> view;
    if (axes.geometric <= 1) {  // at most one axis of channels
      FEEDLINE_TRY(view, volume.view_box({begin.data(), axes.dims}, counts));
    }
    if (view) {
      const auto elements = [&](std::size_t axis) {
        return view->strides[axis] / static_cast<std::ptrdiff_t>(element);
      };
      box.data = view->data;
      box.plane = elements(axes.geometric);
      box.row = elements(axes.geometric + 1);
      channel_bytes = axes.geometric == 0 ? 0 : static_cast<std::size_t>(view->strides[0]);
      read = view->bytes;
    } else {
      const std::size_t bytes = bytes_of(counts, element);
      if (bytes > work.most_bytes) return memory::too_large(bytes, work.most_bytes);
      const auto room = scratch.box.resize(bytes);
      FEEDLINE_TRY(read, volume.read_box({begin.data(), axes.dims}, counts, room.data(), scratch.buffers));
      channel_bytes = bytes / static_cast<std::size_t>(axes.outer);
      box.data = room.data();
      box.row = box.size[2];
      box.plane = box.size[1] * box.size[2];
    }
  } else {
    box.size = {0, 0, 0};
  }
  const std::size_t out_element = has_labels_ ? element : sizeof(float);
  for (std::int64_t channel = 0; channel < axes.outer; ++channel) {
    if (is_empty && !has_labels_)
      std::fill_n(reinterpret_cast<float*>(out), voxels, static_cast<float>(scratch.geometry.fill));
    else if (is_empty)
      std::memset(out, 0, voxels * out_element);
    else if (has_labels_)
      transform::sample_nearest(box, grid, size, out);
    else
      transform::sample_linear(box, grid, static_cast<float>(scratch.geometry.fill), size,
                               reinterpret_cast<float*>(out));
    out += voxels * out_element;
    if (!is_empty) box.data += channel_bytes;
  }
  return read;
}

Result<void> VolumePath::fill_rows(const memory::Record::Field& stored, FieldWork& work,
                                   std::span<memory::Row> rows) const {
  const std::uint64_t started = base::now_ns();
  if (!stored.volume) return internal_error("a record without a volume");
  VolumeScratch& scratch = *work.scratch.volumes;
  const memory::Volume& volume = *stored.volume;
  const ArraySpec& spec = volume.spec();
  const DType dtype = specs().front().array.dtype;
  if (const DType delivered = delivered_dtype(*plan_, own_, spec.dtype, has_labels_); delivered != dtype)
    return data_error("the volume has the dtype " + std::string(name_of(delivered)) + ", but the first one has " +
                          std::string(name_of(dtype)),
                      "transform");
  FEEDLINE_CHECK_OK(draw(stored, work));
  const Axes axes(*plan_, volume);
  const FieldSpec& wanted = specs().front();
  if (wanted.form == BatchForm::kDense && axes.patch != wanted.array.shape)
    return data_error("the patch has the shape " + axes.patch.to_string() + ", but the first one has " +
                          wanted.array.shape.to_string(),
                      "transform");
  FEEDLINE_TRY(const ArrayView out, destination(rows.front(), axes.patch, work));
  const Result<std::uint64_t> read = read_patch(volume, axes, work, out);
  FEEDLINE_CHECK_OK(volume.check_unchanged());  // first: data that changed may seem damaged
  if (!read) return std::unexpected(read.error());
  const std::uint64_t decoded = base::now_ns();
  work.meter.count(telemetry::Stage::kDecode, started, decoded, *read);
  if (!values_.empty()) {
    if (axes.inner != 1)
      return data_error("the volume has axes after the spatial ones, which operations on values do not support",
                        "transform");
    const auto size = axes.three(axes.patch, 1);
    const auto voxels = static_cast<std::size_t>(axes.patch.elements() / axes.outer);
    for (const PatchPlan::Step& step : values_)
      for (std::int64_t channel = 0; channel < axes.outer; ++channel)
        step.operation->apply(base::Random(work.key, step.stream),
                              {{out.as<float>() + static_cast<std::size_t>(channel) * voxels, voxels}, size},
                              scratch.workspace);
    work.meter.count(telemetry::Stage::kTransform, decoded, out.spec.bytes());
  }
  if (rows.size() == 1) return {};
  for (std::size_t row = 1; row < 3; ++row) {
    const Shape& facts = row == 1 ? scratch.origin : scratch.shape;
    FEEDLINE_TRY(const ArrayView view, destination(rows[row], {static_cast<std::int64_t>(facts.dims())}, work));
    std::memcpy(view.data, facts.begin(), facts.dims() * sizeof(std::int64_t));
  }
  return {};
}

Result<void> VolumePath::prepare(const memory::Record::Field& /*stored*/, FieldWork& /*work*/,
                                 format::PixelRecordBuilder& /*cached*/) const {
  return internal_error("volumes cannot be cached");  // make_field_path() rejects it
}

std::vector<std::string> VolumePath::explain() const {
  std::vector<std::string> lines{std::string(plan_->patch ? "patches of " : "whole volumes of ") +
                                 std::string(name_of(spec().array.dtype)) + " " + spec().array.shape.to_string()};
  if (plan_->patch && chunk_.dims() > 0 && chunk_.elements() > 1) {
    const double voxels = decoded_per_voxel(chunk_, spec().array.shape);
    char number[32];
    std::snprintf(number, sizeof number, "%.1f", voxels);
    std::string line =
        "chunks of " + chunk_.to_string() + ": " + number + " voxels are decoded for each voxel of a patch";
    if (voxels > kMostDecoded)
      line += "; the chunks fit badly: store smaller ones with feedline pack --to zarr --patch";
    lines.push_back(std::move(line));
  }
  for (const Operation& operation : own_) {
    const transform::Properties properties = operation->properties();
    const bool applies = properties.volume != nullptr && (properties.volume->is_geometric() || !has_labels_);
    if (properties.patch != nullptr || applies) lines.push_back(describe(operation));
  }
  return lines;
}

}  // namespace feedline::pipeline
