// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/nifti.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "format/index/plain_copy.h"

namespace feedline::format {
namespace {

constexpr int kOne = 348, kTwo = 540;

std::unexpected<Error> wrong(const std::string& what) { return data_error("nifti: " + what, "format"); }

// Reads numbers of a header in its byte order.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, bool is_swapped) : bytes_(bytes), is_swapped_(is_swapped) {}

  template <typename T>
  T at(std::size_t offset) const {
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), bytes_.data() + offset, sizeof(T));
    if (is_swapped_) std::ranges::reverse(raw);
    return std::bit_cast<T>(raw);
  }
  std::string_view text(std::size_t offset, std::size_t bytes) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, bytes};
  }

 private:
  const std::span<const std::byte> bytes_;
  const bool is_swapped_;
};

std::optional<DType> dtype_of(int type) {
  switch (type) {
    case 2:
      return DType::kUint8;
    case 4:
      return DType::kInt16;
    case 8:
      return DType::kInt32;
    case 16:
      return DType::kFloat32;
    case 64:
      return DType::kFloat64;
    case 256:
      return DType::kInt8;
    case 512:
      return DType::kUint16;
    case 768:
      return DType::kUint32;
    case 1024:
      return DType::kInt64;
    case 1280:
      return DType::kUint64;
    default:
      return {};
  }
}

// The numbers that both versions have.
struct Numbers {
  std::int64_t dims = 0;
  std::array<std::int64_t, 7> extents{};
  std::array<double, 8> pixdim{};
  int type = 0;
  double offset = 0, slope = 0, inter = 0;
  int qform = 0, sform = 0;
  std::array<double, 6> quaternion{};
  std::array<double, 12> rows{};
  int header = 0;
};

Numbers numbers_of_one(const Fields& fields) {
  Numbers n{.header = kOne};
  n.dims = fields.at<std::int16_t>(40);
  for (std::size_t i = 0; i < 7; ++i) n.extents[i] = fields.at<std::int16_t>(42 + 2 * i);
  for (std::size_t i = 0; i < 8; ++i) n.pixdim[i] = static_cast<double>(fields.at<float>(76 + 4 * i));
  n.type = fields.at<std::int16_t>(70);
  n.offset = static_cast<double>(fields.at<float>(108));
  n.slope = static_cast<double>(fields.at<float>(112));
  n.inter = static_cast<double>(fields.at<float>(116));
  n.qform = fields.at<std::int16_t>(252);
  n.sform = fields.at<std::int16_t>(254);
  for (std::size_t i = 0; i < 6; ++i) n.quaternion[i] = static_cast<double>(fields.at<float>(256 + 4 * i));
  for (std::size_t i = 0; i < 12; ++i) n.rows[i] = static_cast<double>(fields.at<float>(280 + 4 * i));
  return n;
}

Numbers numbers_of_two(const Fields& fields) {
  Numbers n{.header = kTwo};
  n.dims = fields.at<std::int64_t>(16);
  for (std::size_t i = 0; i < 7; ++i) n.extents[i] = fields.at<std::int64_t>(24 + 8 * i);
  for (std::size_t i = 0; i < 8; ++i) n.pixdim[i] = fields.at<double>(104 + 8 * i);
  n.type = fields.at<std::int16_t>(12);
  n.offset = static_cast<double>(fields.at<std::int64_t>(168));
  n.slope = fields.at<double>(176);
  n.inter = fields.at<double>(184);
  n.qform = fields.at<std::int32_t>(344);
  n.sform = fields.at<std::int32_t>(348);
  for (std::size_t i = 0; i < 6; ++i) n.quaternion[i] = fields.at<double>(352 + 8 * i);
  for (std::size_t i = 0; i < 12; ++i) n.rows[i] = fields.at<double>(400 + 8 * i);
  return n;
}

Result<Affine> affine_of_quaternion(const Numbers& n) {
  const auto [b, c, d, x, y, z] = n.quaternion;
  const double rest = 1 - (b * b + c * c + d * d);
  constexpr double kTolerance = 3 * 1.1920929e-07;  // nibabel's, for float32
  if (!(rest > -kTolerance))
    return wrong("the affine is broken: the quaternion of the qform has a length of " +
                 std::to_string(std::sqrt(b * b + c * c + d * d)));
  const double a = rest < kTolerance ? 0 : std::sqrt(rest);
  const double length = a * a + b * b + c * c + d * d, s = 2 / length;
  const double rotation[3][3] = {{1 - s * (c * c + d * d), s * (b * c - a * d), s * (b * d + a * c)},
                                 {s * (b * c + a * d), 1 - s * (b * b + d * d), s * (c * d - a * b)},
                                 {s * (b * d - a * c), s * (c * d + a * b), 1 - s * (b * b + c * c)}};
  const double qfac = n.pixdim[0] == -1 ? -1 : 1;  // nibabel: any other number counts as 1
  const double origin[3] = {x, y, z};
  Affine affine{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) affine[4 * i + j] = rotation[i][j] * n.pixdim[j + 1] * (j == 2 ? qfac : 1);
    affine[4 * i + 3] = origin[i];
  }
  affine[15] = 1;
  return affine;
}

Result<Affine> affine_of(const Numbers& n) {
  Affine affine{};
  affine[15] = 1;
  if (n.sform > 0) {
    std::ranges::copy(n.rows, affine.begin());
  } else if (n.qform > 0) {
    FEEDLINE_TRY(affine, affine_of_quaternion(n));
  } else {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto extent = static_cast<double>(static_cast<std::int64_t>(i) < n.dims ? n.extents[i] : 1);
      const double spacing = i == 0 ? -n.pixdim[1] : n.pixdim[i + 1];
      affine[5 * i] = spacing;
      affine[4 * i + 3] = -spacing * (extent - 1) / 2;
    }
  }
  for (const double value : affine)
    if (!std::isfinite(value)) return wrong("the affine is broken: it has a number that is not finite");
  const auto& m = affine;
  const double determinant =
      m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) + m[2] * (m[4] * m[9] - m[5] * m[8]);
  if (determinant == 0) return wrong("the affine is broken: it maps the volume to a plane or a point");
  return affine;
}

Result<Shape> shape_of(const Numbers& n, DType dtype) {
  if (n.dims < 1 || n.dims > 7) return wrong("the header has " + std::to_string(n.dims) + " dimensions, not 1 to 7");
  auto dims = static_cast<std::size_t>(n.dims);
  while (dims > Shape::kMaxDims && n.extents[dims - 1] == 1) --dims;
  if (dims > Shape::kMaxDims)
    return wrong("arrays of more than " + std::to_string(Shape::kMaxDims) + " dimensions are not supported");
  Shape shape;
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  for (std::size_t i = dims; i-- > 0;) {
    if (n.extents[i] < 1) return wrong("extent " + std::to_string(i) + " is " + std::to_string(n.extents[i]));
    if (__builtin_mul_overflow(bytes, n.extents[i], &bytes)) return wrong("the extents overflow");
    shape = shape.with_front(n.extents[i]);
  }
  return shape;
}

}  // namespace

Result<NiftiHeader> read_nifti_header(std::span<const std::byte> front) {
  if (front.size() < 4) return wrong("a file of " + std::to_string(front.size()) + " bytes is not a NIfTI file");
  const auto size_in = [&](bool is_swapped) { return Fields(front, is_swapped).at<std::int32_t>(0); };
  const bool is_swapped = size_in(false) != kOne && size_in(false) != kTwo;
  const int size = size_in(is_swapped);
  if (size != kOne && size != kTwo) return wrong("not a NIfTI file: the header size is neither 348 nor 540");
  if (front.size() < static_cast<std::size_t>(size))
    return wrong("the header is truncated: " + std::to_string(front.size()) + " of " + std::to_string(size) + " bytes");
  const Fields fields(front, is_swapped);
  const auto magic = size == kOne ? fields.text(344, 4) : fields.text(4, 4);
  if (magic == (size == kOne ? std::string_view("ni1\0", 4) : std::string_view("ni2\0", 4)))
    return wrong(
        "the header refers to a separate .img file, which is not supported: convert the pair to one .nii file");
  if (magic != (size == kOne ? std::string_view("n+1\0", 4) : std::string_view("n+2\0", 4)))
    return wrong("not a NIfTI file: the magic is wrong");
  const Numbers n = size == kOne ? numbers_of_one(fields) : numbers_of_two(fields);
  const auto dtype = dtype_of(n.type);
  if (!dtype) return wrong("elements of NIfTI type " + std::to_string(n.type) + " are not supported");
  NiftiHeader header;
  FEEDLINE_TRY(const Shape shape, shape_of(n, *dtype));
  const double least = size == kOne ? 352 : 544;
  const double offset = n.offset == 0 ? least : n.offset;
  if (!(offset >= size && offset < 9e15 && offset == std::floor(offset)))
    return wrong("the elements cannot start at byte " + std::to_string(offset));
  header.layout = {.stored = {*dtype, shape},
                   .offset = static_cast<std::uint64_t>(offset),
                   .is_fortran = true,
                   .is_swapped = is_swapped,
                   .has_spatial_axes_first = true};
  if (std::isfinite(n.slope) && n.slope != 0) {
    if (!std::isfinite(n.inter)) return wrong("the slope is valid, but the intercept is not finite");
    if (n.slope != 1 || n.inter != 0) header.layout.scaling = DenseLayout::Scaling{n.slope, n.inter};
  }
  FEEDLINE_TRY(header.affine, affine_of(n));
  return header;
}

bool is_nifti_name(std::string_view path) {
  path = path.substr(0, path.find('?'));
  return path.ends_with(".nii") || path.ends_with(".nii.gz");
}

Result<NiftiVolume> open_nifti(std::shared_ptr<const storage::Storage> storage, const std::string& path,
                               cache::Notes* notes) {
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(path, storage::Access::kMap));
  FEEDLINE_TRY(const storage::ObjectStat version, reader->version());
  FEEDLINE_TRY(const bool is_compressed, is_gzip(*reader));
  if (is_compressed) {
    FEEDLINE_TRY(const std::string plain, decompressed(*storage, path, ".nii", notes));
    FEEDLINE_TRY(reader, storage::local_storage()->open(plain, storage::Access::kMap));
  }
  const auto located = [&](Error error) {
    error.where.shard = path;
    return std::unexpected(std::move(error));
  };
  std::array<std::byte, kMostNiftiHeader> front;
  FEEDLINE_TRY(const std::size_t got, reader->read_at(0, front));
  auto header = read_nifti_header(std::span(front).first(got));
  if (!header) return located(std::move(header).error());
  auto volume = make_dense_volume(std::move(reader), header->layout, OpenedVersion(std::move(storage), path, version));
  if (!volume) return located(std::move(volume).error());
  return NiftiVolume{std::move(*volume), header->affine};
}

}  // namespace feedline::format
