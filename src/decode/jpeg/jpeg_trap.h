// SPDX-License-Identifier: Apache-2.0
#pragma once

// Captures libjpeg's errors: it exits the failing call by longjmp. Callers call setjmp() on the trap's `jump` first and
// hold nothing that needs a destructor.

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <string>

namespace feedline::decode {

struct ErrorTrap {
  jpeg_error_mgr callbacks;  // must be first: libjpeg passes back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

// Why libjpeg failed, for users: the name of an unsupported kind of JPEG, or libjpeg's own message.
std::string reason_of(const ErrorTrap& trap);

// For `jpeg.err`. Nothing is printed; warnings that cost pixels are errors.
jpeg_error_mgr* arm(ErrorTrap& trap);

}  // namespace feedline::decode
