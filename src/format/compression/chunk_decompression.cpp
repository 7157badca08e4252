// SPDX-License-Identifier: Apache-2.0
#include "format/compression/chunk_decompression.h"

#include <libdeflate.h>
#include <zstd.h>

#include <memory>

namespace feedline::format {
namespace {

bool decompress_by_zstd(std::span<const std::byte> in, std::span<std::byte> out) {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  thread_local const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  return context != nullptr &&
         ZSTD_decompressDCtx(context.get(), out.data(), out.size(), in.data(), in.size()) == out.size();
}

// Returns false for concatenated members too.
bool decompress_by_libdeflate(Compression kind, std::span<const std::byte> in, std::span<std::byte> out) {
  struct Free {
    void operator()(libdeflate_decompressor* context) const { libdeflate_free_decompressor(context); }
  };
  thread_local const std::unique_ptr<libdeflate_decompressor, Free> context(libdeflate_alloc_decompressor());
  if (context == nullptr) return false;
  const auto decompress = kind == Compression::kGzip   ? libdeflate_gzip_decompress_ex
                          : kind == Compression::kZlib ? libdeflate_zlib_decompress_ex
                                                       : libdeflate_deflate_decompress_ex;
  std::size_t used = 0, made = 0;
  return decompress(context.get(), in.data(), in.size(), out.data(), out.size(), &used, &made) == LIBDEFLATE_SUCCESS &&
         used == in.size() && made == out.size();
}

}  // namespace

Result<void> decompress_chunk(Compression kind, std::span<const std::byte> in, std::span<std::byte> out) {
  const bool is_deflate = kind == Compression::kGzip || kind == Compression::kZlib || kind == Compression::kDeflate;
  if (kind == Compression::kZstd && decompress_by_zstd(in, out)) return {};
  if (is_deflate && decompress_by_libdeflate(kind, in, out)) return {};
  return decompress_exactly(kind, in, out);  // with the reason, if it fails
}

}  // namespace feedline::format
