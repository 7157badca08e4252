// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/token_kernels.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

// The number of tokens that find_token() compares without a branch, so that the compiler can vectorize the loop.
// Documents have hundreds of tokens, so most blocks of this size do not contain a separator.
constexpr std::uint64_t kGlance = 64;

// Writes both outputs. The input is still in the L1 cache when the second loop reads it.
template <typename In, typename Out>
void widen(const std::byte* tokens, std::uint64_t count, std::byte* x, std::byte* y) {
  const auto convert = [count](const std::byte* from, std::byte* to) {
    for (std::uint64_t i = 0; i < count; ++i) {
      In token;
      std::memcpy(&token, from + i * sizeof(In), sizeof(In));  // a header may leave the tokens unaligned
      const Out out = static_cast<Out>(token);
      std::memcpy(to + i * sizeof(Out), &out, sizeof(Out));
    }
  };
  convert(tokens, x);
  convert(tokens + sizeof(In), y);
}

// Calls `call` with a value of the C++ type for stored tokens of this dtype. Returns `otherwise` if the dtype is not
// supported.
template <typename Call, typename T>
T with_stored(DType stored, Call call, T otherwise) {
  switch (stored) {
    case DType::kUint8:
      return call(std::uint8_t{});
    case DType::kInt8:
      return call(std::int8_t{});
    case DType::kUint16:
      return call(std::uint16_t{});
    case DType::kInt16:
      return call(std::int16_t{});
    case DType::kUint32:
      return call(std::uint32_t{});
    case DType::kInt32:
      return call(std::int32_t{});
    case DType::kInt64:
      return call(std::int64_t{});
    default:
      return otherwise;
  }
}

template <typename T>
void number_as(T separator, T ignored, ArrayView x, ArrayView y, std::int32_t* document) {
  const auto count = static_cast<std::uint64_t>(x.spec.shape[0]);
  const T* tokens = x.as<T>();
  T* targets = y.as<T>();
  std::int32_t number = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    document[i] = number;
    if (tokens[i] != separator) continue;
    targets[i] = ignored;
    ++number;
  }
}

template <typename T>
void find_as(const T* tokens, std::uint64_t count, T token, std::uint64_t base, std::vector<std::uint64_t>& locations) {
  std::uint64_t i = 0;
  for (; i + kGlance <= count; i += kGlance) {
    T found = 0;
    for (std::uint64_t k = 0; k < kGlance; ++k) found |= static_cast<T>(tokens[i + k] == token);
    if (found == 0) continue;
    for (std::uint64_t k = 0; k < kGlance; ++k)
      if (tokens[i + k] == token) locations.push_back(base + i + k);
  }
  for (; i < count; ++i)
    if (tokens[i] == token) locations.push_back(base + i);
}

}  // namespace

Result<Widen> widen_of(DType stored, DType output) {
  const auto to = [&]<typename Out>(Out) {
    return with_stored(
        stored, []<typename In>(In) { return Widen{widen<In, Out>}; }, Widen{nullptr});
  };
  const Widen found = output == DType::kInt64   ? to(std::int64_t{})
                      : output == DType::kInt32 ? to(std::int32_t{})
                                                : nullptr;
  if (found != nullptr) return found;
  return config_error("tokens: " + std::string(name_of(stored)) + " tokens as " + std::string(name_of(output)) +
                      ": the stored dtype must be uint8, int8, int16, uint16, int32, uint32 or int64, and the output "
                      "dtype int32 or int64");
}

void number_documents(DType output, std::int64_t separator, std::int64_t ignored, ArrayView x, ArrayView y,
                      std::int32_t* document) {
  if (output == DType::kInt64) return number_as<std::int64_t>(separator, ignored, x, y, document);
  FEEDLINE_CHECK(output == DType::kInt32);
  number_as(static_cast<std::int32_t>(separator), static_cast<std::int32_t>(ignored), x, y, document);
}

bool holds_token(DType stored, std::int64_t token) {
  return with_stored(
      stored, [token]<typename In>(In) { return std::in_range<In>(token); }, false);
}

std::uint64_t first_outside(DType stored, const std::byte* tokens, std::uint64_t count, std::uint64_t vocabulary) {
  const auto search = [&]<typename In>(In token) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(&token, tokens + i * sizeof(In), sizeof(In));
      // negative numbers become huge when unsigned
      if (static_cast<std::uint64_t>(static_cast<std::int64_t>(token)) >= vocabulary) return i;
    }
    return count;
  };
  return with_stored(stored, search, count);
}

std::int64_t first_token(DType stored, const std::byte* tokens) {
  const auto read = [tokens]<typename In>(In token) {
    std::memcpy(&token, tokens, sizeof(In));
    return static_cast<std::int64_t>(token);
  };
  return with_stored(stored, read, std::int64_t{0});
}

void find_token(DType stored, std::span<const std::byte> tokens, std::int64_t token, std::uint64_t base,
                std::vector<std::uint64_t>& locations) {
  const auto find = [&]<typename In>(In) {
    find_as(reinterpret_cast<const In*>(tokens.data()), tokens.size() / sizeof(In), static_cast<In>(token), base,
            locations);
    return true;
  };
  FEEDLINE_CHECK(with_stored(stored, find, false));
}

}  // namespace feedline::format
