// SPDX-License-Identifier: Apache-2.0
#include "decode/npy/npy.h"

#include <cstdint>
#include <string>
#include <utility>

#include "memory/npy_header.h"

namespace feedline::decode {
namespace {

std::unexpected<Error> npy_error(std::string what) { return data_error("npy: " + std::move(what), "decode"); }

}  // namespace

bool is_npy(std::span<const std::byte> file) { return memory::is_npy(file); }

void write_npy(const ArraySpec& spec, std::span<const std::byte> data, std::vector<std::byte>& file) {
  const std::string header = memory::npy_header(spec);
  file.clear();
  const auto add = [&file](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  add(std::as_bytes(std::span(header)));
  add(data);
}

Result<NpyArray> read_npy(std::span<const std::byte> file) {
  FEEDLINE_TRY(const memory::NpyHeader header, memory::read_npy_header(file));
  if (header.is_swapped)
    return npy_error("big-endian (" + header.descr + "); save it with array.astype(\"<" + header.descr.substr(1) +
                     "\")");
  if (header.is_fortran) return npy_error("an array in Fortran order; save numpy.ascontiguousarray(array)");
  const std::uint64_t bytes = header.data_bytes();
  const auto stored = file.subspan(header.bytes);
  if (stored.size() < bytes)
    return npy_error("truncated: " + std::to_string(stored.size()) + " of " + std::to_string(bytes) + " bytes of " +
                     std::string(name_of(header.spec.dtype)) + header.spec.shape.to_string());
  return NpyArray{header.spec, stored.first(bytes)};
}

}  // namespace feedline::decode
