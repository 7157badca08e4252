// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/flac_frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

using Stereo = FlacFrameHeader::Stereo;

constexpr std::uint32_t kMostOrder = 32;
// Wider samples of two channels are decoded as 64-bit numbers, because sums of two may have two bits more.
constexpr std::uint32_t kNarrowBits = 30;

std::unexpected<Error> bad_frame(const char* what) { return data_error(what, "decode"); }

constexpr std::array<std::uint8_t, 256> kCrc8 = [] {
  std::array<std::uint8_t, 256> table{};
  for (unsigned i = 0; i < table.size(); ++i) {
    unsigned crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1U ^ ((crc & 0x80U) != 0 ? 0x107U : 0U);
    table[i] = static_cast<std::uint8_t>(crc);
  }
  return table;
}();

// Table k has the CRCs of bytes that are followed by k zero bytes.
constexpr auto kCrc16 = [] {
  std::array<std::array<std::uint16_t, 256>, 16> tables{};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned crc = i << 8U;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1U ^ ((crc & 0x8000U) != 0 ? 0x18005U : 0U);
    tables[0][i] = static_cast<std::uint16_t>(crc);
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t i = 0; i < 256; ++i) {
      const unsigned crc = tables[k - 1][i];
      tables[k][i] = static_cast<std::uint16_t>((crc << 8U & 0xFFFFU) ^ tables[0][crc >> 8U]);
    }
  return tables;
}();

std::uint64_t load_64(const std::byte* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return std::endian::native == std::endian::little ? std::byteswap(value) : value;
}

unsigned crc16(Bytes bytes) {
  unsigned crc = 0;
  for (; bytes.size() >= 16; bytes = bytes.subspan(16)) {
    const std::uint64_t first = load_64(bytes.data()) ^ std::uint64_t{crc} << 48U, second = load_64(bytes.data() + 8);
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k)
      crc ^= kCrc16[k][second >> (8 * k) & 0xFFU] ^ kCrc16[k + 8][first >> (8 * k) & 0xFFU];
  }
  for (const std::byte byte : bytes)
    crc = (crc << 8U & 0xFFFFU) ^ kCrc16[0][crc >> 8U ^ std::to_integer<unsigned>(byte)];
  return crc;
}

// Reads bits, the highest of each byte first. After the last byte it reads zeros, and ended() is true.
struct FlacBits {
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::size_t at = 0;        // byte after those in the buffer
  std::uint64_t buffer = 0;  // the next bits, from the highest one on
  unsigned count = 0;        // of them; lower bits are 0, or those that follow

  // Afterwards the buffer has at least 56 bits.
  void refill() {
    if (size - at >= sizeof buffer && at <= size) [[likely]] {
      buffer |= load_64(data + at) >> count;
      at += (63 - count) >> 3U;
      count |= 56U;
      return;
    }
    for (; count < 56; count += 8, ++at)
      if (at < size) buffer |= std::uint64_t{std::to_integer<std::uint8_t>(data[at])} << (56 - count);
  }
  void skip(unsigned bits) {  // at most 63
    buffer <<= bits;
    count -= bits;
  }
  std::uint64_t position() const { return std::uint64_t{at} * 8 - count; }  // in bits
  bool ended() const { return position() > std::uint64_t{size} * 8; }

  // Requires: 1 to 56 bits.
  std::uint64_t read(unsigned bits) {
    refill();
    const std::uint64_t value = buffer >> (64 - bits);
    skip(bits);
    return value;
  }
  std::int64_t read_signed(unsigned bits) {
    refill();
    const std::int64_t value = static_cast<std::int64_t>(buffer) >> (64 - bits);
    skip(bits);
    return value;
  }
  // Returns the number of zeros before the next one.
  std::uint32_t read_zeros() {
    std::uint32_t zeros = 0;
    for (;;) {
      refill();
      const auto here = static_cast<unsigned>(std::countl_zero(buffer));
      if (here < count) {
        buffer = buffer << here << 1U;
        count -= here + 1;
        return zeros + here;
      }
      zeros += count;
      buffer = buffer << (count - 1) << 1U;
      count = 0;
      if (at < size) continue;
      at = size + 1;  // the end: no bit is 1
      return zeros;
    }
  }
};

std::int32_t unfold(std::uint32_t folded) { return static_cast<std::int32_t>(folded >> 1U ^ (0U - (folded & 1U))); }

// Reads `frames` residuals with a Rice parameter. Their codes are `quotient` zeros, a one, and `parameter` bits.
template <typename Sample>
[[gnu::always_inline]] inline void read_rice_codes(FlacBits& from, unsigned parameter, std::uint32_t frames,
                                                   Sample* out) {
  FlacBits bits = from;  // in registers
  constexpr std::uint32_t kAtOnce = 4;
  for (std::uint32_t i = 0; i < frames;) {
    bits.refill();
    const std::uint32_t begin = i;
    const auto read_one = [&] {
      const auto zeros = static_cast<unsigned>(std::countl_zero(bits.buffer));
      const unsigned used = zeros + 1 + parameter;
      if (used > bits.count) return false;
      const auto one_and_rest = static_cast<std::uint32_t>(bits.buffer >> (64 - used));
      out[i++] = unfold(((zeros - 1) << parameter) + one_and_rest);
      // two shifts, as the first one does not wait for the zeros
      bits.buffer = bits.buffer << (parameter + 1) << zeros;
      bits.count -= used;
      return true;
    };
    if (frames - begin >= kAtOnce) {
      if (read_one() && read_one() && read_one() && read_one()) continue;
    } else {
      read_one();
    }
    if (i > begin) continue;
    const std::uint32_t quotient = bits.read_zeros();
    const std::uint32_t rest = parameter == 0 ? 0 : static_cast<std::uint32_t>(bits.read(parameter));
    out[i++] = unfold((quotient << parameter) + rest);
    if (bits.ended()) break;
  }
  from = bits;
}

template <typename Sample>
using ReadRiceCodes = void (*)(FlacBits& from, unsigned parameter, std::uint32_t frames, Sample* out);

template <typename Sample>
void rice_codes(FlacBits& from, unsigned parameter, std::uint32_t frames, Sample* out) {
  read_rice_codes(from, parameter, frames, out);
}

#if defined(__x86_64__)
// Shifts by a variable, and counting zeros, take one instruction each instead of three.
template <typename Sample>
[[gnu::target("bmi,bmi2,lzcnt")]] void rice_codes_bmi2(FlacBits& from, unsigned parameter, std::uint32_t frames,
                                                       Sample* out) {
  read_rice_codes(from, parameter, frames, out);
}
template <typename Sample>
ReadRiceCodes<Sample> best_rice_codes() {
  static const bool has_bmi2 = __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("lzcnt") != 0;
  return has_bmi2 ? rice_codes_bmi2<Sample> : rice_codes<Sample>;
}
#else
template <typename Sample>
ReadRiceCodes<Sample> best_rice_codes() {
  return rice_codes<Sample>;
}
#endif

// Reads the residual of `frames` samples, whose first `order` ones are not predicted. Returns a fault, or nullptr.
template <typename Sample>
const char* read_residual(FlacBits& bits, std::uint32_t frames, std::uint32_t order, Sample* out) {
  const auto method = bits.read(2);
  if (method > 1) return "the residual's coding method is reserved";
  const unsigned parameter_bits = method == 0 ? 4 : 5;
  const std::uint64_t escape = method == 0 ? 15 : 31;
  const auto partition_order = static_cast<unsigned>(bits.read(4));
  const std::uint32_t size = frames >> partition_order;
  if (size << partition_order != frames || size < order) return "the residual's partitions do not fit the block";
  const auto read_codes = best_rice_codes<Sample>();
  Sample* at = out + order;
  for (std::uint32_t partition = 0; partition < 1U << partition_order && !bits.ended(); ++partition) {
    const std::uint32_t count = partition == 0 ? size - order : size;
    const auto parameter = static_cast<unsigned>(bits.read(parameter_bits));
    if (parameter != escape) {
      read_codes(bits, parameter, count, at);
    } else if (const auto width = static_cast<unsigned>(bits.read(5)); width == 0) {
      std::fill_n(at, count, Sample{0});
    } else {
      for (std::uint32_t i = 0; i < count && !bits.ended(); ++i) at[i] = static_cast<Sample>(bits.read_signed(width));
    }
    at += count;
  }
  return nullptr;
}

// Samples of damaged frames may overflow, so sums wrap.
template <typename T>
T wrapped(std::make_unsigned_t<T> value) {
  return static_cast<T>(value);
}

// Adds the prediction from kOrder samples to each residual. Sum: the type of sums of products.
template <typename Sum, std::uint32_t kOrder, typename Sample>
void predict(Sample* samples, std::uint32_t frames, const std::int32_t* coefficients, std::uint32_t order,
             unsigned shift) {
  using Unsigned = std::make_unsigned_t<Sum>;
  const std::uint32_t taps = kOrder != 0 ? kOrder : order;
  std::array<Unsigned, kMostOrder> factors{};
  for (std::uint32_t k = 0; k < taps; ++k) factors[k] = static_cast<Unsigned>(static_cast<Sum>(coefficients[k]));
  Sample last = samples[taps - 1];
  for (std::uint32_t i = taps; i < frames; ++i) {
    Unsigned sum = 0;
    for (std::uint32_t k = taps; k-- > 1;) sum += factors[k] * static_cast<Unsigned>(samples[i - 1 - k]);
    sum += factors[0] * static_cast<Unsigned>(last);  // last, because only this product waits for the previous sample
    last =
        static_cast<Sample>(static_cast<Unsigned>(samples[i]) + static_cast<Unsigned>(static_cast<Sum>(sum) >> shift));
    samples[i] = last;
  }
}

template <typename Sum, typename Sample, std::size_t... kOrders>
constexpr auto predictors(std::index_sequence<kOrders...> /*orders*/) {
  return std::array{&predict<Sum, kOrders, Sample>...};
}

template <typename Sum, typename Sample>
void predict_order(Sample* samples, std::uint32_t frames, const std::int32_t* coefficients, std::uint32_t order,
                   unsigned shift) {
  // one for each order that the reference encoder uses for rates up to 48 kHz; number 0 for any order
  static constexpr auto kPredictors = predictors<Sum, Sample>(std::make_index_sequence<13>());
  kPredictors[order < kPredictors.size() ? order : 0](samples, frames, coefficients, order, shift);
}

constexpr std::int32_t kFixed[5][4] = {{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};

// Decodes the samples of one channel, at least the first `wanted` ones. Returns a fault, or nullptr.
template <typename Sample>
const char* decode_subframe(FlacBits& bits, unsigned width, std::uint32_t frames, std::uint32_t wanted, Sample* out) {
  const auto head = static_cast<unsigned>(bits.read(8));
  if ((head & 0x80U) != 0) return "a subframe does not begin with 0";
  unsigned wasted = 0;
  if ((head & 1U) != 0) {
    wasted = bits.read_zeros() + 1;
    if (wasted >= width) return "a subframe has no bits";
    width -= wasted;
  }
  const unsigned kind = head >> 1U;
  const bool is_fixed = kind >= 8 && kind <= 12, is_lpc = kind >= 32;
  if (kind > 1 && !is_fixed && !is_lpc) return "a subframe's type is reserved";
  if (kind == 0) {
    std::fill_n(out, wanted, static_cast<Sample>(bits.read_signed(width)));
  } else if (kind == 1) {
    for (std::uint32_t i = 0; i < frames && !bits.ended(); ++i) out[i] = static_cast<Sample>(bits.read_signed(width));
  } else {
    const std::uint32_t order = is_fixed ? kind - 8 : kind - 31;
    if (order > frames) return "a predictor has more coefficients than the block has samples";
    for (std::uint32_t i = 0; i < order; ++i) out[i] = static_cast<Sample>(bits.read_signed(width));
    std::array<std::int32_t, kMostOrder> coefficients{};
    unsigned shift = 0;
    if (is_fixed) {
      std::ranges::copy(kFixed[order], coefficients.begin());
    } else {
      const auto precision = static_cast<unsigned>(bits.read(4)) + 1;
      const auto stated = bits.read_signed(5);
      if (precision == 16 || stated < 0) return "a predictor's precision or shift is reserved";
      shift = static_cast<unsigned>(stated);
      for (std::uint32_t i = 0; i < order; ++i)
        coefficients[i] = static_cast<std::int32_t>(bits.read_signed(precision));
    }
    if (const char* const fault = read_residual(bits, frames, order, out)) return fault;
    if (order > 0 && !bits.ended()) {
      std::uint64_t most = 0;  // the greatest sum of products, divided by the greatest sample
      for (const std::int32_t factor : coefficients) most += static_cast<std::uint64_t>(std::abs(factor));
      const bool is_small = most << (width - 1) <= std::uint64_t{std::numeric_limits<std::int32_t>::max()};
      // without a shift, the low bits of the sum suffice
      if (sizeof(Sample) == 4 && (is_small || is_fixed))
        predict_order<std::int32_t>(out, std::max(wanted, order), coefficients.data(), order, shift);
      else
        predict_order<std::int64_t>(out, std::max(wanted, order), coefficients.data(), order, shift);
    }
  }
  if (wasted > 0)
    for (std::uint32_t i = 0; i < wanted; ++i)
      out[i] = wrapped<Sample>(static_cast<std::make_unsigned_t<Sample>>(out[i]) << wasted);
  return nullptr;
}

// The samples of two channels at one time.
template <Stereo kStereo, typename Sample>
std::array<Sample, 2> decorrelated(Sample first, Sample second) {
  using Unsigned = std::make_unsigned_t<Sample>;
  const auto a = static_cast<Unsigned>(first), b = static_cast<Unsigned>(second);
  if constexpr (kStereo == Stereo::kLeftSide) return {first, wrapped<Sample>(a - b)};
  if constexpr (kStereo == Stereo::kSideRight) return {wrapped<Sample>(a + b), second};
  if constexpr (kStereo == Stereo::kMidSide) {
    const Unsigned twice = a << 1U | (b & 1U);
    return {wrapped<Sample>(twice + b) >> 1, wrapped<Sample>(twice - b) >> 1};
  }
  return {first, second};
}

}  // namespace

std::optional<FlacFrameHeader> parse_flac_header(Bytes bytes) {
  const auto byte = [&](std::size_t i) { return i < bytes.size() ? std::to_integer<unsigned>(bytes[i]) : 0U; };
  if (byte(0) != 0xFF || (byte(1) & 0xFEU) != 0xF8) return std::nullopt;
  const unsigned block_code = byte(2) >> 4U, rate_code = byte(2) & 15U, channels = byte(3) >> 4U,
                 bits_code = byte(3) >> 1U & 7U;
  if (block_code == 0 || rate_code == 15 || channels > 10 || bits_code == 3 || (byte(3) & 1U) != 0) return std::nullopt;
  FlacFrameHeader header{.channels = channels < 8 ? channels + 1 : 2,
                         .bits = std::array{0U, 8U, 12U, 0U, 16U, 20U, 24U, 32U}[bits_code],
                         .rate_code = static_cast<std::uint8_t>(rate_code),
                         .stereo = static_cast<Stereo>(channels < 8 ? 0 : channels - 7),
                         .is_variable = (byte(1) & 1U) != 0};
  // a number coded as in UTF-8, with up to 36 bits
  const unsigned first = byte(4);
  const auto ones = static_cast<unsigned>(std::countl_one(static_cast<std::uint8_t>(first)));
  if (ones == 1 || ones == 8) return std::nullopt;
  header.number = first & (0xFFU >> (ones + 1));
  std::size_t at = 5;
  for (unsigned i = 1; i < ones; ++i, ++at) {
    if ((byte(at) & 0xC0U) != 0x80) return std::nullopt;
    header.number = header.number << 6U | (byte(at) & 0x3FU);
  }
  const auto next = [&](std::size_t count) {
    unsigned value = 0;
    for (; count > 0; --count) value = value << 8U | byte(at++);
    return value;
  };
  header.frames = block_code == 1   ? 192
                  : block_code < 6  ? 144U << block_code
                  : block_code == 6 ? next(1) + 1
                  : block_code == 7 ? next(2) + 1
                                    : 1U << block_code;
  at += rate_code == 12 ? 1 : rate_code == 13 || rate_code == 14 ? 2 : 0;
  if (at >= bytes.size() || header.frames > 65535) return std::nullopt;
  unsigned crc = 0;
  for (const std::byte one : bytes.first(at)) crc = kCrc8[crc ^ std::to_integer<unsigned>(one)];
  if (crc != byte(at)) return std::nullopt;
  header.bytes = at + 1;
  return header;
}

template <typename Sample>
Result<std::size_t> FlacFrameDecoder::decode_as(std::vector<Sample>& samples, Bytes bytes, std::uint32_t wanted) {
  const std::size_t needed = std::size_t{header_.frames} * header_.channels;
  if (samples.size() < needed) samples.resize(needed);
  FlacBits bits{.data = bytes.data(), .size = bytes.size(), .at = header_.bytes};
  for (std::uint32_t channel = 0; channel < header_.channels; ++channel) {
    const bool is_side =
        header_.stereo == Stereo::kSideRight ? channel == 0 : header_.stereo != Stereo::kSeparate && channel == 1;
    const char* const fault = decode_subframe(bits, bits_ + (is_side ? 1 : 0), header_.frames, wanted,
                                              samples.data() + std::size_t{channel} * header_.frames);
    if (bits.ended()) return 0;
    if (fault != nullptr) return bad_frame(fault);
  }
  return static_cast<std::size_t>((bits.position() + 7) / 8);
}

Result<std::size_t> FlacFrameDecoder::decode_samples(Bytes bytes, const FlacFrameHeader& header, std::uint32_t bits,
                                                     std::uint32_t wanted) {
  header_ = header;
  bits_ = bits;
  wanted = std::min(wanted, header.frames);
  if (header.stereo != Stereo::kSeparate && bits > kNarrowBits) return decode_as(wide_, bytes, wanted);
  return decode_as(narrow_, bytes, wanted);
}

Result<std::size_t> FlacFrameDecoder::decode(Bytes bytes, const FlacFrameHeader& header, std::uint32_t bits,
                                             std::uint32_t wanted) {
  FEEDLINE_TRY(const std::size_t end, decode_samples(bytes, header, bits, wanted));
  if (end == 0 || end + 2 > bytes.size()) return 0;
  if (crc16(bytes.first(end + 2)) != 0) return bad_frame("its CRC-16 does not match");
  return end + 2;
}

template <typename Sample, typename Out>
void FlacFrameDecoder::copy_from(const std::vector<Sample>& samples, std::uint32_t begin, std::span<Out> out) const {
  const std::size_t channels = header_.channels, frames = out.size() / channels;
  const float scale = 1.0F / static_cast<float>(std::uint64_t{1} << (bits_ - 1));
  const unsigned up = bits_ < 16 ? 16 - bits_ : 0, down = bits_ > 16 ? bits_ - 16 : 0;
  const auto convert = [&](Sample sample) {
    if constexpr (std::is_same_v<Out, float>) return static_cast<float>(sample) * scale;
    return static_cast<Out>(wrapped<Sample>(static_cast<std::make_unsigned_t<Sample>>(sample) << up) >> down);
  };
  const auto plane = [&](std::size_t channel) { return samples.data() + channel * header_.frames + begin; };
  const auto pairs = [&]<Stereo kStereo>() {
    const Sample *const first = plane(0), *const second = plane(1);
    for (std::size_t i = 0; i < frames; ++i) {
      const auto both = decorrelated<kStereo>(first[i], second[i]);
      out[2 * i] = convert(both[0]);
      out[2 * i + 1] = convert(both[1]);
    }
  };
  switch (header_.stereo) {
    case Stereo::kLeftSide:
      return pairs.template operator()<Stereo::kLeftSide>();
    case Stereo::kSideRight:
      return pairs.template operator()<Stereo::kSideRight>();
    case Stereo::kMidSide:
      return pairs.template operator()<Stereo::kMidSide>();
    case Stereo::kSeparate:
      break;
  }
  if (channels == 1) {
    std::ranges::transform(std::span(plane(0), frames), out.begin(), convert);
    return;
  }
  if (channels == 2) return pairs.template operator()<Stereo::kSeparate>();
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const Sample* const from = plane(channel);
    for (std::size_t i = 0; i < frames; ++i) out[i * channels + channel] = convert(from[i]);
  }
}

template <typename Out>
void FlacFrameDecoder::copy_to(std::uint32_t begin, std::span<Out> out) const {
  if (header_.stereo != Stereo::kSeparate && bits_ > kNarrowBits) return copy_from(wide_, begin, out);
  copy_from(narrow_, begin, out);
}

void FlacFrameDecoder::copy(std::uint32_t begin, std::span<float> out) const { copy_to(begin, out); }
void FlacFrameDecoder::copy(std::uint32_t begin, std::span<std::int16_t> out) const { copy_to(begin, out); }

}  // namespace feedline::decode
