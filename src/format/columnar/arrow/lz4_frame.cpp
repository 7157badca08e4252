// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/lz4_frame.h"

#include <lz4frame.h>

#include <memory>
#include <string>

namespace feedline::format {

Result<void> unpack_lz4_frame(std::span<const std::byte> in, std::span<std::byte> out) {
  LZ4F_dctx* made = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)))
    return data_error("not enough memory to decompress a buffer", "format");
  const std::unique_ptr<LZ4F_dctx, LZ4F_errorCode_t (*)(LZ4F_dctx*)> context(made, LZ4F_freeDecompressionContext);
  std::size_t left = 1;  // 0 at the end of the frame
  while (left != 0) {
    std::size_t taken = in.size(), room = out.size();
    left = LZ4F_decompress(context.get(), out.data(), &room, in.data(), &taken, nullptr);
    if (LZ4F_isError(left)) return data_error(std::string("LZ4: ") + LZ4F_getErrorName(left), "format");
    if (taken == 0 && room == 0 && left != 0)
      return data_error("LZ4: the data is truncated, or decompresses to more bytes than expected", "format");
    in = in.subspan(taken);
    out = out.subspan(room);
  }
  if (in.empty() && out.empty()) return {};
  return data_error(in.empty() ? "LZ4: the data decompresses to fewer bytes than expected"
                               : "LZ4: extra bytes follow the end of the data",
                    "format");
}

}  // namespace feedline::format
