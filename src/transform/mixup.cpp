// SPDX-License-Identifier: Apache-2.0
#include "transform/mixup.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "feedline/mix_rows.h"
#include "transform/augment/sampling.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

// The number of elements that are processed in all rows before the next chunk: a chunk and its copy fit in the L1
// cache.
constexpr std::size_t kChunkBytes = 8192;

using Chunk = std::array<std::byte, kChunkBytes>;

double draw_open(base::Random& random) {
  double number = 0;
  while (number == 0) number = random.uniform();
  return number;
}

// Joehnk's method (M. D. Joehnk, Metrika 8, 1964): x = u^(1/a), y = v^(1/a) with x + y <= 1. The result is computed
// with logarithms, because both numbers underflow a double for small alphas.
double draw_joehnk(double alpha, base::Random& random) {
  while (true) {
    const double x = std::log(draw_open(random)) / alpha;
    const double y = std::log(draw_open(random)) / alpha;
    const double most = std::max(x, y);
    const double sum = most + std::log(std::exp(x - most) + std::exp(y - most));
    if (sum <= 0) return std::exp(x - sum);
  }
}

// Algorithm BB with equal parameters (R. C. H. Cheng, Communications of the ACM 21, 1978).
double draw_cheng(double alpha, base::Random& random) {
  const double both = 2 * alpha, beta = std::sqrt((both - 2) / (2 * alpha * alpha - both));
  const double gamma = alpha + 1 / beta;
  while (true) {
    const double first = draw_open(random), second = draw_open(random);
    const double v = beta * std::log(first / (1 - first));
    const double w = alpha * std::exp(v);
    const double z = first * first * second;
    const double r = gamma * v - std::log(4.0);
    if (r + both * std::log(both / (alpha + w)) >= std::log(z)) return w / (alpha + w);
  }
}

std::size_t chunk_elements(DType dtype) { return kChunkBytes / size_of(dtype); }

// The elements [first, last) of the row that is written, and as many elements of its partner, starting at the given
// position.
struct Part {
  std::size_t first = 0, last = 0;
  std::byte* own = nullptr;
  const std::byte* partner = nullptr;
};

void blend(const MixedRows& rows, const Part& part, const Mix& mix) {
  const Kernels& kernels = active_kernels();
  const auto share = static_cast<float>(mix.share), rest = static_cast<float>(1.0 - mix.share);
  const std::size_t count = part.last - part.first;
  if (rows.dtype == DType::kFloat32)
    kernels.blend_float32(reinterpret_cast<float*>(part.own), reinterpret_cast<const float*>(part.partner), count,
                          share, rest);
  else
    kernels.blend_float16(reinterpret_cast<std::uint16_t*>(part.own),
                          reinterpret_cast<const std::uint16_t*>(part.partner), count, share, rest);
}

struct Lines {
  std::size_t elements = 0;                // of one line of a plane, or of interleaved pixels
  std::size_t box_begin = 0, box_end = 0;  // of the box, in a line that it crosses
};

Lines lines_of(const MixedRows& rows, const Mix& mix) {
  const auto each = static_cast<std::size_t>(rows.layout == Layout::kNchw ? 1 : rows.channels);
  const auto left = static_cast<std::size_t>(mix.box.left), width = static_cast<std::size_t>(mix.box.width);
  return {static_cast<std::size_t>(rows.image.width) * each, left * each, (left + width) * each};
}

void paste(const MixedRows& rows, const Part& part, const Mix& mix) {
  const Lines lines = lines_of(rows, mix);
  const std::size_t bytes = size_of(rows.dtype), height = static_cast<std::size_t>(rows.image.height);
  const auto top = static_cast<std::size_t>(mix.box.top), bottom = top + static_cast<std::size_t>(mix.box.height);
  for (std::size_t line = part.first / lines.elements; line * lines.elements < part.last; ++line) {
    if (line % height < top || line % height >= bottom) continue;
    const std::size_t from = std::max(line * lines.elements + lines.box_begin, part.first);
    const std::size_t to = std::min(line * lines.elements + lines.box_end, part.last);
    if (from >= to) continue;
    const std::size_t at = (from - part.first) * bytes;
    std::memcpy(part.own + at, part.partner + at, (to - from) * bytes);
  }
}

void apply(const MixedRows& rows, const Part& part, const Mix& mix) {
  if (mix.kind == Mix::Kind::kBlend) blend(rows, part, mix);
  if (mix.kind == Mix::Kind::kPaste) paste(rows, part, mix);
}

// Calls work(first, last) for each chunk of a row.
template <typename Work>
void each_chunk(const MixedRows& rows, Work work) {
  const std::size_t step = chunk_elements(rows.dtype), elements = rows.elements();
  for (std::size_t first = 0; first < elements; first += step) work(first, std::min(first + step, elements));
}

std::byte* at(const MixedRows& rows, std::size_t row, std::size_t element) {
  return rows.data + (row * rows.elements() + element) * size_of(rows.dtype);
}

void save(const MixedRows& rows, std::size_t row, std::size_t first, std::size_t last, Chunk& saved) {
  std::memcpy(saved.data(), at(rows, row, first), (last - first) * size_of(rows.dtype));
}

}  // namespace

double draw_beta(double alpha, base::Random& random) {
  return alpha <= 1 ? draw_joehnk(alpha, random) : draw_cheng(alpha, random);
}

Mix paste_around(double share, Size image, int x, int y) {
  const double half = 0.5 * std::sqrt(1.0 - share);
  const int half_width = static_cast<int>(half * image.width), half_height = static_cast<int>(half * image.height);
  const int left = std::max(x - half_width, 0), right = std::min(x + half_width, image.width);
  const int top = std::max(y - half_height, 0), bottom = std::min(y + half_height, image.height);
  const double area = static_cast<double>(right - left) * (bottom - top);
  const double whole = static_cast<double>(image.width) * image.height;
  return {Mix::Kind::kPaste, 1.0 - area / whole, {left, top, right - left, bottom - top}};
}

Mix draw_mix(const MixRules& rules, Size image, base::Random& random) {
  if (!draw_coin(rules.probability, random)) return {};
  const bool both = rules.mixup > 0 && rules.cutmix > 0;
  const bool pastes = both ? draw_coin(rules.switch_probability, random) : rules.cutmix > 0;
  // a float, as in torch
  const double share = static_cast<float>(draw_beta(pastes ? rules.cutmix : rules.mixup, random));
  if (!pastes) return {share < 1 ? Mix::Kind::kBlend : Mix::Kind::kNone, share, {}};
  const auto x = static_cast<int>(random.below(static_cast<std::uint32_t>(image.width)));
  const auto y = static_cast<int>(random.below(static_cast<std::uint32_t>(image.height)));
  return paste_around(share, image, x, y);
}

std::size_t MixedRows::elements() const {
  return static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) *
         static_cast<std::size_t>(channels);
}

void mix_rolled(const MixedRows& rows, std::size_t count, const Mix& mix) {
  if (mix.kind == Mix::Kind::kNone) return;
  each_chunk(rows, [&](std::size_t first, std::size_t last) {
    Chunk saved;
    save(rows, count - 1, first, last, saved);
    for (std::size_t row = count - 1; row > 0; --row)
      apply(rows, {first, last, at(rows, row, first), at(rows, row - 1, first)}, mix);
    apply(rows, {first, last, at(rows, 0, first), saved.data()}, mix);
  });
}

void mix_both(const MixedRows& rows, std::size_t first_row, std::size_t second_row, const Mix& of_first,
              const Mix& of_second) {
  if (of_second.kind == Mix::Kind::kNone) return mix_one(rows, first_row, second_row, of_first);
  each_chunk(rows, [&](std::size_t first, std::size_t last) {
    Chunk saved;
    save(rows, first_row, first, last, saved);
    apply(rows, {first, last, at(rows, first_row, first), at(rows, second_row, first)}, of_first);
    apply(rows, {first, last, at(rows, second_row, first), saved.data()}, of_second);
  });
}

void mix_one(const MixedRows& rows, std::size_t row, std::size_t partner, const Mix& mix) {
  if (mix.kind == Mix::Kind::kNone) return;
  each_chunk(rows, [&](std::size_t first, std::size_t last) {
    apply(rows, {first, last, at(rows, row, first), at(rows, partner, first)}, mix);
  });
}

void fill_target(std::span<float> target, std::int64_t own, std::int64_t partner, double share, double smoothing) {
  const double off = smoothing / static_cast<double>(target.size());
  const auto low = static_cast<float>(off), high = static_cast<float>(1.0 - smoothing + off);
  const auto of_own = static_cast<float>(share), of_partner = static_cast<float>(1.0 - share);
  const auto mixed = [&](bool is_own, bool is_partner) {
    return (is_own ? high : low) * of_own + (is_partner ? high : low) * of_partner;
  };
  std::ranges::fill(target, mixed(false, false));
  target[static_cast<std::size_t>(partner)] = mixed(own == partner, true);
  target[static_cast<std::size_t>(own)] = mixed(true, own == partner);
}

}  // namespace feedline::transform

namespace feedline {
namespace {

transform::MixedRows rows_of(const ImageRows& images) {
  return {reinterpret_cast<std::byte*>(images.data), DType::kFloat32, images.image, images.channels, Layout::kNchw};
}

Result<void> check_rows(const ImageRows& images) {
  if (images.rows > 1) return {};
  return config_error("mixing: at least two rows are needed, got " + std::to_string(images.rows));
}

}  // namespace

Result<void> mix_up(const ImageRows& images, double share) {
  FEEDLINE_CHECK_OK(check_rows(images));
  transform::mix_rolled(rows_of(images), images.rows, {transform::Mix::Kind::kBlend, share, {}});
  return {};
}

Result<void> cut_mix(const ImageRows& images, const Box& box) {
  FEEDLINE_CHECK_OK(check_rows(images));
  const Size& image = images.image;
  if (box.left < 0 || box.top < 0 || box.width < 0 || box.height < 0 || box.left > image.width - box.width ||
      box.top > image.height - box.height)
    return config_error("mixing: the box is not inside the image");
  transform::mix_rolled(rows_of(images), images.rows, {transform::Mix::Kind::kPaste, 1, box});
  return {};
}

}  // namespace feedline
