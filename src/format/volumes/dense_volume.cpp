// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/dense_volume.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/npy_header.h"
#include "memory/number.h"
#include "memory/strided_copy.h"

namespace feedline::format {
namespace {

// Covering ranges up to this size are read by one request.
constexpr std::uint64_t kOneRead = 256 << 10;

template <typename T>
void scale(const std::byte* in, std::size_t count, const DenseLayout::Scaling& scaling, float* out) {
  T value;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&value, in + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(static_cast<double>(value) * scaling.slope + scaling.inter);
  }
}

void scale_elements(DType dtype, const std::byte* in, std::size_t count, const DenseLayout::Scaling& scaling,
                    float* out) {
  std::array<std::byte, 8> zero{};
  memory::with_number(dtype, zero, [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>) scale<T>(in, count, scaling, out);
  });
}

class DenseVolume final : public memory::Volume {
 public:
  DenseVolume(std::shared_ptr<const storage::Reader> reader, const DenseLayout& layout, OpenedVersion opened,
              std::string_view array)
      : reader_(std::move(reader)),
        layout_(layout),
        spec_{layout.scaling ? DType::kFloat32 : layout.stored.dtype, layout.stored.shape},
        opened_(std::move(opened)),
        key_(opened_.key(array)) {
    for (std::size_t i = 0; i < spec_.shape.dims(); ++i) ones_ = ones_.with_front(1);
    const std::span extents(spec_.shape.begin(), spec_.shape.dims());
    const std::size_t element = size_of(layout.stored.dtype);
    strides_ = layout.is_fortran ? memory::fortran_strides(extents, element) : memory::c_strides(extents, element);
  }

  const ArraySpec& spec() const override { return spec_; }
  Shape chunk() const override { return ones_; }
  const std::string& name() const override { return opened_.path(); }
  Result<std::uint64_t> key() const override { return key_; }
  Result<void> check_unchanged() const override { return opened_.check(); }
  bool has_spatial_axes_first() const override { return layout_.has_spatial_axes_first; }

  Result<std::optional<View>> view_box(std::span<const std::int64_t> begin,
                                       std::span<const std::int64_t> size) const override {
    const auto all = reader_->mapping();
    const bool is_stored_otherwise = layout_.scaling || layout_.is_swapped || layout_.is_fortran;
    if (all.empty() || is_stored_otherwise || layout_.offset % size_of(spec_.dtype) != 0) return std::nullopt;
    std::uint64_t wanted = size_of(spec_.dtype);
    for (const std::int64_t extent : size) wanted *= static_cast<std::uint64_t>(extent);
    const Ranges ranges = ranges_of(begin, size, wanted);
    FEEDLINE_TRY(const std::uint64_t loaded, load(ranges, size));
    return View{all.data() + ranges.first, strides_, loaded};
  }

  Result<std::uint64_t> read_box(std::span<const std::int64_t> begin, std::span<const std::int64_t> size,
                                 std::byte* out, memory::VolumeBuffers& buffers) const override {
    auto read = read_elements(begin, size, out, buffers);
    if (!read && read.error().where.shard.empty()) read.error().where.shard = reader_->name();
    return read;
  }

 private:
  Result<std::uint64_t> read_elements(std::span<const std::int64_t> begin, std::span<const std::int64_t> size,
                                      std::byte* out, memory::VolumeBuffers& buffers) const {
    const std::size_t element = size_of(layout_.stored.dtype);
    std::size_t count = 1;
    for (const std::int64_t extent : size) count *= static_cast<std::size_t>(extent);
    std::byte* const raw = layout_.scaling ? buffers.raw.resize(count * element).data() : out;
    FEEDLINE_TRY(const std::uint64_t bytes, gather(begin, size, raw, count * element, buffers));
    if (layout_.is_swapped) memory::swap_bytes(raw, count, element);
    if (layout_.scaling)
      scale_elements(layout_.stored.dtype, raw, count, *layout_.scaling, reinterpret_cast<float*>(out));
    return bytes;
  }

  // Ranges of the file that cover a box: `count` ranges of `bytes`. The slowest axes are those with one range per
  // index.
  struct Ranges {
    std::array<std::size_t, Shape::kMaxDims> axes{};  // from the slowest to the fastest
    std::size_t outer = 0;                            // number of axes with one range per index
    std::uint64_t first = 0, bytes = 0;
  };
  Ranges ranges_of(std::span<const std::int64_t> begin, std::span<const std::int64_t> size,
                   std::uint64_t wanted) const {
    const std::size_t dims = size.size();
    Ranges ranges{.first = layout_.offset};
    for (std::size_t i = 0; i < dims; ++i) ranges.axes[i] = layout_.is_fortran ? dims - 1 - i : i;
    for (std::size_t i = 0; i < dims; ++i) ranges.first += static_cast<std::uint64_t>(begin[i] * strides_[i]);
    const auto bytes_from = [&](std::size_t outer) {
      auto bytes = static_cast<std::uint64_t>(size_of(layout_.stored.dtype));
      for (std::size_t i = outer; i < dims; ++i) {
        const std::size_t axis = ranges.axes[i];
        bytes += static_cast<std::uint64_t>((size[axis] - 1) * strides_[axis]);
      }
      return bytes;
    };
    const bool one = bytes_from(0) <= std::max(kOneRead, 2 * wanted);
    ranges.outer = one || dims < 2 ? 0 : dims - 2;
    ranges.bytes = bytes_from(ranges.outer);
    return ranges;
  }

  // Calls use(offset in the file, number of the range) for all ranges.
  template <typename Use>
  Result<void> for_ranges(const Ranges& ranges, std::span<const std::int64_t> size, Use use) const {
    std::array<std::int64_t, Shape::kMaxDims> at{};
    std::uint64_t offset = ranges.first, number = 0;
    while (true) {
      FEEDLINE_CHECK_OK(use(offset, number++));
      std::size_t i = ranges.outer;
      for (; i-- > 0;) {
        const std::size_t axis = ranges.axes[i];
        offset += static_cast<std::uint64_t>(strides_[axis]);
        if (++at[i] < size[axis]) break;
        offset -= static_cast<std::uint64_t>(size[axis] * strides_[axis]);
        at[i] = 0;
      }
      if (i == static_cast<std::size_t>(-1)) return {};
    }
  }

  // Loads the pages of a mapping, and returns the number of bytes. view() checks that the file still has them.
  Result<std::uint64_t> load(const Ranges& ranges, std::span<const std::int64_t> size) const {
    std::uint64_t count = 0;
    FEEDLINE_CHECK_OK(for_ranges(ranges, size, [&](std::uint64_t offset, std::uint64_t) -> Result<void> {
      ++count;
      auto view = reader_->view(offset, ranges.bytes);
      return view ? Result<void>() : std::unexpected(std::move(view).error());
    }));
    return count * ranges.bytes;
  }

  Result<std::uint64_t> gather(std::span<const std::int64_t> begin, std::span<const std::int64_t> size, std::byte* out,
                               std::uint64_t wanted, memory::VolumeBuffers& buffers) const {
    const std::size_t element = size_of(layout_.stored.dtype);
    const Ranges ranges = ranges_of(begin, size, wanted);
    const auto out_strides = memory::c_strides(size, element);
    if (const auto all = reader_->mapping(); !all.empty()) {
      FEEDLINE_TRY(const std::uint64_t loaded, load(ranges, size));
      memory::copy_strided(all.data() + ranges.first, std::span(strides_).first(size.size()), out,
                           std::span(out_strides).first(size.size()), size, element);
      return loaded;
    }
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < ranges.outer; ++i) count *= static_cast<std::uint64_t>(size[ranges.axes[i]]);
    const auto room = buffers.stored.resize(count * ranges.bytes);
    FEEDLINE_CHECK_OK(for_ranges(ranges, size, [&](std::uint64_t offset, std::uint64_t number) -> Result<void> {
      const auto part = room.subspan(number * ranges.bytes, ranges.bytes);
      FEEDLINE_TRY(const std::size_t got, reader_->read_at(offset, part));
      if (got == part.size()) return {};
      return data_error("the file ends at byte " + std::to_string(offset + got) + ", in the middle of the array",
                        "format");
    }));
    // in the buffer, the axes with one range per index are contiguous in ranges
    memory::Strides strides = strides_;
    auto stride = static_cast<std::ptrdiff_t>(ranges.bytes);
    for (std::size_t i = ranges.outer; i-- > 0;) {
      strides[ranges.axes[i]] = stride;
      stride *= size[ranges.axes[i]];
    }
    memory::copy_strided(room.data(), std::span(strides).first(size.size()), out,
                         std::span(out_strides).first(size.size()), size, element);
    return count * ranges.bytes;
  }

  const std::shared_ptr<const storage::Reader> reader_;
  const DenseLayout layout_;
  const ArraySpec spec_;
  const OpenedVersion opened_;
  const std::uint64_t key_;
  Shape ones_;
  memory::Strides strides_{};
};

}  // namespace

Result<std::shared_ptr<const memory::Volume>> make_dense_volume(std::shared_ptr<const storage::Reader> reader,
                                                                const DenseLayout& layout, OpenedVersion opened,
                                                                std::string_view array) {
  FEEDLINE_TRY(const storage::ObjectStat version, reader->version());
  const std::uint64_t needed = layout.stored.bytes();
  if (layout.offset > version.bytes || needed > version.bytes - layout.offset) {
    const std::uint64_t stored = version.bytes - std::min(version.bytes, layout.offset);
    Error error = data_error("truncated: " + std::to_string(stored) + " of " + std::to_string(needed) + " bytes of " +
                                 std::string(name_of(layout.stored.dtype)) + layout.stored.shape.to_string(),
                             "format")
                      .error();
    error.where.shard = reader->name();
    return std::unexpected(std::move(error));
  }
  return std::make_shared<const DenseVolume>(std::move(reader), layout, std::move(opened), array);
}

Result<std::shared_ptr<const memory::Volume>> open_npy_volume(std::shared_ptr<const storage::Storage> storage,
                                                              const std::string& path) {
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(path, storage::Access::kMap));
  FEEDLINE_TRY(const storage::Version version, reader->version());
  std::vector<std::byte> front(memory::kMostNpyHeader);
  FEEDLINE_TRY(const std::size_t got, reader->read_at(0, front));
  const auto located = [&](Error error) {
    if (error.where.shard.empty()) error.where.shard = path;
    error.where.stage = "format";
    return std::unexpected(std::move(error));
  };
  auto header = memory::read_npy_header(std::span(front).first(got));
  if (!header) return located(std::move(header).error());
  if (header->spec.shape.dims() == 0 || header->spec.shape.elements() == 0)
    return located(
        data_error("npy: an array of shape " + header->spec.shape.to_string() + " has no volume", "").error());
  return make_dense_volume(std::move(reader),
                           {.stored = header->spec,
                            .offset = header->bytes,
                            .is_fortran = header->is_fortran,
                            .is_swapped = header->is_swapped},
                           OpenedVersion(std::move(storage), path, version));
}

}  // namespace feedline::format
