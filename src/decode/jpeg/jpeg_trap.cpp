// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_trap.h"

// which codes it numbers depends on jpeglib.h's configuration, so it comes after that
#include <jerror.h>

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

}  // namespace

jpeg_error_mgr* arm(ErrorTrap& trap) {
  jpeg_error_mgr* const callbacks = jpeg_std_error(&trap.callbacks);
  callbacks->error_exit = leave;
  callbacks->emit_message = on_message;
  callbacks->output_message = print_nothing;
  return callbacks;
}

}  // namespace feedline::decode
