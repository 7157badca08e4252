// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/volume_format.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/fork_mutex.h"
#include "format/checksum.h"
#include "format/volumes/open_volume.h"
#include "memory/volume.h"

namespace feedline::format {
namespace {

constexpr std::string_view kAffine = "affine";
// Open volumes have mappings or descriptors, which are limited.
constexpr std::size_t kMostOpen = 1024;

bool is_volume(const FieldDescription& field) { return field.kind == FieldKind::kVolume; }

class VolumeFormat final : public RecordFormat {
 public:
  VolumeFormat(std::string name, std::vector<FieldDescription> fields, std::vector<std::vector<VolumeSource>> samples,
               std::shared_ptr<cache::Notes> notes)
      : source_(std::move(name)), fields_(std::move(fields)), samples_(std::move(samples)), notes_(std::move(notes)) {
    Fingerprint fingerprint;
    fingerprint.add(name_());
    for (const FieldDescription& field : fields_) fingerprint.add(field.name);
    for (const auto& sample : samples_)
      for (const VolumeSource& volume : sample) {
        fingerprint.add(volume.path);
        fingerprint.add(volume.array);
      }
    fingerprint_ = fingerprint.value();
  }

  std::string_view name() const override { return name_(); }
  std::uint64_t size() const override { return samples_.size(); }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Where where(std::uint64_t index) const override { return where_field(index, 0); }
  Where where_field(std::uint64_t index, std::size_t field) const override {
    Where where;
    where.dataset = source_;
    const VolumeSource& volume = samples_[index][std::min(field, samples_[index].size() - 1)];
    where.shard = volume.path;
    where.key = volume.path + (volume.array.empty() ? "" : "/" + volume.array);
    return where;
  }
  Result<Inspection> inspect() const override {
    return config_error("inspect: volumes cannot be inspected; Dataset.schema and Dataset.explain() describe them");
  }
  std::shared_ptr<const storage::Storage> storage() const override { return samples_.front().front().storage; }

  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    record.fields.assign(fields_.size(), {});
    record.more.resize(std::max<std::size_t>(record.more.size(), 1));
    record.bytes_read = 0;
    for (std::size_t i = 0; i < samples_[index].size(); ++i) {
      FEEDLINE_TRY(const OpenedVolume opened, opened_volume(index, i));
      record.fields[i].volume = opened.volume;
      if (i > 0 || fields_.back().name != kAffine || is_volume(fields_.back())) continue;
      if (!opened.affine) return data_error("the volume has no affine, but the first volume has one", "format");
      const auto room = record.more.front().resize(sizeof(Affine));
      std::memcpy(room.data(), opened.affine->data(), sizeof(Affine));
      record.fields.back().bytes = room;
      record.fields.back().array = ArraySpec{DType::kFloat64, {4, 4}};
    }
    return {};
  }

 private:
  static std::string_view name_() { return "volumes"; }

  Result<OpenedVolume> opened_volume(std::uint64_t index, std::size_t field) const {
    const std::uint64_t number = index * samples_.front().size() + field;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = open_.find(number); found != open_.end()) return found->second;
    }
    auto opened = open_volume(samples_[index][field], notes_.get());
    if (!opened) {
      Error error = std::move(opened).error();
      if (error.where.shard.empty()) error.where.shard = samples_[index][field].path;
      error.what = "field '" + fields_[field].name + "': " + error.what;
      return std::unexpected(std::move(error));
    }
    const std::lock_guard lock(mutex_);
    if (open_.size() >= kMostOpen) open_.clear();
    return open_.emplace(number, std::move(*opened)).first->second;
  }

  const std::string source_;
  const std::vector<FieldDescription> fields_;
  const std::vector<std::vector<VolumeSource>> samples_;
  const std::shared_ptr<cache::Notes> notes_;
  const std::vector<std::string> classes_;
  std::uint64_t fingerprint_ = 0;
  mutable ForkMutex mutex_;
  mutable std::unordered_map<std::uint64_t, OpenedVolume> open_;
};

// Samples that are patches of volumes.
class PatchFormat : public RecordFormat {
 public:
  explicit PatchFormat(std::shared_ptr<const RecordFormat> volumes) : volumes_(std::move(volumes)) {}

  std::string_view name() const override { return volumes_->name(); }
  const std::vector<FieldDescription>& fields() const override { return volumes_->fields(); }
  const std::vector<std::string>& classes() const override { return volumes_->classes(); }
  std::string summary() const override {
    const std::string text = volumes_->summary();
    return "patches of " + std::to_string(volumes_->size()) + " volumes" + (text.empty() ? "" : "\n" + text);
  }
  Where where(std::uint64_t index) const override { return patched(volumes_->where(place_of(index).volume), index); }
  Where where_field(std::uint64_t index, std::size_t field) const override {
    return patched(volumes_->where_field(place_of(index).volume, field), index);
  }
  Result<Inspection> inspect() const override { return volumes_->inspect(); }
  std::shared_ptr<const storage::Storage> storage() const override { return volumes_->storage(); }
  std::vector<std::shared_ptr<const storage::Storage>> storages() const override { return volumes_->storages(); }
  bool is_in_memory() const override { return volumes_->is_in_memory(); }
  void notice_changes() const override { volumes_->notice_changes(); }

 protected:
  struct Place {
    std::uint64_t volume, patch;  // patch: number in the volume
  };
  virtual Place place_of(std::uint64_t index) const = 0;
  virtual bool numbers_patches() const { return true; }  // in messages

  const std::shared_ptr<const RecordFormat> volumes_;

 private:
  Where patched(Where where, std::uint64_t index) const {
    if (numbers_patches()) where.key += "#" + std::to_string(place_of(index).patch);
    return where;
  }
};

// A number of patches of each volume, at positions that the pipeline draws.
class DrawnPatches final : public PatchFormat {
 public:
  DrawnPatches(std::shared_ptr<const RecordFormat> volumes, std::uint64_t patches)
      : PatchFormat(std::move(volumes)), patches_(patches) {}

  std::uint64_t size() const override { return volumes_->size() * patches_; }
  std::uint64_t fingerprint() const override {
    Fingerprint fingerprint;
    fingerprint.add("patches");
    fingerprint.add(volumes_->fingerprint());
    fingerprint.add(patches_);
    return fingerprint.value();
  }
  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    return volumes_->read(index / patches_, record);
  }

 private:
  Place place_of(std::uint64_t index) const override { return {index / patches_, index % patches_}; }
  bool numbers_patches() const override { return patches_ != 1; }

  const std::uint64_t patches_;
};

// The patches of a grid along one axis: each begins `step` voxels after the one before it, and the last one of a grid
// without padding ends with the volume.
struct GridAxis {
  std::int64_t extent, size, step;
  bool pad;

  std::int64_t count() const { return extent <= size ? 1 : (extent - size + step - 1) / step + 1; }
  std::int64_t position(std::int64_t patch) const { return pad ? patch * step : std::min(patch * step, extent - size); }
};

// All patches of a grid on each volume; the last cropped axis varies fastest, and other axes are not divided. Positions
// are computed, as there may be many patches.
class GridPatches final : public PatchFormat {
 public:
  GridPatches(std::shared_ptr<const RecordFormat> volumes, PatchOptions::Grid grid, std::size_t field)
      : PatchFormat(std::move(volumes)), grid_(std::move(grid)), field_(field) {}

  // Reads the headers of all volumes. kData: a volume has too few axes, or is smaller than a patch.
  Result<void> open() {
    memory::Record record;
    for (std::uint64_t i = 0; i < volumes_->size(); ++i) {
      auto added = volumes_->read(i, record);
      if (added) added = add(*record.fields[field_].volume);
      if (added) continue;
      Error error = std::move(added).error();
      const Where where = volumes_->where(i);
      error.where.dataset = where.dataset;
      if (error.where.shard.empty()) error.where.shard = where.shard;
      error.where.record = i;
      return std::unexpected(std::move(error));
    }
    return {};
  }

  std::uint64_t size() const override { return ends_.back(); }
  std::uint64_t fingerprint() const override {
    Fingerprint fingerprint;
    fingerprint.add("grid");
    fingerprint.add(volumes_->fingerprint());
    for (std::size_t i = 0; i < grid_.size.size(); ++i) {
      fingerprint.add(static_cast<std::uint64_t>(grid_.size[i]));
      fingerprint.add(static_cast<std::uint64_t>(grid_.overlap[i]));
    }
    fingerprint.add(std::uint64_t{grid_.pad});
    for (const Shape& shape : shapes_) fingerprint.add(std::as_bytes(std::span(shape.begin(), shape.dims())));
    return fingerprint.value();
  }

  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    const Place place = place_of(index);
    FEEDLINE_CHECK_OK(volumes_->read(place.volume, record));
    const memory::Volume& volume = *record.fields[field_].volume;
    const Shape& shape = shapes_[place.volume];
    if (volume.spec().shape != shape)
      return storage_error("the volume has the shape " + volume.spec().shape.to_string() + ", but it had " +
                               shape.to_string() + " when grid_patches() divided it; open the dataset again",
                           0);
    Shape origin = shape;
    for (std::size_t i = 0; i < shape.dims(); ++i) origin = origin.with_extent(i, 0);
    auto rest = static_cast<std::int64_t>(place.patch);
    const std::size_t first = first_axis(volume);
    for (std::size_t i = grid_.size.size(); i-- > 0;) {
      const GridAxis axis = axis_of(shape, first, i);
      origin = origin.with_extent(first + i, axis.position(rest % axis.count()));
      rest /= axis.count();
    }
    for (memory::Record::Field& field : record.fields)
      if (field.volume) field.origin = origin;
    return {};
  }

 private:
  Place place_of(std::uint64_t index) const override {
    const auto volume = static_cast<std::uint64_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    return {volume, index - (volume == 0 ? 0 : ends_[volume - 1])};
  }
  std::size_t first_axis(const memory::Volume& volume) const {
    return volume.has_spatial_axes_first() ? 0 : volume.spec().shape.dims() - grid_.size.size();
  }
  GridAxis axis_of(const Shape& shape, std::size_t first, std::size_t i) const {
    return {shape[first + i], grid_.size[i], grid_.size[i] - grid_.overlap[i], grid_.pad};
  }
  Result<void> add(const memory::Volume& volume) {
    const Shape& shape = volume.spec().shape;
    if (grid_.size.size() > shape.dims())
      return data_error("the volume has " + std::to_string(shape.dims()) + " dimensions, but the patches have " +
                            std::to_string(grid_.size.size()),
                        "format");
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < grid_.size.size(); ++i) {
      const GridAxis axis = axis_of(shape, first_axis(volume), i);
      if (axis.extent < axis.size && !axis.pad)
        return data_error("the volume has " + std::to_string(axis.extent) +
                              " voxels along an axis on which a patch has " + std::to_string(axis.size) +
                              "; use smaller patches, or pad=True",
                          "transform");
      count *= static_cast<std::uint64_t>(axis.count());
    }
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + count);
    shapes_.push_back(shape);
    return {};
  }

  const PatchOptions::Grid grid_;
  const std::size_t field_;          // the first volume, which all others match
  std::vector<std::uint64_t> ends_;  // cumulative number of patches
  std::vector<Shape> shapes_;        // of the volumes
};

}  // namespace

Result<std::shared_ptr<const RecordFormat>> open_volumes(std::string name, const std::vector<VolumeField>& fields,
                                                         std::vector<std::vector<VolumeSource>> samples,
                                                         std::shared_ptr<cache::Notes> notes) {
  if (fields.empty() || samples.empty()) return config_error("volumes: at least one volume is needed");
  std::vector<FieldDescription> described;
  std::set<std::string> names;
  for (const VolumeField& field : fields) {
    if (!names.insert(field.name).second) return config_error("fields: the name '" + field.name + "' is used twice");
    described.push_back({.name = field.name, .kind = FieldKind::kVolume, .has_labels = field.has_labels});
  }
  for (const auto& sample : samples)
    if (sample.size() != fields.size())
      return config_error("volumes: a sample has " + std::to_string(sample.size()) + " volumes, but there are " +
                          std::to_string(fields.size()) + " fields");
  auto first = open_volume(samples.front().front(), notes.get());
  if (!first) {
    if (first.error().where.shard.empty()) first.error().where.shard = samples.front().front().path;
    return std::unexpected(std::move(first).error());
  }
  if (first->affine && !names.contains(std::string(kAffine))) {
    described.push_back({.name = std::string(kAffine), .kind = FieldKind::kArray});
    described.back().array = {DType::kFloat64, {4, 4}};
  }
  return std::make_shared<const VolumeFormat>(std::move(name), std::move(described), std::move(samples),
                                              std::move(notes));
}

Result<std::shared_ptr<const RecordFormat>> patches_of(std::shared_ptr<const RecordFormat> volumes,
                                                       const PatchOptions& options) {
  const auto& fields = volumes->fields();
  const auto first = std::ranges::find_if(fields, is_volume);
  if (first == fields.end()) return config_error("the samples have no volumes");
  if (!options.grid) {
    if (options.patches == 0) return config_error("patches must be at least 1");
    return std::make_shared<const DrawnPatches>(std::move(volumes), options.patches);
  }
  const auto field = static_cast<std::size_t>(first - fields.begin());
  auto patches = std::make_shared<GridPatches>(std::move(volumes), *options.grid, field);
  FEEDLINE_CHECK_OK(patches->open());
  return patches;
}

}  // namespace feedline::format
