// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/axis_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

// Bit-exactness: every expression with doubles below has the operands, order and rounding of Pillow's Resample.c and
// Geometry.c. For torch, the expressions match UpSampleKernel.cpp, which differs only in the number of bits per weight.
// Simplifying an expression changes pixels.

namespace feedline::transform {
namespace {

struct Filter {
  double support;
  double scale;         // source pixels per output pixel
  double filter_scale;  // at least 1: enlarging interpolates, reducing averages

  explicit Filter(const AxisRequest& request)
      : scale(static_cast<double>(request.in) / request.out), filter_scale(std::max(scale, 1.0)) {
    support = radius(request.interpolation) * filter_scale;
  }

  static double radius(Interpolation interpolation) {
    switch (interpolation) {
      case Interpolation::kBox:
        return 0.5;
      case Interpolation::kBilinear:
      case Interpolation::kTorchBilinear:
        return 1.0;
      case Interpolation::kBicubic:
      case Interpolation::kTorchBicubic:
        return 2.0;
      case Interpolation::kLanczos:
        return 3.0;
      case Interpolation::kNearest:
      case Interpolation::kRandom:
        break;
    }
    FEEDLINE_CHECK(!"it has no filter");
  }

  double center(int out) const { return (out + 0.5) * scale; }
  int begin(int out) const { return std::max(0, static_cast<int>(center(out) - support + 0.5)); }
  int end(int out, int in) const { return std::min(in, static_cast<int>(center(out) + support + 0.5)); }
};

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double triangle(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys' cubic filter with a = -1/2.
double cubic(double x) {
  x = std::fabs(x);
  if (x < 1.0) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * -0.5;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x = x * std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

std::int32_t fixed_point(double weight, int bits) {
  const double scaled = weight * (1 << bits);
  return static_cast<std::int32_t>(weight < 0 ? -0.5 + scaled : 0.5 + scaled) * (1 << (kWeightBits - bits));
}

// Computes the unrounded weights of source positions [begin, begin + count), and returns their sum.
template <double (*kKernel)(double)>
double weigh(int begin, int count, double center, double inverse, double* weights) {
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    const double weight = kKernel((i + begin - center + 0.5) * inverse);
    weights[i] = weight;
    sum += weight;
  }
  return sum;
}

using Weigh = double (*)(int, int, double, double, double*);

Weigh weigh_for(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kBox:
      return weigh<box>;
    case Interpolation::kBicubic:
    case Interpolation::kTorchBicubic:
      return weigh<cubic>;
    case Interpolation::kLanczos:
      return weigh<lanczos>;
    default:
      return weigh<triangle>;
  }
}

bool is_torchs(Interpolation interpolation) {
  return interpolation == Interpolation::kTorchBilinear || interpolation == Interpolation::kTorchBicubic;
}

// torch stores weights in 16 bits, with as many fractional bits as the largest weight in this direction allows. Weights
// that are rounded to this number of bits and shifted to kWeightBits reproduce torch's sums and rounding.
int torch_bits(const AxisRequest& request, const Filter& filter, Weigh weigh_all, double* weights) {
  double largest = 0;
  for (int out = 0; out < request.out; ++out) {
    const int begin = filter.begin(out), used = filter.end(out, request.in) - begin;
    const double sum = weigh_all(begin, used, filter.center(out), 1.0 / filter.filter_scale, weights);
    for (int x = 0; x < used; ++x) largest = std::max(largest, weights[x] / sum);
  }
  constexpr int kBound = 1 << 15;
  int bits = 0;
  while (bits < kWeightBits && static_cast<int>(0.5 + largest * (1 << (bits + 1))) < kBound) ++bits;
  return bits;
}

// Calls use(i, source) for each requested position. Pillow adds repeatedly, so a position depends on the rounding of
// all earlier additions. The additions therefore start at 0 for every request.
template <typename Use>
void walk_nearest(const AxisRequest& request, Use use) {
  const double step = static_cast<double>(request.in) / request.out;
  double position = step * 0.5;
  for (int i = 0; i < request.begin + request.count; ++i, position += step)
    if (i >= request.begin) use(i - request.begin, std::min(static_cast<int>(position), request.in - 1));
}

}  // namespace

void AxisWeights::compute(const AxisRequest& request, int origin) {
  const auto count = static_cast<std::size_t>(request.count);
  first.resize(count);
  used.assign(count, 1);
  taps = 1;
  const auto place = [&](int i) { return static_cast<std::size_t>(request.reversed ? request.count - 1 - i : i); };
  if (request.in == request.out || request.interpolation == Interpolation::kNearest) {
    weights.assign(count, 1.0);
    if (request.interpolation == Interpolation::kNearest)
      walk_nearest(request, [&](int i, int source) { first[place(i)] = source - origin; });
    else
      for (int i = 0; i < request.count; ++i) first[place(i)] = request.begin + i - origin;
    return;
  }
  const Filter filter(request);
  const Weigh weigh_all = weigh_for(request.interpolation);
  for (int i = 0; i < request.count; ++i) {
    const int begin = filter.begin(request.begin + i);
    first[place(i)] = begin - origin;
    used[place(i)] = filter.end(request.begin + i, request.in) - begin;
    taps = std::max(taps, used[place(i)]);
  }
  weights.assign(count * static_cast<std::size_t>(taps), 0.0);
  for (int i = 0; i < request.count; ++i) {
    const std::size_t at = place(i);
    double* const own = weights.data() + at * static_cast<std::size_t>(taps);
    const double sum =
        weigh_all(first[at] + origin, used[at], filter.center(request.begin + i), 1.0 / filter.filter_scale, own);
    for (int tap = 0; tap < used[at]; ++tap) own[tap] /= sum;
  }
}

AxisSpan source_span(const AxisRequest& request) {
  const int last = request.begin + request.count - 1;
  if (request.in == request.out) return {request.begin, last + 1};
  if (request.interpolation == Interpolation::kNearest) {
    AxisSpan span{request.in, 0};
    walk_nearest(request, [&span](int, int source) {
      span.begin = std::min(span.begin, source);
      span.end = std::max(span.end, source + 1);
    });
    return span;
  }
  const Filter filter(request);
  return {filter.begin(request.begin), filter.end(last, request.in)};
}

void AxisTable::compute(const AxisRequest& request, int origin) {
  if (valid_ && request == request_ && origin == origin_) return;
  request_ = request;
  origin_ = origin;
  valid_ = true;
  count_ = request.count;
  identity_ = request.in == request.out && !request.reversed;
  first_.resize(static_cast<std::size_t>(count_));
  used_.resize(static_cast<std::size_t>(count_));
  if (request.interpolation == Interpolation::kNearest || request.in == request.out) {
    compute_nearest();
  } else {
    compute_filtered();
  }
}

// Each position has one tap of weight 1. This is also used for equal sizes, for which the weights of every filter are
// exactly 1 and 0.
void AxisTable::compute_nearest() {
  stride_ = 1;
  taps_ = 1;
  weights_.assign(first_.size(), 1 << kWeightBits);
  std::fill(used_.begin(), used_.end(), 1);
  walk_nearest(request_, [this](int i, int source) {
    const int slot = request_.reversed ? count_ - 1 - i : i;
    first_[static_cast<std::size_t>(slot)] = (request_.in == request_.out ? request_.begin + i : source) - origin_;
  });
}

void AxisTable::compute_filtered() {
  const Filter filter(request_);
  const double inverse = 1.0 / filter.filter_scale;
  stride_ = static_cast<std::size_t>(std::ceil(filter.support)) * 2 + 1;
  weights_.resize(first_.size() * stride_);
  exact_.resize(stride_);
  taps_ = 0;
  const Weigh weigh_all = weigh_for(request_.interpolation);
  const int bits =
      is_torchs(request_.interpolation) ? torch_bits(request_, filter, weigh_all, exact_.data()) : kWeightBits;
  for (int i = 0; i < count_; ++i) {
    const int out = request_.begin + i;
    const int begin = filter.begin(out);
    const int used = filter.end(out, request_.in) - begin;
    const auto slot = static_cast<std::size_t>(request_.reversed ? count_ - 1 - i : i);
    FEEDLINE_CHECK(used >= 0 && static_cast<std::size_t>(used) <= stride_);
    const double sum = weigh_all(begin, used, filter.center(out), inverse, exact_.data());
    std::int32_t* weights = weights_.data() + slot * stride_;
    for (int x = 0; x < used; ++x) {
      const double weight = exact_[static_cast<std::size_t>(x)];
      weights[x] = fixed_point(sum != 0.0 ? weight / sum : weight, bits);
    }
    std::fill(weights + used, weights + stride_, 0);
    first_[slot] = begin - origin_;
    used_[slot] = used;
    taps_ = std::max(taps_, used);
  }
}

void AxisTable::fold(const AxisTable& exact, const memory::PlaneAxis& axis, int pixel) {
  // The sample that contains a pixel, and the next nearest sample.
  const auto near = [&axis](int x) { return axis.halved ? std::min(x / 2, axis.size - 1) : x; };
  const auto far = [&axis](int x) {
    return axis.halved ? std::clamp(x / 2 + (x % 2 == 0 ? -1 : 1), 0, axis.size - 1) : x;
  };
  const auto slot_of = [&axis](int sample) { return (sample >> axis.shift) - axis.first; };
  valid_ = false;
  identity_ = false;
  count_ = exact.count_;
  taps_ = 0;
  stride_ = static_cast<std::size_t>(exact.taps_) + 2;
  first_.resize(exact.first_.size());
  used_.resize(first_.size());
  weights_.assign(first_.size() * stride_, 0);
  folded_.resize(stride_);
  for (int i = 0; i < count_; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    const int begin = pixel + exact.first(i), end = begin + exact.used(i);
    const int first = slot_of(std::min(near(begin), far(begin)));
    const int used = slot_of(std::max(near(end - 1), far(end - 1))) + 1 - first;
    FEEDLINE_CHECK(first >= 0 && used >= 1 && static_cast<std::size_t>(used) <= stride_);
    std::fill_n(folded_.begin(), used, 0);
    for (int x = begin; x < end; ++x) {  // in quarters
      const std::int32_t weight = exact.weights(i)[x - begin];
      folded_[static_cast<std::size_t>(slot_of(near(x)) - first)] += 3 * weight;
      folded_[static_cast<std::size_t>(slot_of(far(x)) - first)] += weight;
    }
    std::int32_t* const weights = weights_.data() + slot * stride_;
    for (int s = 0; s < used; ++s) weights[s] = (folded_[static_cast<std::size_t>(s)] + 2) >> 2;
    first_[slot] = first;
    used_[slot] = used;
    taps_ = std::max(taps_, used);
  }
}

}  // namespace feedline::transform
