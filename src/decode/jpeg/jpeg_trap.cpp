// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_trap.h"

// included after jpeglib.h, whose configuration determines the error codes
#include <jerror.h>

#include "decode/jpeg/jpeg_segments.h"

namespace feedline::decode {
namespace {

[[noreturn]] void leave(j_common_ptr jpeg) {
  auto& trap = *reinterpret_cast<ErrorTrap*>(jpeg->err);
  (*jpeg->err->format_message)(jpeg, trap.message);
  std::longjmp(trap.jump, 1);
}

bool costs_pixels(int warning) {
  return warning == JWRN_HIT_MARKER || warning == JWRN_HUFF_BAD_CODE || warning == JWRN_ARITH_BAD_CODE ||
         warning == JWRN_MUST_RESYNC;
}

void on_message(j_common_ptr jpeg, int level) {
  constexpr int kWarning = -1;
  if (level == kWarning && costs_pixels(jpeg->err->msg_code)) leave(jpeg);
}

void print_nothing(j_common_ptr) {}

std::string process_of(unsigned frame_marker) {
  const JpegFrame frame{.marker = frame_marker};
  const std::string coding = frame.is_arithmetic() ? " with arithmetic coding" : "";
  if (frame.is_lossless())
    return "lossless JPEG" + coding + " is not supported: write it as PNG, which is lossless too";
  return "hierarchical JPEG" + coding + " is not supported: write it as another kind of JPEG";
}

}  // namespace

std::string reason_of(const ErrorTrap& trap) {
  switch (trap.callbacks.msg_code) {
    case JERR_BAD_PRECISION:
      return "JPEG of " + std::to_string(trap.callbacks.msg_parm.i[0]) +
             " bits per sample is not supported: write a PNG with 16 bits, or a JPEG with 8";
    case JERR_SOF_UNSUPPORTED:
      return process_of(static_cast<unsigned>(trap.callbacks.msg_parm.i[0]));
    case JERR_ARITH_NOTIMPL:
      return "JPEG with arithmetic coding is not supported by this libjpeg: write it with Huffman codes (`jpegtran`)";
    default:
      return trap.message;
  }
}

jpeg_error_mgr* arm(ErrorTrap& trap) {
  jpeg_error_mgr* const callbacks = jpeg_std_error(&trap.callbacks);
  callbacks->error_exit = leave;
  callbacks->emit_message = on_message;
  callbacks->output_message = print_nothing;
  return callbacks;
}

}  // namespace feedline::decode
