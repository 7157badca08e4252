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

// The patches of volumes: `patches` of each, or those of a grid.
class PatchFormat final : public RecordFormat {
 public:
  PatchFormat(std::shared_ptr<const RecordFormat> volumes, std::uint64_t patches)
      : volumes_(std::move(volumes)), patches_(patches) {}
  // ends: the cumulative number of patches. origins: those of all patches.
  PatchFormat(std::shared_ptr<const RecordFormat> volumes, std::vector<std::uint64_t> ends, std::vector<Shape> origins)
      : volumes_(std::move(volumes)), ends_(std::move(ends)), origins_(std::move(origins)) {}

  std::string_view name() const override { return volumes_->name(); }
  std::uint64_t size() const override { return ends_.empty() ? volumes_->size() * patches_ : ends_.back(); }
  const std::vector<FieldDescription>& fields() const override { return volumes_->fields(); }
  const std::vector<std::string>& classes() const override { return volumes_->classes(); }
  std::string summary() const override {
    const std::string text = volumes_->summary();
    return "patches of " + std::to_string(volumes_->size()) + " volumes" + (text.empty() ? "" : "\n" + text);
  }
  Where where(std::uint64_t index) const override { return patched(volumes_->where(volume_of(index)), index); }
  Where where_field(std::uint64_t index, std::size_t field) const override {
    return patched(volumes_->where_field(volume_of(index), field), index);
  }
  std::uint64_t fingerprint() const override {
    Fingerprint fingerprint;
    fingerprint.add("patches");
    fingerprint.add(volumes_->fingerprint());
    fingerprint.add(patches_);
    fingerprint.add(ends_);
    for (const Shape& origin : origins_) fingerprint.add(origin.to_string());
    return fingerprint.value();
  }
  Result<Inspection> inspect() const override { return volumes_->inspect(); }
  std::shared_ptr<const storage::Storage> storage() const override { return volumes_->storage(); }
  std::vector<std::shared_ptr<const storage::Storage>> storages() const override { return volumes_->storages(); }
  bool is_in_memory() const override { return volumes_->is_in_memory(); }
  void notice_changes() const override { volumes_->notice_changes(); }

  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    FEEDLINE_CHECK_OK(volumes_->read(volume_of(index), record));
    if (origins_.empty()) return {};
    for (memory::Record::Field& field : record.fields)
      if (field.volume) field.origin = origins_[index];
    return {};
  }

 private:
  std::uint64_t volume_of(std::uint64_t index) const {
    if (ends_.empty()) return index / patches_;
    return static_cast<std::uint64_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  }
  Where patched(Where where, std::uint64_t index) const {
    const std::uint64_t volume = volume_of(index);
    const std::uint64_t first = !ends_.empty() ? (volume == 0 ? 0 : ends_[volume - 1]) : volume * patches_;
    if (patches_ != 1 || !ends_.empty()) where.key += "#" + std::to_string(index - first);
    return where;
  }

  const std::shared_ptr<const RecordFormat> volumes_;
  const std::uint64_t patches_ = 0;
  const std::vector<std::uint64_t> ends_;
  const std::vector<Shape> origins_;
};

// Appends the origins of a volume's patches: the last cropped axis varies fastest; other axes are not divided.
Result<void> add_grid(const memory::Volume& volume, const PatchOptions::Grid& grid, std::vector<Shape>& origins) {
  const Shape& shape = volume.spec().shape;
  const std::size_t cropped = grid.size.size();
  if (cropped > shape.dims())
    return data_error("the volume has " + std::to_string(shape.dims()) + " dimensions, but the patches have " +
                          std::to_string(cropped),
                      "format");
  const std::size_t first = volume.has_spatial_axes_first() ? 0 : shape.dims() - cropped;
  std::vector<std::vector<std::int64_t>> positions;
  for (std::size_t i = 0; i < cropped; ++i) {
    FEEDLINE_TRY(auto along, grid_positions(shape[first + i], grid.size[i], grid.overlap[i], grid.pad));
    positions.push_back(std::move(along));
  }
  std::vector<std::size_t> at(cropped, 0);
  while (true) {
    Shape origin;
    for (std::size_t i = shape.dims(); i-- > 0;) {
      const bool is_cropped = i >= first && i < first + cropped;
      origin = origin.with_front(is_cropped ? positions[i - first][at[i - first]] : 0);
    }
    origins.push_back(origin);
    std::size_t i = cropped;
    while (i > 0 && ++at[i - 1] == positions[i - 1].size()) at[--i] = 0;
    if (i == 0) return {};
  }
}

}  // namespace

Result<std::vector<std::int64_t>> grid_positions(std::int64_t extent, std::int64_t size, std::int64_t overlap,
                                                 bool pad) {
  if (extent < size && !pad)
    return data_error("the volume has " + std::to_string(extent) + " voxels along an axis on which a patch has " +
                          std::to_string(size) + "; use smaller patches, or pad=True",
                      "transform");
  std::vector<std::int64_t> positions{0};
  while (positions.back() + size < extent) positions.push_back(positions.back() + size - overlap);
  if (!pad) positions.back() = extent - size;
  return positions;
}

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
    return std::make_shared<const PatchFormat>(std::move(volumes), options.patches);
  }
  std::vector<std::uint64_t> ends;
  std::vector<Shape> origins;
  memory::Record record;
  for (std::uint64_t i = 0; i < volumes->size(); ++i) {
    auto added = volumes->read(i, record);
    if (added)
      added = add_grid(*record.fields[static_cast<std::size_t>(first - fields.begin())].volume, *options.grid, origins);
    if (!added) {
      Error error = std::move(added).error();
      const Where where = volumes->where(i);
      error.where.dataset = where.dataset;
      if (error.where.shard.empty()) error.where.shard = where.shard;
      error.where.record = i;
      return std::unexpected(std::move(error));
    }
    ends.push_back(origins.size());
  }
  return std::make_shared<const PatchFormat>(std::move(volumes), std::move(ends), std::move(origins));
}

}  // namespace feedline::format
