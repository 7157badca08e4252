// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/foreground.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include "cache/checksum.h"
#include "cache/persisted_tables.h"
#include "memory/number.h"

namespace feedline::pipeline {
namespace {

constexpr cache::FrameKind kForeground{0x67'72'6f'66'64'65'65'66, 1};  // "feedforg"
constexpr std::string_view kForegroundSuffix = ".feedline-foreground";
constexpr std::size_t kMostRecentVolumes = 4096;
constexpr std::size_t kMostLabels = 1024;
constexpr std::int64_t kSlabVoxels = 4 << 20;

// Chooses at most kMostVoxels of the voxels of one label.
struct Reservoir {
  std::vector<std::uint64_t> voxels;
  std::uint64_t seen = 0;

  void add(std::uint64_t voxel, base::Random& random) {
    if (seen++ < Foreground::kMostVoxels) return voxels.push_back(voxel);
    const auto at = static_cast<std::uint64_t>(random.uniform() * static_cast<double>(seen));
    if (at < voxels.size()) voxels[at] = voxel;
  }
};

template <typename T>
bool is_label(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value > -0x1p63 && value < 0x1p63;  // false for NaN
  else
    return static_cast<std::uint64_t>(value) >> 63U == 0 || std::is_signed_v<T>;
}

Shape voxel_of(std::uint64_t index, const Shape& shape) {
  Shape voxel = shape;
  for (std::size_t i = shape.dims(); i-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(shape[i]);
    voxel = voxel.with_extent(i, static_cast<std::int64_t>(index % extent));
    index /= extent;
  }
  return voxel;
}

class Scan {
 public:
  explicit Scan(std::span<const int> values) : values_(values) {}

  // first: the index of the first voxel in `shape`.
  Result<void> add(DType dtype, std::span<const std::byte> data, std::uint64_t first, const Shape& shape) {
    const std::array<std::byte, 8> zero{};
    return memory::with_number(dtype, zero, [&]<typename T>(T value) -> Result<void> {
      if constexpr (std::is_arithmetic_v<T>) {
        for (std::size_t i = 0; i * sizeof(T) < data.size(); ++i) {
          std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
          if (value == T{} && values_.empty()) continue;
          if (!is_label(value))
            return data_error("the label at voxel " + voxel_of(first + i, shape).to_string() + " is " +
                                  std::to_string(value) + "; labels must be finite and less than 2^63",
                              "transform");
          const auto label = static_cast<std::int64_t>(value);
          const bool is_wanted = values_.empty() ? label > 0 : std::ranges::find(values_, label) != values_.end();
          if (!is_wanted) continue;
          if (label != last_label_ || last_ == nullptr) {
            last_ = &labels_[label];
            last_label_ = label;
            if (labels_.size() > kMostLabels)
              return data_error("the volume has more than " + std::to_string(kMostLabels) +
                                    " labels; pass the wanted ones, or the name of a label field",
                                "transform");
          }
          last_->add(first + i, random_);
        }
      }
      return {};
    });
  }

  Foreground finish() {
    Foreground found;
    for (auto& [label, reservoir] : labels_) {
      std::ranges::sort(reservoir.voxels);
      found.voxels.insert(found.voxels.end(), reservoir.voxels.begin(), reservoir.voxels.end());
      found.ends.push_back(found.voxels.size());
    }
    return found;
  }

 private:
  const std::span<const int> values_;
  base::Random random_{{}, 0};  // the same on all hosts, whose files may have other times
  std::map<std::int64_t, Reservoir> labels_;
  std::int64_t last_label_ = 0;
  Reservoir* last_ = nullptr;  // stays valid: nodes of a map do not move
};

// An entry: the number of labels, their ends, and the voxels.
std::vector<std::byte> entry_of(const Foreground& found) {
  std::vector<std::uint64_t> numbers{found.ends.size()};
  numbers.insert(numbers.end(), found.ends.begin(), found.ends.end());
  numbers.insert(numbers.end(), found.voxels.begin(), found.voxels.end());
  numbers.push_back(cache::xxh3(std::as_bytes(std::span(numbers))));
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

// Returns nullptr if the entry is damaged, or does not belong to a volume of this size.
std::shared_ptr<const Foreground> read_entry(std::span<const std::byte> entry, std::uint64_t volume) {
  if (entry.size() % 8 != 0 || entry.size() < 16) return nullptr;
  std::vector<std::uint64_t> numbers(entry.size() / 8);
  std::memcpy(numbers.data(), entry.data(), entry.size());
  const std::uint64_t sum = numbers.back();
  numbers.pop_back();
  if (cache::xxh3(std::as_bytes(std::span(numbers))) != sum || numbers[0] >= numbers.size()) return nullptr;
  auto found = std::make_shared<Foreground>();
  const auto ends = numbers.begin() + 1, voxels = ends + static_cast<std::ptrdiff_t>(numbers[0]);
  found->ends.assign(ends, voxels);
  found->voxels.assign(voxels, numbers.end());
  const bool ends_well = found->ends.empty() ? found->voxels.empty() : found->ends.back() == found->voxels.size();
  const bool is_ascending = std::ranges::is_sorted(found->ends) && (found->ends.empty() || found->ends[0] > 0);
  const bool is_inside = std::ranges::all_of(found->voxels, [&](std::uint64_t voxel) { return voxel < volume; });
  if (!ends_well || !is_ascending || !is_inside) return nullptr;
  return found;
}

}  // namespace

std::uint64_t Foreground::draw(base::Random& random) const {
  const std::uint32_t label = random.below(static_cast<std::uint32_t>(ends.size()));
  const std::uint64_t begin = label == 0 ? 0 : ends[label - 1];
  return voxels[begin + random.below(static_cast<std::uint32_t>(ends[label] - begin))];
}

Result<Foreground> find_foreground(const memory::Volume& labels, std::span<const int> values) {
  const Shape& shape = labels.spec().shape;
  const std::size_t dims = shape.dims(), element = size_of(labels.spec().dtype);
  const std::int64_t per_index = shape.elements() / shape[0];
  // slabs of whole chunks
  const std::int64_t unit = labels.chunk()[0];
  const std::int64_t units = std::max<std::int64_t>(kSlabVoxels / std::max<std::int64_t>(per_index * unit, 1), 1);
  Shape begin = shape, size = shape;
  for (std::size_t i = 0; i < dims; ++i) begin = begin.with_extent(i, 0);
  memory::VolumeBuffers buffers;
  memory::ByteBuffer room;
  Scan scan(values);
  for (std::int64_t at = 0; at < shape[0]; at += units * unit) {
    begin = begin.with_extent(0, at);
    size = size.with_extent(0, std::min(units * unit, shape[0] - at));
    const std::size_t bytes = static_cast<std::size_t>(size[0] * per_index) * element;
    const auto slab = room.resize(bytes);
    const auto read = labels.read_box({begin.begin(), dims}, {size.begin(), dims}, slab.data(), buffers);
    FEEDLINE_CHECK_OK(labels.check_unchanged());
    if (!read) return std::unexpected(read.error());
    FEEDLINE_CHECK_OK(scan.add(labels.spec().dtype, slab, static_cast<std::uint64_t>(at * per_index), shape));
  }
  return scan.finish();
}

ForegroundIndex::ForegroundIndex(const storage::Storage& storage, const std::string& object,
                                 const std::string& directory)
    : store_(kForeground, cache::locations_of_source(kForeground, kForegroundSuffix, storage, object, directory)) {}

Result<std::shared_ptr<const Foreground>> ForegroundIndex::find(const memory::Volume& labels,
                                                                std::span<const int> values) {
  FEEDLINE_TRY(std::uint64_t key, labels.key());
  for (const int value : values) key = base::mix64(key + static_cast<std::uint64_t>(value) + 1);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = recent_.find(key); found != recent_.end()) return found->second;
  }
  std::shared_ptr<const Foreground> found;
  std::vector<std::byte> entry;
  if (store_.find(key, entry)) found = read_entry(entry, static_cast<std::uint64_t>(labels.spec().shape.elements()));
  if (!found) {
    FEEDLINE_TRY(Foreground made, find_foreground(labels, values));
    store_.save(key, entry_of(made));
    found = std::make_shared<const Foreground>(std::move(made));
  }
  const std::lock_guard lock(mutex_);
  if (recent_.size() >= kMostRecentVolumes) recent_.clear();
  return recent_.emplace(key, std::move(found)).first->second;
}

}  // namespace feedline::pipeline
